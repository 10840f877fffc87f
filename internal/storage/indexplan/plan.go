// Package indexplan decides what a command does to the indexes of a collection: which it adds, changes in place, builds anew or drops. It
// works on definitions alone; who builds and commits is the store.
package indexplan

import (
	"slices"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// MaxIndexes is how many indexes a collection may have.
const MaxIndexes = 64

// Plan is what createIndexes has to do.
type Plan struct {
	// Added are the new indexes, Retimed those on _ts that get another TTL in place, with the numbers of those in whose place they go.
	Added, Retimed []*index.Definition
	// Busy is one of the indexes that is being built already; nil when none is.
	Busy *index.Definition
}

// Make plans the definitions for a collection. building are its indexes that are being built.
func Make(c *catalog.Collection, building, defs []*index.Definition) (*Plan, error) {
	p := &Plan{}
	existing := append(slices.Clone(c.Indexes), building...)
	for _, d := range defs {
		if d.OrdersIDs() && c.IsClustered() {
			continue
		}
		there, retime, err := index.Conflict(existing, d)
		switch {
		case err != nil:
			return nil, err
		case there != nil && slices.Contains(building, there):
			p.Busy = there
		case retime != nil && slices.Contains(building, retime):
			p.Busy = retime
		case retime != nil && slices.Contains(p.Added, retime):
			return nil, index.OptionsConflict(retime, d) // one command asks for two TTLs
		case retime != nil:
			p.Retimed = append(p.Retimed, index.Retimed(retime, d))
		case there == nil:
			existing = append(existing, d)
			p.Added = append(p.Added, d)
		}
		if len(existing) > MaxIndexes {
			return nil, mongoerr.New(mongoerr.CannotCreateIndex, "add index fails, too many indexes for %s key:%s", c.NS, d.Key)
		}
	}
	return p, nil
}

// IsNothing says whether there is nothing to do, or to wait for.
func (p *Plan) IsNothing() bool {
	return len(p.Added) == 0 && len(p.Retimed) == 0 && p.Busy == nil
}

// Retime is a copy of c with those of the plan's indexes that it has already, and which those are.
func (p *Plan) Retime(c *catalog.Collection) (next *catalog.Collection, retimed []*index.Definition) {
	next = c.WithIndexes(slices.Clone(c.Indexes))
	for _, d := range p.Retimed {
		i := slices.IndexFunc(next.Indexes, func(e *index.Definition) bool { return e.ID == d.ID })
		if i >= 0 { // otherwise it was dropped while others were built
			next.Indexes[i] = d
			retimed = append(retimed, d)
		}
	}
	return next, retimed
}

// Next is a copy of c with all of the plan's indexes.
func (p *Plan) Next(c *catalog.Collection) *catalog.Collection {
	next, _ := p.Retime(c)
	return c.WithIndexes(append(next.Indexes, p.Added...))
}

// Reshaped are those of next's indexes whose entries have another form than before, and have to be built anew.
func Reshaped(c, next *catalog.Collection) (again []*index.Definition) {
	for _, d := range next.Indexes {
		if old := c.IndexByID(d.ID); old != nil && (old.Unique != d.Unique || old.Kind != d.Kind) {
			again = append(again, d)
		}
	}
	return again
}

// Anew is a copy of c with indexes in the place of others.
func Anew(c *catalog.Collection, old, anew []*index.Definition) *catalog.Collection {
	defs := slices.Clone(c.Indexes)
	for i, d := range defs {
		if j := slices.Index(old, d); j >= 0 {
			defs[i] = anew[j]
		}
	}
	return c.WithIndexes(defs)
}

// Without are the collection's indexes but those that go. The one on _id does not.
func Without(c *catalog.Collection, going []*index.Definition) (stay []*index.Definition, err error) {
	for _, d := range c.Indexes {
		gone := slices.ContainsFunc(going, func(g *index.Definition) bool { return g.ID == d.ID })
		if gone && d.IsID() {
			return nil, mongoerr.New(mongoerr.InvalidOptions, "cannot drop _id index")
		}
		if !gone {
			stay = append(stay, d)
		}
	}
	return stay, nil
}
