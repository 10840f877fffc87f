package update

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// cullOperators are the operators that remove elements from arrays by what they are.
func cullOperators() []Operator {
	return []Operator{
		{Name: "$pull", Doc: "Removes the elements of an array that match a condition.", Since: "1.0", parse: parsePull},
		{Name: "$pullAll", Doc: "Removes the elements of an array that equal one of several values.", Since: "1.0", parse: parsePullAll},
	}
}

// cull removes the elements for which test holds.
type cull struct {
	test func(a *applier, v bson.Value) (bool, error)
}

func parsePull(p *parser, _ string, v bson.Value) (modifier, error) {
	operators := v.Type == bson.TypeObject && p.matches.IsCondition(v.Doc().FirstKey())
	switch {
	case v.Type == bson.TypeObject && !operators:
		f, err := p.condition(v.Doc())
		if err != nil {
			return nil, err
		}
		return cull{func(a *applier, v bson.Value) (bool, error) {
			if v.Type != bson.TypeObject {
				return false, nil
			}
			return f.Match(a.args.Env, v.Doc())
		}}, nil
	case operators || v.Type == bson.TypeRegex:
		f, err := p.condition(bson.Build().Value("", v).Doc())
		if err != nil {
			return nil, err
		}
		return cull{func(a *applier, v bson.Value) (bool, error) { return f.MatchValue(a.args.Env, v) }}, nil
	}
	return cull{func(_ *applier, x bson.Value) (bool, error) { return bson.CompareWith(x, v, p.collator) == 0, nil }}, nil
}

// condition parses a filter on elements.
func (p *parser) condition(d bson.Doc) (*match.Filter, error) {
	return p.matches.Parse(d, match.Options{Collation: p.Collation, Exprs: p.Exprs, Scope: p.Scope})
}

func parsePullAll(p *parser, _ string, v bson.Value) (modifier, error) {
	if v.Type != bson.TypeArray {
		return nil, mongoerr.New(mongoerr.BadValue, "$pullAll requires an array argument but was given a %s", v.Type)
	}
	const many = 1 << 10 // the set is made once for all elements of all documents
	s := newSet(v.Doc().Values(nil), many, p.collator)
	return cull{func(_ *applier, v bson.Value) (bool, error) { return s.has(v), nil }}, nil
}

func (m cull) apply(a *applier, dst []byte, old bson.Value) ([]byte, bson.Type, effect, error) {
	if old.Type != bson.TypeArray {
		return dst, 0, unchanged, mongoerr.New(mongoerr.BadValue, "Cannot apply $pull to a non-array value")
	}
	dst, start := openDoc(dst)
	seen, kept := 0, 0
	for it := old.Doc().Iter(); it.Next(); seen++ {
		v := it.Value()
		gone, err := m.test(a, v)
		if err != nil {
			return dst, 0, unchanged, err
		}
		if !gone {
			dst, _ = head(dst, v.Type, bson.IndexKey(kept))
			dst = append(dst, v.Data...)
			kept++
		}
	}
	if kept == seen {
		return keep(dst[:start])
	}
	return closeDoc(dst, start), bson.TypeArray, replaced, nil
}
