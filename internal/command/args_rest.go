package command

import (
	"strings"

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

// findable refuses namespaces that cannot be; those that only cannot be made are said not to exist.
func findable(ns namespace.NS) error {
	if strings.Contains(ns.Coll, "$") {
		return mongoerr.New(mongoerr.NamespaceNotFound, "Collection '%s' does not exist", ns)
	}
	return readable(ns)
}
