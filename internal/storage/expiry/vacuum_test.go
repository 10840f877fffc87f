package expiry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/testseed"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// removals is a transaction that counts what a Vacuum removes.
type removals struct {
	kv.Txn
	removed map[uint32]int
	ranges  int    // deleted
	spared  string // a key that an open transaction has
}

func (r *removals) IsSpared(key []byte) bool { return r.spared != "" && string(key) == r.spared }

func (r *removals) DeleteRange(low, high []byte) {
	r.ranges++
	r.Txn.DeleteRange(low, high)
}

func (r *removals) Removed(index uint32, n int) { r.removed[index] += n }

// vacuumed is a store with two indexes, some of whose entries are of records that were swept.
type vacuumed struct {
	*testing.T
	engine *pebblekv.Engine
	tables []Table
	dead   expiryorder.Tombstones
	living []string // keys
	gone   int
	ranges int // that were deleted
}

func newVacuumed(t *testing.T, r *rand.Rand) *vacuumed {
	engine, err := pebblekv.OpenMemory(pebblekv.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, engine.Close()) })
	v := &vacuumed{T: t, engine: engine, dead: expiryorder.Tombstones{{Order: 7, Span: layout.OnDefault, Date: 100, Sequence: 1000}}}
	for _, d := range []*index.Definition{{ID: 9, Name: "a"}, {ID: 4, Name: "u", Unique: true}} { // one was built anew
		v.tables = append(v.tables, Table{Entries: layout.Entries{Definition: d, IDLength: layout.SequenceLength}})
	}
	txn, err := engine.Begin()
	must(t, err)
	for n := range 300 {
		dates := int64(200)
		if n < 100 { // all of these are dead
			dates = 100
		}
		id := layout.OrderedID(layout.AppendPlace(nil, 7, layout.OnDefault, r.Int64N(dates)), uint64(n))
		for _, table := range v.tables {
			key := table.EntryKey(nil, keystring.Append(nil, bson.Int32(int32(n)), false), id)
			txn.Set(key, table.EntryValue(nil, id, nil))
			if v.dead.Cover(id) {
				v.gone++
			} else {
				v.living = append(v.living, string(key))
			}
		}
	}
	must(t, txn.Commit(context.Background(), kv.Buffered))
	slices.Sort(v.living)
	return v
}

// round removes all that is dead, so many entries a transaction.
func (v *vacuumed) round(limit int, by Means) (removed map[uint32]int) {
	removed = map[uint32]int{}
	var at Round
	for more := true; more; {
		txn, err := v.engine.Begin()
		must(v.T, err)
		taken := &removals{Txn: txn, removed: removed}
		slice := Vacuum{Ctx: context.Background(), Snapshot: txn, Tables: v.tables, Tombstones: v.dead, Txn: taken, By: by, Few: 4}
		var n int
		n, more, err = slice.Remove(&at, limit)
		must(v.T, err)
		if n > limit {
			v.Errorf("%d entries were removed at once, of at most %d", n, limit)
		}
		must(v.T, txn.Commit(context.Background(), kv.Buffered))
		v.ranges += taken.ranges
	}
	return removed
}

func (v *vacuumed) keys() (keys []string) {
	s, err := v.engine.Snapshot()
	must(v.T, err)
	defer s.Close()
	it, err := s.NewIter(kv.IterOptions{})
	must(v.T, err)
	for it.Next() {
		keys = append(keys, string(it.Key()))
	}
	must(v.T, errors.Join(it.Err(), it.Close()))
	return keys
}

// TestVacuum: a round removes what is dead and nothing else, one by one or as stretches, and counts it.
func TestVacuum(t *testing.T) {
	seed := testseed.Of(t)
	for by, name := range []string{OneByOne: "one by one ", Stretches: "stretches ", Runs: "runs "} {
		by := Means(by)
		for _, limit := range []int{1, 7, 1000} {
			t.Run(fmt.Sprint(name, limit), func(t *testing.T) {
				v := newVacuumed(t, rand.New(rand.NewPCG(seed, uint64(limit))))
				removed := v.round(limit, by)
				if n := removed[9] + removed[4]; n != v.gone || removed[9] != removed[4] {
					t.Errorf("%v were removed, of %d", removed, v.gone)
				}
				if (v.ranges > 0) != (by == Stretches || by == Runs && limit >= leastRun) {
					t.Errorf("%d ranges were deleted", v.ranges)
				}
				if !slices.Equal(v.keys(), v.living) {
					t.Errorf("%d keys are left, want %d", len(v.keys()), len(v.living))
				}
				if again := v.round(limit, by); again[9]+again[4] != 0 {
					t.Errorf("%v more were removed", again)
				}
			})
		}
	}
}
