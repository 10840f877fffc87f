package indexddl

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/build"
	"github.com/ebbdb/ebb/internal/storage/catalogchange"
	"github.com/ebbdb/ebb/internal/storage/indexplan"
	"github.com/ebbdb/ebb/internal/storage/loosen"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

// Created is what CreateIndexes did.
type Created struct {
	// Before and After count the collection's indexes; the order of a clustered collection is none.
	Before, After int
	// Collection says whether the collection was made.
	Collection bool
	// Indexes are the new ones, Retimed those on _ts that got another TTL in place.
	Indexes, Retimed []*index.Definition
	// Hidden is what became of documents that a TTL hid which got longer.
	Hidden ttlchange.Loosened
}

// CreateIndexes makes indexes, which parse reads for the collection as it then is, all in one commit or none; the
// collection is made when there is none. What exists already is left as it is; definitions that conflict are MongoDB's
// errors 85 and 86. While entries for its documents are built others write to the collection; see builder. Who wants
// what somebody is building waits for that.
func (d *DDL) CreateIndexes(ctx context.Context, ns namespace.NS, parse func(*catalog.Collection) ([]*index.Definition, error)) (Created, error) {
	return d.CreateIndexesSeen(ctx, ns, ttlchange.OnHidden{}, parse, func(*build.Underway) {})
}

// CreateIndexesSeen is CreateIndexes that is told what to do with what is hidden, and shows the build, if there is one, before it
// begins.
func (d *DDL) CreateIndexesSeen(ctx context.Context, ns namespace.NS, how ttlchange.OnHidden, parse func(*catalog.Collection) ([]*index.Definition, error), seen func(*build.Underway)) (Created, error) {
	return storage.Apart(ctx, d.store, func(ctx context.Context, made *Created) (err error) {
		l := d.Begin(how)
		defer l.Close()
		err = d.createIndexes(ctx, ns, l, attended(ctx, parse), seen, made)
		made.Hidden, err = l.End(err)
		return err
	})
}

func (d *DDL) createIndexes(ctx context.Context, ns namespace.NS, l *loosen.Change, parse func(*catalog.Collection) ([]*index.Definition, error), seen func(*build.Underway), made *Created) error {
	for {
		if _, ok := d.store.CollectionNamed(ns); !ok {
			if err := d.createToIndex(ctx, ns, parse, made); err != nil {
				*made = Created{}
				return err
			}
			continue
		}
		done, err := d.createOn(ctx, ns, l, parse, seen, made)
		if done || err != nil {
			return err
		}
	}
}

// createToIndex makes the collection, if the definitions are good for it.
func (d *DDL) createToIndex(ctx context.Context, ns namespace.NS, parse func(*catalog.Collection) ([]*index.Definition, error), made *Created) error {
	if _, err := parse(&catalog.Collection{NS: ns, Options: catalog.ReadOptions(nil)}); err != nil {
		return err
	}
	_, err := d.store.CreateCollection(ctx, ns, nil)
	made.Collection = err == nil
	if mongoerr.Is(err, mongoerr.NamespaceExists) {
		return nil
	}
	return err
}

// createOn is not done when the collection has gone before it was locked, or somebody else's build has ended meanwhile.
func (d *DDL) createOn(ctx context.Context, ns namespace.NS, l *loosen.Change, parse func(*catalog.Collection) ([]*index.Definition, error), seen func(*build.Underway), made *Created) (done bool, err error) {
	if c, ok := d.store.CollectionNamed(ns); ok {
		p, err := planIndexes(c.Collection, c.Builds(), parse)
		if err != nil {
			return false, err
		}
		if p.IsNothing() { // as most often, when a client makes sure at its start
			p.report(c.Collection, made)
			return true, nil
		}
	}
	p, b, err := d.startIndexes(ctx, ns, l, parse, made)
	switch {
	case err != nil || p.Plan == nil:
		return false, err
	case p.busy != nil:
		return false, p.busy.Wait(ctx)
	case b != nil:
		if ctx.Err() == nil { // or the build ends at once, and nobody may be there to see it
			seen(b.Underway)
		}
		return true, b.run(p, l, made)
	}
	return true, nil
}

// startIndexes plans under the lock and does at once what needs no long build. b is the build that remains to be run. p is
// empty when there is no such collection, or when another build has ended after it was planned.
func (d *DDL) startIndexes(ctx context.Context, ns namespace.NS, l *loosen.Change, parse func(*catalog.Collection) ([]*index.Definition, error), made *Created) (p indexPlan, b *builder, err error) {
	c, release, err := d.store.LockToChange(ctx, ns)
	if mongoerr.Is(err, mongoerr.NamespaceNotFound) {
		return indexPlan{}, nil, nil
	}
	if err != nil {
		return indexPlan{}, nil, err
	}
	defer release()
	if p, err = planIndexes(c.Collection, c.Builds(), parse); err != nil || p.busy != nil {
		return p, nil, err
	}
	p.report(c.Collection, made)
	small := len(p.Added) == 0
	if !small {
		if small, err = d.isSmall(ctx, c); err != nil {
			return indexPlan{}, nil, err
		}
		if err := d.store.Room(); err != nil {
			return indexPlan{}, nil, err
		}
	}
	switch {
	case p.IsNothing():
		return p, nil, nil
	case small:
		next, _ := p.Retime(c.Collection)
		l.ToBe(c, next)
		if same, err := l.Ahead(ctx, next); !same || err != nil {
			return indexPlan{}, nil, err
		}
		return p, nil, d.createAtOnce(ctx, c, p, l, made)
	}
	b, err = d.begin(ctx, c, p.Added, l.How())
	return p, b, err
}

// indexPlan is what CreateIndexes has to do.
type indexPlan struct {
	*indexplan.Plan
	busy *build.Underway // builds one of them already
}

func (p *indexPlan) report(c *catalog.Collection, made *Created) {
	made.Before = len(c.Indexes)
	made.After = made.Before + len(p.Added)
}

func planIndexes(c *catalog.Collection, builds []*build.Underway, parse func(*catalog.Collection) ([]*index.Definition, error)) (p indexPlan, err error) {
	if c.IsView() {
		return p, isView(c.NS)
	}
	defs, err := parse(c)
	if err != nil {
		return p, err
	}
	var building []*index.Definition
	for _, b := range builds {
		building = append(building, b.Definitions...)
	}
	if p.Plan, err = indexplan.Make(c, building, defs); err != nil || p.Busy == nil {
		return p, err
	}
	p.busy = builds[slices.IndexFunc(builds, func(b *build.Underway) bool { return slices.Contains(b.Definitions, p.Busy) })]
	return p, nil
}

// createAtOnce builds indexes while the collection's lock is held.
func (d *DDL) createAtOnce(ctx context.Context, c storage.Collection, p indexPlan, l *loosen.Change, made *Created) error {
	next, err := settleIndexes(ctx, c, p, l, made)
	if err == nil {
		err = d.changeBuilt(ctx, c, p.Added, l, putIndexes(c, next, l, made))
	}
	if err == nil {
		return nil
	}
	c.Thaw()
	if len(p.Added) > 0 && ctx.Err() == nil {
		return failedBuild(catalog.NewUUID(), c.Collection, err)
	}
	return err
}

// settleIndexes has go what the plan makes expire. Only then the new indexes' entries are brought up to date, for which some may go too.
// The collection's lock is held exclusively. next is the collection without the new indexes.
func settleIndexes(ctx context.Context, c storage.Collection, p indexPlan, l *loosen.Change, made *Created) (next *catalog.Collection, err error) {
	next, made.Retimed = p.Retime(c.Collection)
	l.ToBe(c, next)
	return next, l.Settle(ctx)
}

// putIndexes puts next with the indexes that were built into the catalogue.
func putIndexes(c storage.Collection, next *catalog.Collection, l *loosen.Change, made *Created) func(*catalogchange.Change, []*index.Definition) error {
	return func(ch *catalogchange.Change, defs []*index.Definition) error {
		next.Indexes = append(next.Indexes, defs...)
		l.After(next)
		made.Indexes, made.After, made.Hidden = defs, len(next.Indexes), l.Done()
		if err := ch.Put(next); err != nil {
			return err
		}
		for _, d := range defs {
			ch.Tell(meaning.IndexCreated, next, d)
		}
		tellModified(ch, c.Collection, next)
		return nil
	}
}
