package accumulator

import (
	"bytes"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

func topOperators() []Operator {
	return []Operator{
		{Name: "$top", Since: "5.2", Doc: "The output of the document that sorts first.", Group: parseTop(false, true), Window: leftBehind(nil)},
		{Name: "$topN", Since: "5.2", Doc: "The outputs of the n documents that sort first.", Group: parseTop(true, true), Window: leftBehind(nil)},
		{Name: "$bottom", Since: "5.2", Doc: "The output of the document that sorts last.", Group: parseTop(false, false), Window: leftBehind(nil)},
		{Name: "$bottomN", Since: "5.2", Doc: "The outputs of the n documents that sort last.", Group: parseTop(true, false), Window: leftBehind(nil)},
	}
}

// parseTop reads {output: <expression>, sortBy: <pattern>} and, for the ones with N, n. The arguments evaluated for each
// document are the output, the whole document, whose sort key is taken from it, and the metadata that it is sorted by.
func parseTop(many, top bool) parseGroup {
	return func(p *Parser, op *Operator, arg bson.Value, scope *expr.Scope) (*Spec, error) {
		if arg.Type != bson.TypeObject {
			return nil, mongoerr.New(5788001, "specification must be an object; found %s: %s", op.Name, arg)
		}
		s := &Spec{Op: op, Grows: true}
		var output expr.Expr
		var pattern *sortpattern.Pattern
		for it := arg.Doc().Iter(); it.Next(); {
			var err error
			switch v := it.Value(); {
			case it.Key() == "n" && many:
				s.Init, err = p.exprs.Parse(v, scope)
			case it.Key() == "output":
				output, err = p.exprs.Parse(v, scope)
			case it.Key() == "sortBy":
				if v.Type != bson.TypeObject {
					return nil, mongoerr.New(5788604, "expected 'sortBy' to already be specified as an object, but got %s", v)
				}
				pattern, err = sortpattern.Parse(v.Doc())
			default:
				return nil, mongoerr.New(5788002, "Unknown argument to %s '%s'", op.Name, it.Key())
			}
			if err != nil {
				return nil, err
			}
		}
		switch {
		case many && s.Init == nil:
			return nil, mongoerr.New(5788003, "Missing value for 'n'")
		case output == nil:
			return nil, mongoerr.New(5788004, "Missing value for 'output'")
		case pattern == nil:
			return nil, mongoerr.New(5788005, "Missing value for 'sortBy'")
		}
		sorted, err := p.sortedBy(pattern)
		if err != nil {
			return nil, err
		}
		s.Args = append([]expr.Expr{output}, sorted...)
		s.make, s.leaving = newTop(p, op.Name, pattern, many, top), newLeavingTop(p, op.Name, pattern, many, top)
		s.print = func(s *Spec) bson.Value {
			b := bson.Build()
			if s.Init != nil {
				b.Value("n", s.Init.Value())
			}
			return b.Value("output", s.Args[0].Value()).Document("sortBy", pattern.Source()).Doc().Value()
		}
		if many {
			return s, checkConstantN(op.Name, s.Init)
		}
		return s, nil
	}
}

// sortedBy are expressions for what pattern takes sort keys from.
func (p *Parser) sortedBy(pattern *sortpattern.Pattern) ([]expr.Expr, error) {
	root, err := p.exprs.Parse(bson.String("$$ROOT"), nil)
	es := []expr.Expr{root}
	for _, name := range pattern.Meta() {
		if err != nil {
			break
		}
		var e expr.Expr
		e, err = p.exprs.Parse(bson.Build().String("$meta", name).Doc().Value(), nil)
		es = append(es, e)
	}
	return es, err
}

// ranked is an array of an output and the parts of its sort key. Bytes alone take half of what values of Go do.
type ranked []byte

func (r *ranked) size() int { return 64 + allocated(cap(*r)) }

// topN keeps the n first or last outputs, in the order of the pattern. Equal ones stay in the order they came.
type topN struct {
	*inOrder[ranked]
	pattern *sortpattern.Pattern
	metas   []string     // the metadata in the pattern
	values  []bson.Value // of these, for the document at hand
	collate bson.Collator
	ask     func() error // whether the operation goes on
	n       int64
	top     bool
	many    bool
	key     []bson.Value
	a, b    []bson.Value // what two that are compared consist of
	row     []byte       // of the document at hand
	array   growing
}

func newTop(p *Parser, op string, pattern *sortpattern.Pattern, many, top bool) maker {
	return func(init bson.Value) (Fold, error) {
		t := &topN{pattern: pattern, metas: pattern.Meta(), collate: p.collator, ask: p.exprs.Interrupt(), n: 1, top: top, many: many}
		t.inOrder = newInOrder(op, t.order, (*ranked).size)
		var err error
		if many {
			t.n, err = readN(op, init)
		}
		return t, err
	}
}

func (t *topN) order(a, b *ranked) int {
	t.a = bson.Doc(*a).Values(t.a[:0])
	return t.beside(t.a[1:], b)
}

// beside compares a key with that of r.
func (t *topN) beside(key []bson.Value, r *ranked) int {
	t.b = bson.Doc(*r).Values(t.b[:0])
	return t.pattern.Compare(key, t.b[1:], t.collate)
}

// rank is what is kept of a document.
func (t *topN) rank(key []bson.Value, output bson.Value) ranked {
	b := bson.BuildOn(t.row[:0]).Value(bson.IndexKey(0), orNull(output))
	for i, v := range key {
		b.Value(bson.IndexKey(i+1), v)
	}
	t.row = b.Doc()
	return bytes.Clone(t.row)
}

// sortKey is that of a document, good until the next one's.
func (t *topN) sortKey(args []bson.Value) (key []bson.Value, err error) {
	t.values = args[2:]
	t.key, err = t.pattern.Key(t.key[:0], args[1].Doc(), t.meta, t.collate, t.ask)
	return t.key, err
}

func (t *topN) meta(name string) bson.Value {
	if i := slices.Index(t.metas, name); i >= 0 {
		return t.values[i]
	}
	return bson.Missing
}

func (t *topN) Add(args []bson.Value) error {
	key, err := t.sortKey(args)
	if err != nil {
		return err
	}
	return t.insert(key, args[0])
}

func (t *topN) insert(key []bson.Value, output bson.Value) error {
	if !t.admits(t.n, !t.top, func(with *ranked) int { return t.beside(key, with) }) {
		return nil
	}
	return t.add(t.rank(key, output))
}

// shown hands the n first or last to f, in the order of the pattern.
func (t *topN) shown(f func(*ranked)) {
	if t.top {
		t.fromFront(t.n, f)
	} else {
		t.tail(t.n, f)
	}
}

func (t *topN) Value() (bson.Value, error) {
	one := bson.Missing
	t.array.clear()
	t.shown(func(r *ranked) {
		if one = bson.Doc(*r).Index(0); t.many {
			t.array.put(one)
		}
	})
	if t.many {
		return t.array.value(), nil
	}
	return one, nil
}

// Partial is an array of what is kept of each document.
func (t *topN) Partial() bson.Value {
	t.array.clear()
	t.shown(func(r *ranked) { t.array.put(bson.Doc(*r).ArrayValue()) })
	return t.array.value()
}

func (t *topN) Merge(partial bson.Value) error {
	for it := partial.Doc().Iter(); it.Next(); {
		t.key = it.Value().Doc().Values(t.key[:0])
		if err := t.insert(t.key[1:], t.key[0]); err != nil {
			return err
		}
	}
	return nil
}

func (t *topN) Size() int { return topBytes + treeBytes + t.held + cap(t.row) + t.array.size() }

// topBytes is about what an empty topN takes beside its tree.
const topBytes = 300
