package storage

import (
	"context"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/garbage"
	"github.com/ebbdb/ebb/internal/storage/indexplan"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// Modify changes a collection's options and its indexes' definitions in one commit: what modify returns takes the place of
// what it is given, with the same number, name and uuid, and indexes with the same numbers. An index that becomes unique
// is built anew, which fails with DuplicateKey; so is one that stops being unique. What is hidden by a TTL that is
// lengthened, taken away or made visible is deleted first: it does not come back.
//
// Nobody writes to the collection meanwhile. modify may be called again.
func (s *Store) Modify(ctx context.Context, ns namespace.NS, modify func(*catalog.Collection) (*catalog.Collection, error)) error {
	_, err := s.ModifyWith(ctx, ns, OnHidden{}, modify)
	return err
}

// ModifyWith is Modify that is told what to do with what is hidden.
func (s *Store) ModifyWith(ctx context.Context, ns namespace.NS, how OnHidden, modify func(*catalog.Collection) (*catalog.Collection, error)) (Loosened, error) {
	l := &loosening{store: s, how: how}
	defer l.close()
	return l.end(s.modify(ctx, ns, l, modify))
}

func (s *Store) modify(ctx context.Context, ns namespace.NS, l *loosening, modify func(*catalog.Collection) (*catalog.Collection, error)) error {
	found, release, err := s.lockToChange(ctx, ns)
	if err != nil {
		return err
	}
	defer release()
	if found[0] == nil {
		return notFound(ns)
	}
	if err := found[0].refuseWhileBuilding(); err != nil {
		return err
	}
	next, err := modify(found[0].Collection)
	if err != nil {
		return err
	}
	l.toBe(found[0], next)
	if _, err := l.ahead(ctx, next); err != nil { // the collection stays as it is: nothing is built
		return err
	}
	return s.replace(ctx, l, next, func() {})
}

// replace puts next in the place of l's collection, whose lock is held. It calls settled when nothing hidden is in the way any more.
func (s *Store) replace(ctx context.Context, l *loosening, next *catalog.Collection, settled func()) (err error) {
	c := l.c
	defer func() {
		if err != nil {
			c.thaw()
		}
	}()
	if err := l.settle(ctx); err != nil {
		return err
	}
	settled()
	again := indexplan.Reshaped(c.Collection, next)
	build, err := s.build(ctx, c, again, l.how)
	if err != nil {
		return err
	}
	defer build.close()
	err = s.change(ctx, func(ch *change) error {
		ch.renew = l.renews
		anew, err := build.finish(ch)
		if err != nil {
			return err
		}
		next = indexplan.Anew(next, again, anew)
		if err := ch.put(next); err != nil {
			return err
		}
		ch.dropGone(c.Collection, next)
		ch.tellModified(c.Collection, next)
		return nil
	})
	if err != nil {
		build.abandon()
	}
	return err
}

// dropGone discards the entries of the indexes that next does not have.
func (c *change) dropGone(old, next *catalog.Collection) {
	for _, d := range old.Indexes {
		if next.IndexByID(d.ID) == nil {
			c.discard(garbage.OfIndex(d.ID))
			if next.Index(d.Name) == nil { // otherwise it was built anew
				c.tell(meaning.IndexDropped, next, d)
			}
		}
	}
}

func (c *change) tellModified(old, next *catalog.Collection) {
	for _, d := range next.Indexes {
		if before := old.Index(d.Name); before != nil && before != d {
			c.tell(meaning.IndexModified, next, d)
		}
	}
	if string(old.Options.Doc) != string(next.Options.Doc) {
		c.tell(meaning.CollectionModified, next, nil)
	}
}

// thaw has the collection's rules hide again what expires.
func (c *collection) thaw() { c.frozen.Store(0) }
