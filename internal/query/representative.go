package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// Representative is an operation that stands for all of its shape.
type Representative struct {
	NS namespace.NS
	// Hash is the shape's; Shape shows the shape to people.
	Hash  string
	Shape bson.Doc
	// ByID says that the operation finds one document by its _id, which no setting changes.
	ByID bool
	// System is the stage by which it looks at the server itself; "" when it does not.
	System string
}

// RepresentFind finds out what f stands for.
func (e *Engine) RepresentFind(ctx context.Context, f Find, call *Call) (Representative, error) {
	p := &prepared{Find: f, call: call}
	if err := p.parse(ctx, e, nil); err != nil {
		return Representative{}, err
	}
	b := shapeHead(f.NS, "find").Document("filter", debugPredicate(p.filter.Print()))
	if !f.Sort.IsEmpty() {
		b.Document("sort", f.Sort)
	}
	if !f.Projection.IsEmpty() {
		b.Document("projection", f.Projection)
	}
	debugCollation(b, call.asked())
	byID := f.Hint.IsNullish() && f.Skip == 0 && !f.ShowRecordID && !f.ReturnKey && isOneID(f.Filter)
	return Representative{NS: f.NS, Hash: ShapeHash(findShape("find", f, call)), Shape: b.Doc(), ByID: byID}, nil
}

// RepresentDistinct finds out what d stands for.
func (e *Engine) RepresentDistinct(ctx context.Context, d Distinct, call *Call) (Representative, error) {
	f := Find{NS: d.NS, Filter: d.Filter}
	p := &prepared{Find: f, call: call}
	if err := p.parse(ctx, e, nil); err != nil {
		return Representative{}, err
	}
	b := shapeHead(d.NS, "distinct").String("key", d.Key).Document("query", debugPredicate(p.filter.Print()))
	debugCollation(b, call.asked())
	return Representative{NS: d.NS, Hash: ShapeHash(findShape("distinct "+d.Key, f, call)), Shape: b.Doc()}, nil
}

// RepresentPipeline finds out what a stands for.
func (e *Engine) RepresentPipeline(ctx context.Context, a Aggregate, call *Call) (Representative, error) {
	lang, err := e.language(ctx, call, nil)
	if err != nil {
		return Representative{}, err
	}
	pl, err := e.pipelineParser(lang).Parse(a.Pipeline, pipeline.Options{NS: a.NS, Scope: lang.scope})
	if err != nil {
		return Representative{}, err
	}
	b := shapeHead(a.NS, "aggregate").Array("pipeline")
	for i, s := range pl.Stages {
		b.Object(bson.IndexKey(i))
		if m, ok := s.(*pipeline.Match); ok {
			b.Document("$match", debugPredicate(m.Filter.Print()))
		} else {
			b.Value(s.Name(), e.debugStage(lang, s))
		}
		b.End()
	}
	b.End()
	debugCollation(b, call.asked())
	r := Representative{NS: a.NS, Hash: ShapeHash(pipelineShape(a, call)), Shape: b.Doc()}
	if pl.HasSource() && !pipeline.IsSearch(pl.First().Name()) {
		r.System = pl.First().Name()
	}
	return r, nil
}

// debugStage is the argument of a stage with the types of its constants in their places. What stands for names and numbers of documents stays.
func (e *Engine) debugStage(lang *language, s pipeline.Stage) bson.Value {
	if pipeline.IsSearch(s.Name()) {
		return bson.String(typeName(s.Spec()))
	}
	rest, conditions := splitConditions(s.Name(), s.Spec())
	if len(conditions) == 0 {
		return debugValue(rest)
	}
	b := bson.Build().Fields(debugValue(rest).Doc())
	for _, c := range conditions {
		printed := bson.EmptyDoc // of what no query could say
		if f, err := e.filters.Parse(c.filter, match.Options{Collation: lang.collation, Exprs: lang.exprs, Scope: lang.scope, Allow: match.AllowAll}); err == nil {
			printed = f.Print()
		}
		b.Document(c.field, debugPredicate(printed))
	}
	return b.Doc().Value()
}

func shapeHead(ns namespace.NS, command string) *bson.Builder {
	return bson.Build().Object("cmdNs").String("db", ns.DB).String("coll", ns.Coll).End().String("command", command)
}

func debugCollation(b *bson.Builder, c *collation.Collation) {
	if c != nil {
		b.Document("collation", c.Doc())
	}
}

// debugPredicate is a condition with the types of its constants in their places.
func debugPredicate(d bson.Doc) bson.Doc { return debugValue(d.Value()).Doc() }

func debugValue(v bson.Value) bson.Value {
	switch {
	case v.Type == bson.TypeObject:
		b := bson.Build()
		for it := v.Doc().Iter(); it.Next(); {
			b.Value(it.Key(), debugOperand(it.Key(), it.Value()))
		}
		return b.Doc().Value()
	case v.Type == bson.TypeString && isOperator(v.Str()):
		return v
	case v.Type == bson.TypeArray && holdsDocuments(v.Doc()):
		b := bson.Build()
		for it := v.Doc().Iter(); it.Next(); {
			b.Value(it.Key(), debugValue(it.Value()))
		}
		return b.Doc().ArrayValue()
	}
	return bson.String(typeName(v))
}

// debugOperand keeps what is no constant: what must exist, of which type, and which fields are shown or sorted by.
func debugOperand(key string, v bson.Value) bson.Value {
	if key == "$exists" || key == "$type" || !isOperator(key) && (v.IsNumber() || v.Type == bson.TypeBool) {
		return v
	}
	return debugValue(v)
}

func holdsDocuments(array bson.Doc) bool {
	for it := array.Iter(); it.Next(); {
		if it.Value().Type == bson.TypeObject {
			return true
		}
	}
	return false
}
