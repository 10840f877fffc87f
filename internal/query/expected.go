package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
)

// Expected is which collection a client means by a name. It is compared with the one that is read or written in the end, so
// that a rename that comes in between is seen.
type Expected struct {
	NS   namespace.NS
	UUID [16]byte
}

// check refuses to go on when coll is not what the client means by ns; nil stands for no collection. Other names than the
// client's are none of its business.
func (x *Expected) check(ns namespace.NS, coll *catalog.Collection, all *catalog.Catalog) error {
	if x == nil || ns != x.NS || coll != nil && !coll.IsView() && coll.UUID == x.UUID {
		return nil
	}
	actual := bson.Null
	if c := all.ByUUID(x.UUID); c != nil && c.NS.DB == ns.DB {
		actual = bson.String(c.NS.Coll)
	}
	return mongoerr.New(mongoerr.CollectionUUIDMismatch, "Collection UUID does not match that specified").WithExtra(
		bson.Build().String("db", ns.DB).Binary("collectionUUID", 4, x.UUID[:]).String("expectedCollection", ns.Coll).Value("actualCollection", actual).Doc())
}

// CheckExpected refuses to go on when x's name does not stand for x's collection. A nil x expects nothing.
func (e *Engine) CheckExpected(x *Expected) error { return x.checkIn(e.Store.Catalog()) }

// CheckExpectedIn is CheckExpected for a statement of a transaction.
func (e *Engine) CheckExpectedIn(x *Expected, t *storage.Txn) error {
	return x.checkIn(t.View().Catalog())
}

func (x *Expected) checkIn(all *catalog.Catalog) error {
	if x == nil {
		return nil
	}
	return x.check(x.NS, all.Collection(x.NS), all)
}

// writeExpected is writeOne where the call expects a collection, which is then never made.
func (e *Engine) writeExpected(ctx context.Context, ns namespace.NS, create bool, call *Call, f func(*storage.Writer) error) error {
	plain, x := *call, call.Expected
	plain.Expected = nil
	if ns != x.NS {
		return e.writeOne(ctx, ns, create, &plain, f)
	}
	if err := x.checkIn(e.catalog(call)); err != nil {
		return err
	}
	defer func() { call.Keys = plain.Keys }()
	err := e.writeOne(ctx, ns, false, &plain, func(w *storage.Writer) error {
		if err := x.check(ns, w.Catalog(), e.catalog(call)); err != nil {
			return err
		}
		return f(w)
	})
	if missingCollection(err) { // it was dropped meanwhile
		return x.check(ns, nil, e.catalog(call))
	}
	return err
}
