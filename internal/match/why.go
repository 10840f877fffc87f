package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/fieldpath"
)

// WhyNot says why doc does not match, as the details of a failed validation do. Parse the filter AsWritten for that.
func (f *Filter) WhyNot(env *expr.Env, doc bson.Doc) bson.Doc {
	w := why{run{env: env, root: doc}, subject{value: doc.Value()}}
	b := bson.Build()
	w.explain(f.Root, false, b)
	return b.Doc()
}

// why is what explanations look at.
type why struct {
	run     run
	subject subject
}

// explain appends to b why n says no, or why it says yes when a negation around it wants no.
func (w *why) explain(n Node, negated bool, b *bson.Builder) {
	switch n := n.(type) {
	case *And:
		w.clauses("$and", n.Children, negated, !negated, b)
	case *Or:
		w.clauses("$or", n.Children, negated, !negated, b)
	case *Nor:
		w.clauses("$nor", n.Children, !negated, negated, b)
	case *Not:
		if _, logical := PathOf(n.Child); logical {
			w.leaf(n.Child, !negated, b)
			return
		}
		b.String("operatorName", "$not").Object("details")
		w.explain(n.Child, !negated, b)
		b.End()
	case *JSONSchema:
		b.String("operatorName", "$jsonSchema")
		if negated {
			b.String("reason", "schema matched")
			return
		}
		n.schema.annotate(b)
		b.Array("schemaRulesNotSatisfied")
		n.schema.explain(w.run, w.subject.value, b)
		b.End()
	default:
		w.leaf(n, negated, b)
	}
}

// clauses appends those of several nodes that are to blame: the ones whose answer is wrong.
func (w *why) clauses(name string, nodes []Node, negated, wanted bool, b *bson.Builder) {
	list := "clausesNotSatisfied"
	if !wanted {
		list = "clausesSatisfied"
	}
	b.String("operatorName", name).Array(list)
	i := 0
	for at, n := range nodes {
		ok, err := n.match(w.run.silent(), w.subject)
		if err != nil || ok == wanted {
			continue
		}
		b.Object(bson.IndexKey(i)).Int32("index", int32(at)).Object("details")
		w.explain(n, negated, b)
		b.End().End()
		i++
	}
	b.End()
}

func (w *why) leaf(n Node, negated bool, b *bson.Builder) {
	printed := PrintNode(n)
	name := printed.FirstKey()
	if v := printed.Index(0); v.Type == bson.TypeObject && (name == "" || name[0] != '$') {
		name = v.Doc().FirstKey()
	}
	if negated && name == "$eq" {
		name = "$ne"
	} else if negated && name == "$in" {
		name = "$nin"
	}
	b.String("operatorName", name).Document("specifiedAs", printed)
	path, ok := PathOf(n)
	if !ok {
		b.String("reason", reasonOf(n, negated))
		return
	}
	var seen []bson.Value
	path.Walk(w.subject.value.Doc(), fieldpath.Traverse, func(v bson.Value, _ int) bool {
		if !v.IsMissing() {
			seen = append(seen, v)
		}
		return len(seen) >= maxConsidered
	})
	if _, exists := n.(*Exists); len(seen) == 0 && !exists {
		b.String("reason", "field was missing")
		return
	}
	b.String("reason", reasonOf(n, negated))
	switch {
	case len(seen) == 1:
		b.Value("consideredValue", seen[0])
	case len(seen) > 1:
		b.Value("consideredValues", bson.ArrayOf(seen...))
	}
}

// maxConsidered bounds how many values an explanation repeats.
const maxConsidered = 100

func reasonOf(n Node, negated bool) string {
	texts := [2]string{"expression did not match", "expression did match"}
	switch n.(type) {
	case *Compare:
		texts = [2]string{"comparison failed", "comparison succeeded"}
	case *In:
		texts = [2]string{"no matching value found in array", "matching value found in array"}
	case *Exists:
		texts = [2]string{"path does not exist", "path does exist"}
	case *Type:
		texts = [2]string{"type did not match", "type did match"}
	case *Regex:
		texts = [2]string{"regular expression did not match", "regular expression did match"}
	case *Mod:
		texts = [2]string{"$mod did not evaluate to expected remainder", "$mod did evaluate to expected remainder"}
	case *Size:
		texts = [2]string{"array length was not equal to given size", "array length was equal to given size"}
	case *ElemMatchObject, *ElemMatchValue:
		texts = [2]string{"array did not satisfy the child predicate", "array did satisfy the child predicate"}
	case *Bits:
		texts = [2]string{"bitwise operator failed to match", "bitwise operator matched successfully"}
	case *AlwaysFalse:
		texts[0] = "expression always evaluates to false"
	case *AlwaysTrue:
		texts[1] = "expression always evaluates to true"
	}
	if negated {
		return texts[1]
	}
	return texts[0]
}
