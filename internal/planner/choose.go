package planner

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// maxIndexedSolutions is how many plans are considered for one query: MongoDB's internalQueryPlannerMaxIndexedSolutions.
const maxIndexedSolutions = 64

// Choose is the plan that looks best without being tried: the first of Candidates.
func Choose(c Collection, q Query) (*Plan, error) {
	plans, err := Candidates(c, q)
	if err != nil {
		return nil, err
	}
	return plans[0], nil
}

// Candidates are the plans for q, at least one. All give the same documents, but that without an order they may come in
// another; a hint may leave out some. The first is the one to take when a race does not tell them apart.
func Candidates(c Collection, q Query) (plans []*Plan, err error) {
	defer caught(&err)
	p := &planning{c: c, q: q}
	if plans, err = p.candidates(); err != nil {
		return plans, err
	}
	plans = raced(plans)
	for _, plan := range plans {
		plan.Reached = p.reached
	}
	return plans, err
}

// maxRacedNodes is how many nodes the plans of one query may have together: each takes memory while they race.
const maxRacedNodes = 50_000

// raced are the first of plans that have no more, and the first whatever it has.
func raced(plans []*Plan) []*Plan {
	nodes := 0
	for i, plan := range plans {
		if nodes += nodesOf(plan.Root); i > 0 && nodes > maxRacedNodes {
			return slices.Clone(plans[:i])
		}
	}
	return plans
}

func nodesOf(n Node) int {
	count := 1
	for _, child := range n.Children() {
		count += nodesOf(child)
	}
	return count
}

func (p *planning) candidates() ([]*Plan, error) {
	c, q := p.c, p.q
	if q.Filter != nil {
		p.root = q.Filter.Root
		if !isAlwaysTrue(p.root) {
			p.filter = q.Filter
		}
	}
	if t := q.Filter.Text(); t != nil {
		plan := &Plan{Filter: p.filter}
		return []*Plan{plan}, plan.text(c, q, t)
	}
	near := q.Near
	if near == nil {
		near = q.Filter.Near()
	}
	if near != nil {
		plan := &Plan{Filter: p.filter}
		return []*Plan{plan}, plan.near(c, q, near)
	}
	if !q.Hint.IsNullish() {
		return p.hinted()
	}
	if q.Min != nil || q.Max != nil {
		return nil, mongoerr.New(mongoerr.NoQueryExecutionPlans, "When using min()/max() a hint of which index to use must be provided")
	}
	if id, ok := byID(c, q); ok {
		if c.Clustered != nil {
			plan := p.collScan(false)
			plan.Express = p.expressID()
			return []*Plan{plan}, nil
		}
		return []*Plan{{Root: p.counted(&IDHack{ID: id}), Filter: p.filter, Ordered: true, Counted: q.Counts, Express: p.expressID()}}, nil
	}
	if _, never := p.root.(*match.AlwaysFalse); never {
		return []*Plan{Nothing()}, nil
	}
	if plan := p.express(); plan != nil {
		return []*Plan{plan}, nil
	}
	plans := p.indexed(p.usable(), true)
	if c.Clustered != nil {
		plans = p.withRecords(plans)
	}
	if len(plans) > 0 {
		return plans, nil
	}
	if p.forbidsScan() {
		return nil, q.unplanned(mongoerr.NoQueryExecutionPlans, "No indexed plans available, and running with 'notablescan'")
	}
	return []*Plan{p.collScan(false)}, nil
}

// forbidsScan says whether all documents may not be looked at. A query without a condition may look at them.
func (p *planning) forbidsScan() bool {
	return p.c.NoTableScan && p.filter != nil && p.c.Clustered == nil
}

// planning is one query being planned.
type planning struct {
	c      Collection
	q      Query
	root   match.Node    // of the filter, nil when there is none
	filter *match.Filter // nil when it takes every document

	reached   Limits
	steps     int // since Interrupt was asked
	intervals int // of the scans that are considered
	lists     map[listKey]listBounds
}

// usable are the indexes that a plan may walk by its own choice.
func (p *planning) usable() []Index {
	return slices.DeleteFunc(p.expand(p.c.Indexes), func(x Index) bool { return x.Hidden || !x.walkable() })
}

// walkable says whether an IndexScan can walk x.
func (x Index) walkable() bool {
	return x.Built() && (x.ordered() || x.Kind == index.Hashed || x.isGeo() || x.wild != nil)
}

// ordered says whether x's keys are values in their order.
func (x Index) ordered() bool { return x.Kind == index.Ordered && x.Fields[0].Path != "" }

func isAlwaysTrue(n match.Node) bool {
	switch n := n.(type) {
	case *match.And:
		return len(n.Children) == 0
	case *match.AlwaysTrue:
		return true
	}
	return false
}

// byID finds out whether the filter asks for one _id by value.
func byID(c Collection, q Query) (bson.Value, bool) {
	if q.Filter == nil || c.Unkeyed || !collation.Equal(c.Collation, q.Collation) {
		return bson.Missing, false
	}
	eq := onlyEquality(q.Filter.Root)
	if eq == nil || eq.Path.String() != "_id" {
		return bson.Missing, false
	}
	switch eq.Value.Type {
	case bson.TypeArray, bson.TypeNull, bson.TypeRegex, bson.TypeUndefined:
		return bson.Missing, false
	}
	return eq.Value, true
}

// indexed are the plans that find documents by one of the indexes, the best at first sight first. When none of them gives
// the order that is wanted, those are added that walk a whole index for its order alone; choice says that an index must
// have all documents for that.
func (p *planning) indexed(indexes []Index, choice bool) []*Plan {
	found := p.accesses(conjuncts(p.root), nil, indexes, choice)
	if p.root == nil {
		found = nil
	}
	plans := p.finishAll(found)
	ordered := slices.ContainsFunc(plans, func(p *Plan) bool { return !p.sorts })
	if len(p.q.Order) > 0 && !ordered {
		for _, x := range indexes {
			if !x.ordered() && x.Kind != index.Hashed || choice && (x.Sparse || x.Partial() != nil) {
				continue
			}
			if s := whole(x); s.follow(p.q) {
				plans = append(plans, p.finish(access{node: s, score: scoreOrder}))
			}
		}
	}
	slices.SortStableFunc(plans, func(a, b *Plan) int { return b.score - a.score })
	p.reached.And = p.reached.And || len(plans) > maxIndexedSolutions
	return plans[:min(len(plans), maxIndexedSolutions)]
}

// maxLeftConjuncts is how many conjuncts the plans of one query may have left to hold documents against, together: each takes memory in each plan, and a
// filter of 16 MB may have a million.
const maxLeftConjuncts = 1 << 18

// finishAll makes plans of the first accesses, which are the best: as many as are considered, and no more than have room for what each leaves of the
// filter; of the first in any case.
func (p *planning) finishAll(found []access) (plans []*Plan) {
	n := len(conjuncts(p.root))
	left := 0
	for _, a := range found {
		p.step(n)
		left += n - a.seen.len()
		if len(plans) > 0 && (len(plans) == maxIndexedSolutions || left > maxLeftConjuncts) {
			p.reached.And = true
			break
		}
		plans = append(plans, p.finish(a))
	}
	return plans
}

// collScan walks the records, of a clustered collection those alone that can match. A walk that $natural asks for keeps its
// direction.
func (p *planning) collScan(backward bool) *Plan {
	s := &CollScan{Filter: p.filter, Backward: backward}
	if p.c.Clustered != nil && !p.bind(s) {
		return Nothing()
	}
	if p.c.RecordAt != nil && !p.bindTime(s) {
		return Nothing()
	}
	ordered := len(p.q.Order) == 0
	if follows, down := p.inRecordOrder(); follows && (down == backward || !p.q.isNatural()) {
		s.Backward, ordered = down, true
	}
	return p.plan(s, ordered)
}
