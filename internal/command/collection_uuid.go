package command

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
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

// collectionUUID reads the field with which a client says which collection it means by ns; nil when it does not say.
func (a *Args) collectionUUID(ns namespace.NS) *query.Expected {
	u, ok := a.UUID("collectionUUID")
	if !ok {
		return nil
	}
	return &query.Expected{NS: ns, UUID: u}
}
