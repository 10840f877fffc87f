package exec

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
)

// projectKey is PROJECTION_COVERED: it gives what of a record its child's index key tells, as if the record had nothing else.
// A key has null for what is missing, too, so that of a record with a null among the values wanted the document is fetched.
type projectKey struct {
	plan   *planner.Projection
	stats  *Stats
	in     working
	index  *planner.Index
	doc    *keyDoc
	fields int   // of the index
	wanted []int // the places of the values wanted
	values []bson.Value
	room   []byte // for the values
	reader *storage.Reader
	// untold says that some record has an array on the way to a value wanted, so that a key tells but of an element.
	untold bool
	// unwinds says that elements of arrays are what is wanted; a key that is undefined or an array tells none.
	unwinds bool
}

func newProjectKey(plan *planner.Projection, stats *Stats, in working) *projectKey {
	leaf := plan.Child
	for len(leaf.Children()) > 0 {
		leaf = leaf.Children()[0]
	}
	x := planner.IndexOf(leaf)
	n := &projectKey{plan: plan, stats: stats, in: in, index: x, fields: len(x.Fields)}
	for i, f := range x.Fields {
		if slices.Contains(plan.Fields, f.Path) {
			n.wanted = append(n.wanted, i)
		}
	}
	if d, ok := leaf.(*planner.DistinctScan); ok {
		n.unwinds = d.Unwinds
	}
	n.doc = newKeyDoc(*x, func(path string) bool { return slices.Contains(plan.Fields, path) })
	return n
}

func (n *projectKey) work(r *reading, m *Member) (status, error) {
	s, err := n.in.work(r, m)
	if s != advanced || m.Doc != nil {
		return s, err
	}
	if n.reader == nil {
		if err := n.open(r); err != nil {
			return ended, err
		}
	}
	if n.untold || r.untrue {
		return n.fetch(r, m)
	}
	if n.values, _, err = keystring.DecodeIn(&n.room, n.values[:0], m.Entry.Key, m.Entry.TypeBits, n.fields); err != nil {
		return ended, err
	}
	for _, i := range n.wanted {
		switch t := n.values[i].Type; {
		case t == bson.TypeNull, n.unwinds && (t == bson.TypeUndefined || t == bson.TypeArray):
			return n.fetch(r, m)
		}
	}
	m.Doc, m.FromKey = n.doc.of(n.values), true
	return advanced, nil
}

// open looks whether an array has come since the plan was made.
func (n *projectKey) open(r *reading) (err error) {
	if n.reader, err = r.reader(); err != nil {
		return err
	}
	bits := n.reader.Multikey(n.index.Definition)
	for _, i := range n.wanted {
		n.untold = n.untold || !n.unwinds && i < len(bits) && bits[i] != 0
	}
	return nil
}

func (n *projectKey) fetch(r *reading, m *Member) (status, error) {
	rec, there, err := n.reader.Get(m.ID)
	if !there {
		return needTime, err
	}
	m.Record, m.FromKey = rec, false
	n.stats.Docs++
	r.seen.Docs++
	if ok, err := r.matches(nil, m.Doc); !ok || err != nil {
		return needTime, err
	}
	return advanced, nil
}

func (n *projectKey) park() {
	n.reader = nil
	n.in.park()
}

func (n *projectKey) close() error {
	n.reader = nil
	return n.in.close()
}
