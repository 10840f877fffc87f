package storage

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// MaxIndexes is how many indexes a collection may have.
const MaxIndexes = 64

// Created is what CreateIndexes did.
type Created struct {
	// Before and After count the collection's indexes; the order of a clustered collection is none.
	Before, After int
	// Collection says whether the collection was made.
	Collection bool
	// Indexes are the new ones, Retimed those on _ts that got another TTL in place.
	Indexes, Retimed []*index.Definition
}

// CreateIndexes makes indexes, which parse reads for the collection as it then is, all in one commit or none; the
// collection is made when there is none. What exists already is left as it is; definitions that conflict are MongoDB's
// errors 85 and 86. Nobody writes to the collection while entries for its documents are built.
func (s *Store) CreateIndexes(ctx context.Context, ns namespace.NS, parse func(*catalog.Collection) ([]*index.Definition, error)) (made Created, err error) {
	for {
		found := s.find([]namespace.NS{ns})[0]
		if found == nil {
			if err := s.createToIndex(ctx, ns, parse, &made); err != nil {
				return Created{}, err
			}
			continue
		}
		done, err := s.createOn(ctx, ns, parse, &made)
		if done || err != nil {
			return made, err
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

// createOn is not done when the collection has gone before it was locked.
func (s *Store) createOn(ctx context.Context, ns namespace.NS, parse func(*catalog.Collection) ([]*index.Definition, error), made *Created) (done bool, err error) {
	if c := s.find([]namespace.NS{ns})[0]; c != nil {
		p, err := s.planIndexes(c, parse)
		if err == nil && p.isNothing() { // as most often, when a client makes sure at its start
			p.report(c, made)
			return true, nil
		}
	}
	found, release, err := s.lockToChange(ctx, ns)
	if err != nil {
		return false, err
	}
	defer release()
	c := found[0]
	if c == nil {
		return false, nil
	}
	p, err := s.planIndexes(c, parse)
	if err != nil {
		return false, err
	}
	p.report(c, made)
	if p.isNothing() {
		return true, nil
	}
	return true, s.commitIndexes(ctx, c, p, made)
}

// indexPlan is what CreateIndexes has to do.
type indexPlan struct {
	added   []*index.Definition
	retimed []*index.Definition // with the numbers of those in whose place they go
}

func (p *indexPlan) isNothing() bool { return len(p.added) == 0 && len(p.retimed) == 0 }

func (p *indexPlan) report(c *collection, made *Created) {
	made.Before = len(c.Indexes)
	made.After = made.Before + len(p.added)
}

func (s *Store) planIndexes(c *collection, parse func(*catalog.Collection) ([]*index.Definition, error)) (*indexPlan, error) {
	if c.IsView() {
		return nil, mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", c.NS)
	}
	defs, err := parse(c.Collection)
	if err != nil {
		return nil, err
	}
	p := &indexPlan{}
	existing := slices.Clone(c.Indexes)
	for _, d := range defs {
		if d.IsID() && c.IsClustered() {
			continue
		}
		there, retime, err := index.Conflict(existing, d)
		switch {
		case err != nil:
			return nil, err
		case retime != nil:
			p.retimed = append(p.retimed, d.WithID(retime.ID))
		case there == nil:
			existing = append(existing, d)
			p.added = append(p.added, d)
		}
		if len(existing) > MaxIndexes {
			return nil, mongoerr.New(mongoerr.CannotCreateIndex, "add index fails, too many indexes for %s key:%s", c.NS, d.Key)
		}
	}
	return p, nil
}

func (s *Store) commitIndexes(ctx context.Context, c *collection, p *indexPlan, made *Created) error {
	next := c.WithIndexes(slices.Clone(c.Indexes))
	for _, d := range p.retimed {
		i := slices.IndexFunc(next.Indexes, func(e *index.Definition) bool { return e.ID == d.ID })
		next.Indexes[i] = d
	}
	if err := s.expireLoosened(ctx, c, next); err != nil {
		return err
	}
	b, err := s.build(ctx, c, p.added)
	if err != nil {
		return err
	}
	next.Indexes = append(next.Indexes, b.definitions...)
	made.Indexes, made.Retimed = b.definitions, p.retimed
	err = s.change(ctx, func(ch *change) error {
		b.finish(ch)
		ch.put(next)
		for _, d := range b.definitions {
			ch.tell(IndexCreated, next, d)
		}
		ch.tellModified(c.Collection, next)
		return nil
	})
	if err != nil {
		b.abandon()
	}
	return err
}
