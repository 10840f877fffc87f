package exec

import (
	"context"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
)

// reading is what the nodes of one tree share.
type reading struct {
	ctx context.Context // of the call under way
	src Source
	env *expr.Env
	// op is the operation's, nil for one whose plan does not sort.
	op *Op
	// held is what nodes remember of records, and what a race has found.
	held holding
	// turns are the operation's, and own where it has no Op.
	turns *turns
	own   turns
	// seen counts what leaves and fetches look at, for all of the operation.
	seen *Examined
	// whole is the filter of the whole query; details, when not nil, is filled where a document is held against it.
	whole   *match.Filter
	details *match.Details
	// untrue says that an index has got keys of arrays since the plan was made: what the bounds and keys were to see to has
	// to be looked at in the documents.
	untrue bool
	// repeats: see Opening.
	repeats bool
}

// under tells which call is under way.
func (r *reading) under(ctx context.Context) {
	r.ctx = ctx
	if r.op != nil { // for the loops of the sorts in the plan
		r.op.root().ctx = ctx
	}
}

// reader is the collection in the view of now.
func (r *reading) reader() (*storage.Reader, error) { return r.src.Reader(r.ctx) }

// remember takes note of n bytes that a node keeps until the tree is closed.
func (r *reading) remember(n int) error {
	if r.op == nil {
		return nil
	}
	r.held.op = r.op
	if r.op.Memory.Take(int64(n)) {
		r.held.bytes += int64(n)
		return nil
	}
	return r.held.wait(r.ctx, int64(n))
}

// forgetAll ends what remember began.
func (r *reading) forgetAll() {
	if r.op != nil {
		r.held.op = r.op
		r.held.empty()
	}
}

// matches holds doc against f; nil takes all.
func (r *reading) matches(f *match.Filter, doc bson.Doc) (bool, error) {
	if r.untrue {
		f = r.whole
	}
	switch {
	case f == nil:
		return true, nil
	case r.details != nil && f == r.whole:
		return f.MatchDetails(r.env, doc, r.details)
	}
	return f.Match(r.env, doc)
}

// want is what the nodes above need of a member.
type want struct {
	// fetched: a Fetch above looks at every record, and so sees which are hidden.
	fetched bool
	// score: what the word of a text index scores.
	score bool
	// indexKey: the key by which the record was found, as a document.
	indexKey bool
	// most is how many are wanted, about; 0: all there are.
	most int64
}

// leastAhead is how many entries are read at once at least, where they are neighbours: some records may not match.
const leastAhead = 4

// ahead is how many entries of so many spans an index scan reads at first, so that their records are looked for together: no more than about as many as
// are wanted.
func (w want) ahead(spans int) int {
	switch {
	case w.most == 0:
		return storage.MaxAhead
	case spans == 1:
		return int(min(max(w.most, leastAhead), storage.MaxAhead))
	}
	return int(min(w.most, storage.MaxAhead))
}

// within is w where no more than most are wanted.
func (w want) within(most int64) want {
	if w.most == 0 || most < w.most {
		w.most = most
	}
	return w
}

// opener makes nodes of a plan's.
type opener struct{ r *reading }

func (o opener) open(n planner.Node, w want) working {
	stats := &Stats{}
	return working{o.node(n, stats, w), stats}
}

// child opens a node below the one whose stats are given.
func (o opener) child(n planner.Node, parent *Stats, w want) working {
	c := o.open(n, w)
	parent.Children = append(parent.Children, c.Stats)
	return c
}

func (o opener) children(nodes []planner.Node, parent *Stats, w want) (all []working) {
	for _, n := range nodes {
		all = append(all, o.child(n, parent, w))
	}
	return all
}

func (o opener) node(n planner.Node, stats *Stats, w want) node {
	switch n := n.(type) {
	case *planner.CollScan:
		if n.One {
			return &recordGet{n, loneRecord{stats: stats}}
		}
		return &collScan{plan: n, stats: stats}
	case *planner.IDHack:
		return &idHack{n, loneRecord{stats: stats}, w.indexKey}
	case *planner.EOF:
		return nothing{}
	case *planner.IndexScan:
		return newIndexScan(n, stats, w)
	case *planner.Fetch:
		w.fetched = true
		f := &fetch{plan: n, stats: stats, in: o.child(n.Child, stats, w)}
		if scan, ok := f.in.node.(*indexScan); ok {
			f.scan, scan.ahead = scan, w.ahead(len(scan.plan.Ranges))
		}
		return f
	case *planner.Or:
		return &or{plan: n, inputs: o.children(n.Inputs, stats, w), given: givenIDs{stats: stats}}
	case *planner.TextMatch:
		w.indexKey = false
		return &textMatch{plan: n, stats: stats, in: o.child(n.Child, stats, w)}
	case *planner.TextOr:
		w.indexKey = false
		w.fetched = true
		w.score = true
		return &textOr{plan: n, stats: stats, inputs: o.children(n.Inputs, stats, w), places: map[string]int{}}
	case *planner.CountScan:
		return newCountScan(n, stats)
	case *planner.DistinctScan:
		return newDistinctScan(n, stats, w)
	case *planner.SortMerge:
		return newMergeInputs(n, stats, o.children(n.Inputs, stats, w))
	case *planner.Projection:
		if n.Covered {
			return newProjectKey(n, stats, o.child(n.Child, stats, w))
		}
	case *planner.Sort:
		return o.sort(n, stats, w)
	case *planner.Skip:
		if w.most > 0 {
			w.most += n.N
		}
		return &skipNode{n.N, o.child(n.Child, stats, w)}
	case *planner.Limit:
		return &limitNode{n.N, o.child(n.Child, stats, w.within(n.N))}
	case *planner.GeoNear:
		return &nearScan{plan: n, stats: stats, rest: planner.FilterOf(n)}
	}
	panic(fmt.Sprintf("exec: no node for %T", n))
}

// letGo closes what a node has open in its view, if it has.
func letGo[C interface {
	comparable
	Close() error
}](open *C) error {
	var none C
	c := *open
	*open = none
	if c == none {
		return nil
	}
	return c.Close()
}

// nothing is the node of a query that contradicts itself.
type nothing struct{}

func (nothing) work(*reading, *Member) (status, error) { return ended, nil }
func (nothing) park()                                  {}
func (nothing) close() error                           { return nil }
