package ttl_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/testseed"
)

// TestCrash (R24): the power fails between two batches of a pass, at a moment of the file system's choice. After the
// restart each document is there with all its entries or gone with all of them, and the next pass takes the rest.
func TestCrash(t *testing.T) {
	for round := range 20 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			seed := testseed.Of(t)
			r := rand.New(rand.NewPCG(seed, 0))
			w := &world{t: t, clock: newWorldClock(), gate: &scriptGate{}, before: map[string][]string{}, disk: vfs.NewCrashableMem()}
			w.open()
			t.Cleanup(w.close)
			for _, line := range []string{
				`set batchedDeletesTargetBatchDocs 1`, // ten documents a transaction
				`index c {key: {d: 1}, name: "d_1", expireAfterSeconds: 10}`,
				`index c {key: {x: 1}, name: "x_1"}`,
				`index c {key: {u: 1}, name: "u_1", unique: true, sparse: true}`,
				fmt.Sprintf(`fill c 200 {d: Date(%d), x: [1, 2, 3]}`, relative("-1h")),
			} {
				verb, rest := first(line)
				if err := w.do(verb, rest, rest); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.engine.Sync(); err != nil {
				t.Fatal(err)
			}
			crashAt := r.IntN(20)
			var after *vfs.MemFS
			w.atBatch = func(n int) {
				if n == crashAt {
					after = w.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
				}
			}
			if err := w.monitor.RunPass(context.Background()); err != nil {
				t.Fatal(err)
			}
			survivor := &world{t: t, clock: w.clock, gate: &scriptGate{}, before: map[string][]string{}, disk: after}
			survivor.open()
			t.Cleanup(survivor.close)
			stored := survivor.validate(seed)
			if most := int64(200 - 10*crashAt); stored < most {
				t.Errorf("seed %d: %d documents are left, at least %d had not been deleted", seed, stored, most)
			}
			if err := survivor.monitor.RunPass(context.Background()); err != nil {
				t.Fatal(err)
			}
			if stored := survivor.validate(seed); stored != 0 {
				t.Errorf("seed %d: %d documents are left after a pass", seed, stored)
			}
		})
	}
}

// validate checks that documents and entries agree, and returns how many documents there are.
func (w *world) validate(seed uint64) int64 {
	w.t.Helper()
	v, err := w.store.Validate(context.Background(), namespace.NS{DB: "db", Coll: "c"}, nil)
	if err != nil || !v.Valid {
		w.t.Fatalf("seed %d: %+v, %v", seed, v, err)
	}
	return v.Records
}
