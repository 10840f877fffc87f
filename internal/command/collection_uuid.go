package command

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// UUID reads an optional UUID.
func (a *Args) UUID(key string) (u [16]byte, ok bool) {
	v, ok := a.typed(key, bson.TypeBinary)
	if !ok {
		return u, false
	}
	subtype, data := v.Binary()
	switch {
	case subtype != 4:
		a.Fail(mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s.%s' is the wrong binData type '%d', expected type 'UUID'", a.path, key, subtype))
		return u, false
	case len(data) != len(u):
		a.Fail(mongoerr.New(mongoerr.InvalidUUID, "uuid must be a 16-byte binary field with UUID (4) subtype"))
		return u, false
	}
	copy(u[:], data)
	return u, true
}

// collectionUUID reads the field with which a client says which collection it means.
func (a *Args) collectionUUID() *[16]byte {
	u, ok := a.UUID("collectionUUID")
	if !ok {
		return nil
	}
	return &u
}

// checkUUID refuses to go on when the collection called ns is not the one with the UUID.
func (op *Op) checkUUID(ns namespace.NS, want *[16]byte) error {
	if want == nil {
		return nil
	}
	catalog := op.Query.Store.Catalog()
	if c := catalog.Collection(ns); c != nil && !c.IsView() && c.UUID == *want {
		return nil
	}
	actual := bson.Null
	if c := catalog.ByUUID(*want); c != nil && c.NS.DB == ns.DB {
		actual = bson.String(c.NS.Coll)
	}
	return mongoerr.New(mongoerr.CollectionUUIDMismatch, "Collection UUID does not match that specified").WithExtra(
		bson.Build().String("db", ns.DB).Binary("collectionUUID", 4, want[:]).String("expectedCollection", ns.Coll).Value("actualCollection", actual).Doc())
}
