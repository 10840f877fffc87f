package indexddl

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/build"
	"github.com/ebbdb/ebb/internal/storage/indexplan"
	"github.com/ebbdb/ebb/internal/storage/loosen"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

// DropIndexes drops the indexes that pick chooses and returns how many there were before. What is hidden by a TTL index
// that goes is deleted first: it does not come back. The index on _id stays. pick sees the indexes that are being built,
// too: a build all of whose indexes are picked is aborted, and part of one cannot be dropped.
func (d *DDL) DropIndexes(ctx context.Context, ns namespace.NS, pick func(*catalog.Collection) ([]*index.Definition, error)) (before int, err error) {
	before, _, err = d.DropIndexesWith(ctx, ns, ttlchange.OnHidden{}, pick)
	return before, err
}

// DropIndexesWith is DropIndexes that is told what to do with what is hidden.
func (d *DDL) DropIndexesWith(ctx context.Context, ns namespace.NS, how ttlchange.OnHidden, pick func(*catalog.Collection) ([]*index.Definition, error)) (before int, hidden ttlchange.Loosened, err error) {
	gone, err := storage.Apart(ctx, d.store, func(ctx context.Context, gone *dropped) (err error) {
		l := d.Begin(how)
		defer l.Close()
		pick := attended(ctx, pick)
		for done := false; !done && err == nil; {
			done, err = d.tryDropIndexes(ctx, ns, l, pick, gone)
		}
		gone.hidden, err = l.End(err)
		return err
	})
	return gone.before, gone.hidden, err
}

// dropped is what DropIndexes did.
type dropped struct {
	before int
	hidden ttlchange.Loosened
}

// tryDropIndexes is not done when an index build has ended after pick saw it.
func (d *DDL) tryDropIndexes(ctx context.Context, ns namespace.NS, l *loosen.Change, pick func(*catalog.Collection) ([]*index.Definition, error), gone *dropped) (done bool, err error) {
	c, release, err := d.store.LockToChange(ctx, ns)
	if err != nil {
		return false, err
	}
	defer release()
	p, err := planDrop(c, pick)
	if err != nil {
		return false, err
	}
	l.ToBe(c, p.next)
	if same, err := l.Ahead(ctx, p.next); !same || err != nil {
		return false, err
	}
	gone.before = p.before
	return true, d.replace(ctx, c, l, p.next, func() {
		for _, b := range p.stopped {
			c.Abort(b, "dropIndexes command")
		}
		gone.hidden = l.Done()
	})
}

// dropPlan is what DropIndexes has to do.
type dropPlan struct {
	before  int // how many indexes there are
	stopped []*build.Underway
	next    *catalog.Collection
}

func planDrop(c storage.Collection, pick func(*catalog.Collection) ([]*index.Definition, error)) (p dropPlan, err error) {
	if c.IsView() {
		return p, isView(c.NS)
	}
	all := withBuilding(c)
	going, err := pick(all)
	if err != nil {
		return p, err
	}
	p.before = len(all.Indexes)
	if p.stopped, err = buildsAmong(c, going); err != nil {
		return p, err
	}
	stay, err := indexplan.Without(c.Collection, going)
	if err == nil {
		p.next = c.WithIndexes(stay)
	}
	return p, err
}

// withBuilding is the collection as if the indexes that are being built were there.
func withBuilding(c storage.Collection) *catalog.Collection {
	builds := c.Builds()
	if len(builds) == 0 {
		return c.Collection
	}
	all := slices.Clone(c.Indexes)
	for _, b := range builds {
		all = append(all, b.Definitions...)
	}
	return c.WithIndexes(all)
}

// buildsAmong are the builds of the indexes in going.
func buildsAmong(c storage.Collection, going []*index.Definition) (builds []*build.Underway, err error) {
	for _, b := range c.Builds() {
		n := 0
		for _, d := range b.Definitions {
			if slices.Contains(going, d) {
				n++
			}
		}
		switch n {
		case 0:
		case len(b.Definitions):
			builds = append(builds, b)
		default:
			return nil, c.RefuseWhileBuilding()
		}
	}
	return builds, nil
}
