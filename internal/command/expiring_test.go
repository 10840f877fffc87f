package command

import (
	"fmt"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/storage/indexddl"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
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
		err := op.guarded(namespace.NS{DB: "test", Coll: "c"}, ttlchange.OnHidden{Force: c.force}, func() (indexddl.DryRun, error) {
			counted++
			return indexddl.DryRun{Of: seen, Expiring: ttlchange.Effect{Documents: 10, Would: int64(c.would)}}, nil
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

// Dry runs, guarded changes and forecasts go on while others make, change and drop what they look at: each ends well, or with
// an error that the real command may have.
func TestExpiringBesideOthers(t *testing.T) {
	h := newHarness(t)
	h.must("0", "admin", "{setParameter: 1, ttlMassExpiryGuard: 0.5}")
	lines := [][]string{
		{
			"{createIndexes: 'c', indexes: [{key: {d: 1}, name: 'd', expireAfterSeconds: 1000}], force: true}",
			"{dropIndexes: 'c', index: 'd'}", "{drop: 'c'}",
		},
		{"{insert: 'c', documents: [{d: ISODate('2026-01-02T03:00:00Z'), e: [ISODate('2026-01-02T03:00:00Z'), ISODate('2026-01-01T00:00:00Z')]}, {d: 1}]}"},
		{
			"{createIndexes: 'c', indexes: [{key: {d: 1}, name: 'd', expireAfterSeconds: 1000}, {key: {e: 1}, name: 'e', expireAfterSeconds: 0}], dryRun: true}",
			"{createIndexes: 'c', indexes: [{key: {_id: 1, e: 1}, name: 'u', unique: true}], dryRun: true}",
			"{createIndexes: 'c', indexes: [{key: {e: 1}, name: 'e', expireAfterSeconds: 0}]}",
			"{dropIndexes: 'c', index: 'e'}",
		},
		{
			"{collMod: 'c', index: {name: 'd', expireAfterSeconds: 0}, dryRun: true}", "{collMod: 'c', index: {name: 'd', expireAfterSeconds: 0}}",
			"{collMod: 'c', index: {name: 'd', expireAfterSeconds: 5000}}", "{ebbTTL: 'c', forecast: {}}",
		},
	}
	allowed := map[mongoerr.Code]bool{mongoerr.NamespaceNotFound: true, mongoerr.IndexNotFound: true, mongoerr.IllegalOperation: true,
		mongoerr.IndexOptionsConflict: true, mongoerr.IndexBuildAborted: true, mongoerr.BackgroundOperationInProgressForNamespace: true}
	var all sync.WaitGroup
	for i, commands := range lines {
		conn := h.conn(fmt.Sprint(i))
		all.Go(func() {
			for n := range 400 {
				command := commands[n%len(commands)]
				reply := h.sendOn(t.Context(), conn, "test", bson.MustDoc(command)).Body
				if code := reply.Lookup("code"); !code.IsMissing() && !allowed[mongoerr.Code(code.Int32())] {
					t.Errorf("%s: %s", command, reply)
				}
			}
		})
	}
	all.Wait()
}
