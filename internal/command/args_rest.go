package command

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// ignoreRest takes note of all fields that nobody asked for: old commands take any.
func (a *Args) ignoreRest() {
	for i := range a.fields {
		a.fields[i].used = true
	}
}

// truthy reads an optional value of any type as a bool, as old commands do.
func (a *Args) truthy(key string) bool { return a.Value(key).Truthy() }

// refuseNull refuses null in fields whose type is the given one: a few fields do not take it for absent.
func (a *Args) refuseNull(want bson.Type, keys ...string) {
	for _, key := range keys {
		if v := a.Value(key); v.Type == bson.TypeNull {
			a.Fail(a.wrongType(key, v.Type, []bson.Type{want}))
		}
	}
}

// findable refuses namespaces that cannot be; those that only cannot be made are said not to exist.
func findable(ns namespace.NS) error {
	if strings.Contains(ns.Coll, "$") {
		return mongoerr.New(mongoerr.NamespaceNotFound, "Collection '%s' does not exist", ns)
	}
	return readable(ns)
}
