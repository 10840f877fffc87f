package planner

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/match"
)

// comparison is what an $expr demands of a path: unlike a filter's it orders values of all types, looks into no array and
// tells a missing field from null.
type comparison struct {
	op   match.CompareOp
	than bson.Value
}

// demands are the predicates of n and the comparisons in its $expr.
func (p *planning) demands(n match.Node) []predicate {
	out := predicates(n)
	for _, c := range conjuncts(n) {
		if e, ok := c.(*match.Expr); ok {
			out = append(out, p.compared(e)...)
		}
	}
	return out
}

func (p *planning) compared(e *match.Expr) (out []predicate) {
	for _, c := range expr.Comparisons(e.Expr) {
		path := c.Path.String()
		v, ok := p.given(c.Than)
		if !ok || hasPosition(path) {
			continue
		}
		out = append(out, predicate{path: path, node: e, top: e, compares: &comparison{operator(c.Op), v}})
	}
	return out
}

// given is the value of what no document decides; ok is false where the variables are not known.
func (p *planning) given(e expr.Expr) (v bson.Value, ok bool) {
	if v, ok := expr.Constant(e); ok {
		return v, true
	}
	if p.q.Env == nil {
		return bson.Missing, false
	}
	v, err := e.Eval(p.q.Env)
	return v, err == nil
}

func operator(name string) match.CompareOp {
	switch name {
	case "$lt":
		return match.Lt
	case "$lte":
		return match.Lte
	case "$gt":
		return match.Gt
	case "$gte":
		return match.Gte
	}
	return match.Eq
}

// bounds is nodeBounds for a comparison. They are always loose. Where a field is missing its key is null.
func (c *comparison) bounds(x Index, i int, query *collation.Collation) (s Intervals, ok bool) {
	switch {
	case x.wild != nil || x.multikey(i) != 0 || hasStrings(c.than) && !collation.Equal(x.Collator(), query):
		return nil, false
	case x.isHashed(i):
		if c.op != match.Eq || c.than.IsNullish() {
			return nil, false
		}
		return x.hashes([]bson.Value{c.than}, query)
	case x.Fields[i].Kind != index.Ordered:
		return nil, false
	}
	return Intervals{c.interval()}, true
}

func (c *comparison) interval() Interval {
	v, up := c.than, c.op == match.Gt || c.op == match.Gte
	low := v.IsNullish() || v.Type == bson.TypeMinKey
	switch {
	case c.op == match.Eq && v.Type == bson.TypeNull:
		return Point(v)
	case low && up:
		return full
	case low: // all that may be null, and what is less
		return Interval{bson.MinKey, bson.Double(math.NaN()), true, false}
	case c.op == match.Eq:
		return Point(v)
	case up:
		return Interval{v, bson.MaxKey, c.op == match.Gte, true}
	}
	return Interval{bson.MinKey, v, true, c.op == match.Lte}
}
