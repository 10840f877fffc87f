package indexddl

import (
	"context"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/catalogchange"
	"github.com/ebbdb/ebb/internal/storage/garbage"
	"github.com/ebbdb/ebb/internal/storage/indexplan"
	"github.com/ebbdb/ebb/internal/storage/loosen"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

// Modify changes a collection's options and its indexes' definitions in one commit: what modify returns takes the place of
// what it is given, with the same number, name and uuid, and indexes with the same numbers. An index that becomes unique
// is built anew, which fails with DuplicateKey; so is one that stops being unique. What is hidden by a TTL that is
// lengthened, taken away or made visible is deleted first: it does not come back.
//
// Nobody writes to the collection meanwhile. modify may be called again.
func (d *DDL) Modify(ctx context.Context, ns namespace.NS, modify func(*catalog.Collection) (*catalog.Collection, error)) error {
	_, err := d.ModifyWith(ctx, ns, ttlchange.OnHidden{}, modify)
	return err
}

// ModifyWith is Modify that is told what to do with what is hidden.
func (d *DDL) ModifyWith(ctx context.Context, ns namespace.NS, how ttlchange.OnHidden, modify func(*catalog.Collection) (*catalog.Collection, error)) (ttlchange.Loosened, error) {
	return d.modifyBy(ctx, ns, how, modify, d.replace)
}

// replacement puts next in the place of a collection, whose locks are held, by the change l. It calls settled when nothing hidden is in the
// way any more.
type replacement func(ctx context.Context, c storage.Collection, l *loosen.Change, next *catalog.Collection, settled func()) error

func (d *DDL) modifyBy(ctx context.Context, ns namespace.NS, how ttlchange.OnHidden, modify func(*catalog.Collection) (*catalog.Collection, error), replace replacement) (ttlchange.Loosened, error) {
	return storage.Apart(ctx, d.store, func(ctx context.Context, hidden *ttlchange.Loosened) (err error) {
		l := d.Begin(how)
		defer l.Close()
		*hidden, err = l.End(d.modify(ctx, ns, l, attended(ctx, modify), replace, hidden))
		return err
	})
}

func (d *DDL) modify(ctx context.Context, ns namespace.NS, l *loosen.Change, modify func(*catalog.Collection) (*catalog.Collection, error), replace replacement, hidden *ttlchange.Loosened) error {
	c, release, err := d.store.LockToChange(ctx, ns)
	if err != nil {
		return err
	}
	defer release()
	if err := c.RefuseWhileBuilding(); err != nil {
		return err
	}
	next, err := modify(c.Collection)
	if err != nil {
		return err
	}
	l.ToBe(c, next)
	if _, err := l.Ahead(ctx, next); err != nil { // the collection stays as it is: nothing is built
		return err
	}
	return replace(ctx, c, l, next, func() { *hidden = l.Done() })
}

// replace is the replacement that leaves the records where they are.
func (d *DDL) replace(ctx context.Context, c storage.Collection, l *loosen.Change, next *catalog.Collection, settled func()) (err error) {
	defer func() {
		if err != nil {
			c.Thaw()
		}
	}()
	if err := l.Settle(ctx); err != nil {
		return err
	}
	settled()
	again := indexplan.Reshaped(c.Collection, next)
	return d.changeBuilt(ctx, c, again, l, func(ch *catalogchange.Change, anew []*index.Definition) error {
		next = indexplan.Anew(next, again, anew)
		if err := ch.Put(next); err != nil {
			return err
		}
		dropGone(ch, c.Collection, next)
		tellModified(ch, c.Collection, next)
		return nil
	})
}

// dropGone discards the entries of the indexes that next does not have.
func dropGone(ch *catalogchange.Change, old, next *catalog.Collection) {
	for _, d := range old.Indexes {
		if next.IndexByID(d.ID) == nil {
			ch.Discard(garbage.OfIndex(d.ID))
			if next.Index(d.Name) == nil { // otherwise it was built anew
				ch.Tell(meaning.IndexDropped, next, d)
			}
		}
	}
}

func tellModified(ch *catalogchange.Change, old, next *catalog.Collection) {
	for _, d := range next.Indexes {
		if before := old.Index(d.Name); before != nil && before != d {
			ch.Tell(meaning.IndexModified, next, d)
		}
	}
	if string(old.Options.Doc) != string(next.Options.Doc) {
		ch.Tell(meaning.CollectionModified, next, nil)
	}
}
