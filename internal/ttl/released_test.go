package ttl_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
)

// TestReleased: what was passed over because an open transaction had written it goes as soon as that has ended, also where it ends while the pass
// that has passed it over still goes on; and with the next look at everything where deadlines do not wake the monitor.
func TestReleased(t *testing.T) {
	for name, test := range map[string]struct {
		during bool
		before []string
		after  []string
		want   string
	}{
		"between passes":       {want: "db.c d: deleted 1 of 1"},
		"while a pass goes on": {during: true, want: "db.c d: deleted 1 of 1"},
		"not precise":          {before: []string{"set ttlMonitorPrecise false", "advance 50s"}, after: []string{"advance 59s", "find c", "advance 1s"}, want: "find: 1 | db.c d: deleted 1 of 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, line := range []string{`create c {}`, `index c {key: {d: 1}, name: "d", expireAfterSeconds: 10}`, `insert c {_id: 1, d: @0}`, `insert c {_id: 2, d: @0}`, `start`} {
				w.line(line)
			}
			txn, err := w.store.BeginTransaction(context.Background(), storage.TransactionOptions{Now: w.store.Now(), LockTimeout: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer txn.Rollback()
			err = txn.Write(context.Background(), namespace.NS{DB: "db", Coll: "c"}, storage.WriteOptions{}, func(wr *storage.Writer) error {
				rec, _, err := wr.GetByID(bson.Int32(1))
				if err != nil {
					return err
				}
				_, _, err = wr.Update(rec.Clone(), bson.BuildOn(nil).Fields(rec.Doc).Int32("x", 1).Doc())
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if test.during {
				w.atVisit = sync.OnceFunc(txn.Rollback)
			}
			for _, line := range test.before {
				w.line(line)
			}
			w.out.Reset()
			w.line("advance 10s")
			if got, want := w.out.String(), "db.c d: deleted 1 of 2\n"; !strings.HasPrefix(got, want) {
				t.Errorf("beside the transaction: %q, want %q", got, want)
			}
			if !test.during {
				w.out.Reset()
				txn.Rollback()
				if err := w.settle(nil); err != nil {
					t.Fatal(err)
				}
			}
			for _, line := range test.after {
				w.line(line)
			}
			got := strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(w.out.String()), "db.c d: deleted 1 of 2\n"), "\n", " | ")
			if got != test.want {
				t.Errorf("when it has ended: %q, want %q", got, test.want)
			}
		})
	}
}
