package storage

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/indexplan"
	"github.com/ebbdb/ebb/internal/storage/meaning"
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
	Hidden Loosened
}

// CreateIndexes makes indexes, which parse reads for the collection as it then is, all in one commit or none; the
// collection is made when there is none. What exists already is left as it is; definitions that conflict are MongoDB's
// errors 85 and 86. While entries for its documents are built others write to the collection; see Build. Who wants
// what somebody is building waits for that.
func (s *Store) CreateIndexes(ctx context.Context, ns namespace.NS, parse func(*catalog.Collection) ([]*index.Definition, error)) (Created, error) {
	return s.CreateIndexesSeen(ctx, ns, OnHidden{}, parse, func(*Build) {})
}

// CreateIndexesSeen is CreateIndexes that is told what to do with what is hidden, and shows the build, if there is one, before it
// begins.
func (s *Store) CreateIndexesSeen(ctx context.Context, ns namespace.NS, how OnHidden, parse func(*catalog.Collection) ([]*index.Definition, error), seen func(*Build)) (made Created, err error) {
	l := &loosening{store: s, how: how}
	defer l.close()
	err = s.createIndexes(ctx, ns, l, parse, seen, &made)
	made.Hidden, err = l.end(err)
	return made, err
}

func (s *Store) createIndexes(ctx context.Context, ns namespace.NS, l *loosening, parse func(*catalog.Collection) ([]*index.Definition, error), seen func(*Build), made *Created) error {
	for {
		found := s.find([]namespace.NS{ns})[0]
		if found == nil {
			if err := s.createToIndex(ctx, ns, parse, made); err != nil {
				*made = Created{}
				return err
			}
			continue
		}
		done, err := s.createOn(ctx, ns, l, parse, seen, made)
		if done || err != nil {
			return err
		}
	}
}

// createToIndex makes the collection, if the definitions are good for it.
func (s *Store) createToIndex(ctx context.Context, ns namespace.NS, parse func(*catalog.Collection) ([]*index.Definition, error), made *Created) error {
	if _, err := parse(&catalog.Collection{NS: ns, Options: catalog.ReadOptions(nil)}); err != nil {
		return err
	}
	_, err := s.CreateCollection(ctx, ns, nil)
	made.Collection = err == nil
	if mongoerr.Is(err, mongoerr.NamespaceExists) {
		return nil
	}
	return err
}

// createOn is not done when the collection has gone before it was locked, or somebody else's build has ended meanwhile.
func (s *Store) createOn(ctx context.Context, ns namespace.NS, l *loosening, parse func(*catalog.Collection) ([]*index.Definition, error), seen func(*Build), made *Created) (done bool, err error) {
	if c := s.find([]namespace.NS{ns})[0]; c != nil {
		p, err := s.planIndexes(c, parse)
		if err == nil && p.IsNothing() { // as most often, when a client makes sure at its start
			p.report(c, made)
			return true, nil
		}
	}
	p, b, err := s.startIndexes(ctx, ns, l, parse, made)
	switch {
	case err != nil || p.Plan == nil:
		return false, err
	case p.busy != nil:
		return false, p.busy.wait(ctx)
	case b != nil:
		seen(b)
		return true, b.run(p, l, made)
	}
	return true, nil
}

// startIndexes plans under the lock and does at once what needs no long build. b is the build that remains to be run. p is
// empty when there is no such collection, or when another build has ended after it was planned.
func (s *Store) startIndexes(ctx context.Context, ns namespace.NS, l *loosening, parse func(*catalog.Collection) ([]*index.Definition, error), made *Created) (p indexPlan, b *Build, err error) {
	found, release, err := s.lockToChange(ctx, ns)
	if err != nil {
		return indexPlan{}, nil, err
	}
	defer release()
	c := found[0]
	if c == nil {
		return indexPlan{}, nil, nil
	}
	if p, err = s.planIndexes(c, parse); err != nil || p.busy != nil {
		return p, nil, err
	}
	p.report(c, made)
	small := len(p.Added) == 0
	if !small {
		if small, err = s.isSmall(ctx, c); err != nil {
			return indexPlan{}, nil, err
		}
	}
	if len(p.Added) > 0 {
		if err := s.room(0); err != nil {
			return indexPlan{}, nil, err
		}
	}
	switch {
	case p.IsNothing():
		return p, nil, nil
	case small:
		next, _ := p.Retime(c.Collection)
		l.toBe(c, next)
		if same, err := l.ahead(ctx, next); !same || err != nil {
			return indexPlan{}, nil, err
		}
		return p, nil, s.createAtOnce(ctx, c, p, l, made)
	}
	if b, err = s.publish(ctx, c, p.Added, l.how); b != nil {
		b.grows = true
	}
	return p, b, err
}

// indexPlan is what CreateIndexes has to do.
type indexPlan struct {
	*indexplan.Plan
	busy *Build // builds one of them already
}

func (p *indexPlan) report(c *collection, made *Created) {
	made.Before = len(c.Indexes)
	made.After = made.Before + len(p.Added)
}

func (s *Store) planIndexes(c *collection, parse func(*catalog.Collection) ([]*index.Definition, error)) (p indexPlan, err error) {
	if c.IsView() {
		return p, mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", c.NS)
	}
	defs, err := parse(c.Collection)
	if err != nil {
		return p, err
	}
	builds := c.state.building()
	var building []*index.Definition
	for _, b := range builds {
		building = append(building, b.Definitions...)
	}
	if p.Plan, err = indexplan.Make(c.Collection, building, defs); err != nil || p.Busy == nil {
		return p, err
	}
	p.busy = builds[slices.IndexFunc(builds, func(b *Build) bool { return slices.Contains(b.Definitions, p.Busy) })]
	return p, nil
}

// createAtOnce builds indexes while the collection's lock is held.
func (s *Store) createAtOnce(ctx context.Context, c *collection, p indexPlan, l *loosening, made *Created) error {
	var b *Build
	err := s.putIndexes(ctx, c, p, l, made, func() (_ *Build, err error) {
		b, err = s.build(ctx, c, p.Added, l.how)
		return b, err
	})
	if b != nil {
		defer b.close()
		if err != nil {
			b.abandon()
		}
	}
	if err != nil && len(p.Added) > 0 && ctx.Err() == nil {
		return failedBuild(newUUID(), c.Collection, err)
	}
	return err
}

// putIndexes commits a plan. The collection's lock is held exclusively. What the plan makes expire goes first; only then ready,
// which may delete some too, brings the new indexes' entries up to date.
func (s *Store) putIndexes(ctx context.Context, c *collection, p indexPlan, l *loosening, made *Created, ready func() (*Build, error)) (err error) {
	defer func() {
		if err != nil {
			c.thaw()
		}
	}()
	next, retimed := p.Retime(c.Collection)
	made.Retimed = retimed
	l.toBe(c, next)
	if err := l.settle(ctx); err != nil {
		return err
	}
	b, err := ready()
	if err != nil {
		return err
	}
	return s.publishIndexes(ctx, c, next, b, l, made)
}

// publishIndexes puts next with the indexes that were built into the catalogue.
func (s *Store) publishIndexes(ctx context.Context, c *collection, next *catalog.Collection, b *Build, l *loosening, made *Created) error {
	return s.change(ctx, func(ch *change) error {
		ch.renew = l.renews
		defs, err := b.finish(ch)
		if err != nil {
			return err
		}
		next.Indexes = append(next.Indexes, defs...)
		l.after = next.ExpiryRules() // new ones may hide what others do not any more
		made.Indexes, made.After = defs, len(next.Indexes)
		if err := ch.put(next); err != nil {
			return err
		}
		for _, d := range defs {
			ch.tell(meaning.IndexCreated, next, d)
		}
		ch.tellModified(c.Collection, next)
		return nil
	})
}
