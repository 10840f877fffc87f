package indexddl

import (
	"context"
	"crypto/rand"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/loosen"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

// Cap is ModifyWith for a change that makes the collection capped, with no index but that on _id. A copy with another UUID takes the
// collection's place, as in MongoDB, where records lie in another order than that of insertion, since the oldest document of a capped
// collection is its first record; and where the oplog tells of it, since those who read that know a copy and a rename, and no other way.
func (d *DDL) Cap(ctx context.Context, ns namespace.NS, how ttlchange.OnHidden, modify func(*catalog.Collection) (*catalog.Collection, error)) (ttlchange.Loosened, error) {
	return d.modifyBy(ctx, ns, how, modify, d.replaceCapped)
}

// replaceCapped is replace for Cap.
func (d *DDL) replaceCapped(ctx context.Context, c storage.Collection, l *loosen.Change, next *catalog.Collection, settled func()) (err error) {
	if !c.IsTold() {
		inOrder, err := d.liesInserted(ctx, c)
		if err != nil {
			return err
		}
		if inOrder {
			return d.replace(ctx, c, l, next, settled)
		}
	}
	defer func() {
		if err != nil {
			c.Thaw()
		}
	}()
	if err := l.Settle(ctx); err != nil {
		return err
	}
	settled()
	return d.replaceByCopy(ctx, c, next.Options)
}

// liesInserted says whether the records of a collection, whose lock is held, lie in the order of insertion.
func (d *DDL) liesInserted(ctx context.Context, c storage.Collection) (bool, error) {
	if c.IsClustered() {
		return false, nil
	}
	view, err := d.store.View(ctx)
	if err != nil {
		return false, err
	}
	defer view.Close()
	cursor, err := c.Read(view).Unhidden().Scan(storage.RecordScan{Ordered: true})
	if err != nil {
		return false, err
	}
	defer cursor.Close()
	return !cursor.Next() && cursor.Err() == nil, cursor.Err()
}

// replaceByCopy has a copy of a collection, with other options, take its place. The caller holds the collection's locks, so that nothing is
// written to it which the copy has not.
func (d *DDL) replaceByCopy(ctx context.Context, c storage.Collection, o catalog.Options) error {
	to := CappedCopy(c.NS)
	if _, err := d.store.CreateCollection(ctx, to, catalog.WithTemp(o.Doc, true)); err != nil {
		return err
	}
	err := d.copyInserted(ctx, c, to, o.Size)
	if err == nil {
		err = d.store.RenameOver(ctx, to, c)
	}
	if err != nil { // which is the one to tell
		d.store.Afterwards(ctx, func(ctx context.Context) { _, _ = d.store.DropCollection(ctx, to) })
	}
	return err
}

// CappedCopy is a name for a copy of ns, as MongoDB makes them: as long as any other for it, and most probably of none that there is.
func CappedCopy(ns namespace.NS) namespace.NS {
	return namespace.NS{DB: ns.DB, Coll: "tmp" + rand.Text()[:5] + ".convertToCapped." + ns.Coll}
}
