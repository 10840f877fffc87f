package logwatch

import (
	"testing"

	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// TestClose: nothing is kept of a watch that was closed, however often it is.
func TestClose(t *testing.T) {
	all := New(&oplog.Clock{})
	ns := namespace.NS{DB: "d", Coll: "c"}
	one, other, apart := all.Watch(ns), all.Watch(ns), all.Watch(namespace.NS{DB: "d"})
	one.Close()
	one.Close()
	if n := all.open.Load(); n != 2 || len(all.mu.of) != 2 {
		t.Errorf("%d are open, of %d namespaces", n, len(all.mu.of))
	}
	other.Close()
	apart.Close()
	if n := all.open.Load(); n != 0 || len(all.mu.of) != 0 {
		t.Errorf("%d are left open, of %d namespaces", n, len(all.mu.of))
	}
}
