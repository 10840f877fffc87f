package command

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/ttl"
)

// Without a guard, or past it, nothing is counted; a collection that has changed since it was is counted again, and a change
// that the guard refuses is not made.
func TestGuarded(t *testing.T) {
	h := newHarness(t)
	op := &Op{Server: h.server}
	for _, c := range []struct {
		guard                 string
		force                 bool
		would, moves          int
		counted, applied, bad int
	}{
		{"0", false, 9, 0, 0, 1, 0},
		{"1", false, 9, 0, 0, 1, 0},
		{"0.5", true, 9, 0, 0, 1, 0},
		{"0.5", false, 5, 0, 1, 1, 0},
		{"0.5", false, 5, 3, 4, 4, 0},
		{"0.5", false, 6, 0, 1, 0, 1},
	} {
		if _, err := h.server.Params.Set(ttl.MassExpiryGuardName, bson.MustParse(c.guard), parameter.Runtime); err != nil {
			t.Fatal(err)
		}
		counted, applied, bad := 0, 0, 0
		seen := &catalog.Collection{}
		err := op.guarded(namespace.NS{DB: "test", Coll: "c"}, c.force, func() (storage.Rehearsal, error) {
			counted++
			return storage.Rehearsal{Of: seen, Expiring: storage.Expiring{Documents: 10, Would: int64(c.would)}}, nil
		}, func(was *catalog.Collection) error {
			if (was == seen) != (counted > 0) {
				t.Errorf("%+v: applied to %v", c, was)
			}
			if applied++; applied <= c.moves {
				return unmoved(was, &catalog.Collection{})
			}
			return unmoved(was, seen)
		})
		if err != nil {
			bad++
		}
		if counted != c.counted || applied != c.applied || bad != c.bad {
			t.Errorf("%+v: counted %d, applied %d: %v", c, counted, applied, err)
		}
	}
}
