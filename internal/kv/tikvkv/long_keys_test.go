package tikvkv_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
)

// longStore is an engine over a store that has many values in parts.
type longStore struct {
	*testing.T
	*tikvkv.Engine
	cluster *tikvtest.Cluster
	clock   clock.Clock
	trips   *tikvtest.Trips
}

func manyLong(t *testing.T, groups map[string]int) *longStore {
	t.Helper()
	c := tikvtest.New(t)
	e := c.Open(t, tikvkv.Options{})
	for prefix, n := range groups {
		putLong(t, e, longNames(prefix, n), partsOfEach)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	s := &longStore{T: t, cluster: c, clock: tikvtest.ProcessClock(t), trips: c.Count()}
	s.Engine = c.Open(t, tikvkv.Options{Clock: s.clock})
	t.Cleanup(func() {
		if err := s.Engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func putLong(t *testing.T, e *tikvkv.Engine, names []string, parts int) {
	t.Helper()
	for some := range slices.Chunk(names, 1000) {
		if err := tikvkv.PutLong(e, some, parts); err != nil {
			t.Fatal(err)
		}
	}
}

const partsOfEach = 2

func longNames(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%s%06d", prefix, i))
	}
	return names
}

func (s *longStore) until(what string, done func() bool) {
	s.Helper()
	for began := clock.Monotonic(s.clock); !done(); runtime.Gosched() {
		if clock.Monotonic(s.clock)-began > time.Minute {
			s.Fatal(what + " in a minute")
		}
	}
}

// learnt waits until it is known which keys have parts.
func (s *longStore) learnt() {
	s.Helper()
	s.until("which keys have parts is not learnt", func() bool { _, known := tikvkv.HeldOfLong(s.Engine); return known })
}

func (s *longStore) reclaimed() {
	s.Helper()
	s.until("range tombstones are left", func() bool { return tikvkv.Tombstones(s.Engine) == 0 })
}

func (s *longStore) haveParts(want int) {
	s.Helper()
	if parts := tikvkv.Parts(s.Engine); parts != want {
		s.Errorf("%d parts are stored, want %d", parts, want)
	}
}

// TestManyLongValues: what a server holds in memory of which values have parts does not grow with them, misses none of them, and few others are taken for such. Parts
// go with their values, whether that is learnt already or not.
func TestManyLongValues(t *testing.T) {
	const n = 20_000
	for _, early := range []bool{true, false} {
		t.Run(fmt.Sprint("early ", early), func(t *testing.T) {
			s := manyLong(t, map[string]int{"k": n})
			if !early {
				s.learnt()
			}
			names := longNames("k", n)
			txn, err := s.Begin()
			if err != nil {
				t.Fatal(err)
			}
			txn.Delete([]byte(names[7]))
			txn.Set([]byte(names[n-1]), []byte("short"))
			txn.Set([]byte(names[n-2]), []byte(strings.Repeat("x", partBytes)+"y"))
			txn.Set([]byte(names[n-3]), []byte(strings.Repeat("x", 2*partBytes)+"y"))
			txn.Set([]byte("new"), []byte(strings.Repeat("x", partBytes)+"y"))
			if err := txn.Commit(context.Background(), kv.Synced); err != nil {
				t.Fatal(err)
			}
			s.haveParts(n*partsOfEach - 2*partsOfEach + 1 + 2)
			s.learnt()
			for _, name := range append(names[:7:7], append(names[8:n-1:n-1], "new")...) {
				if !tikvkv.MayBeLong(s.Engine, name) {
					t.Fatalf("%s has parts, and is taken for one that has none", name)
				}
			}
			others := 0
			for _, name := range longNames("other", n) {
				if tikvkv.MayBeLong(s.Engine, name) {
					others++
				}
			}
			if others > n/1000 {
				t.Errorf("%d of %d keys that have no parts are taken for such that have some", others, n)
			}
			if size, _ := tikvkv.HeldOfLong(s.Engine); size > 1<<20 {
				t.Errorf("%d bytes are held", size)
			}
		})
	}
}

// TestDeletionBesideLongValues: a range deletion, and the removal of what it hides, ask no more of the cluster where many values outside of the range have parts.
func TestDeletionBesideLongValues(t *testing.T) {
	asked := map[int]int64{}
	for _, others := range []int{100, 10_000} {
		s := manyLong(t, map[string]int{"a": others / 2, "m": 5, "z": others / 2})
		s.learnt()
		s.trips.Take()
		if err := s.DeleteRange([]byte("m"), []byte("n")); err != nil {
			t.Fatal(err)
		}
		s.reclaimed()
		asked[others], _ = s.trips.Take()
		s.haveParts(others * partsOfEach)
	}
	// The engine asks for some things by the clock, and does so once or twice more where the machine is busy.
	const byTheClock = 3
	if t.Logf("requests by how many others have parts: %v", asked); asked[10_000] > asked[100]+byTheClock {
		t.Errorf("deleting five long values asks the cluster %d times beside 100 others, and %d times beside 10,000", asked[100], asked[10_000])
	}
}

// TestForgetsLongValues: when many long values have gone, it is learnt anew which keys have parts.
func TestForgetsLongValues(t *testing.T) {
	s := manyLong(t, map[string]int{"k": 4200, "m": 10})
	s.learnt()
	if err := s.DeleteRange([]byte("k"), []byte("l")); err != nil {
		t.Fatal(err)
	}
	s.reclaimed()
	s.learnt()
	s.haveParts(10 * partsOfEach)
	s.until("keys that have no parts any more are taken for such that have some", func() bool {
		return !slices.ContainsFunc(longNames("k", 100), func(name string) bool { return tikvkv.MayBeLong(s.Engine, name) })
	})
	for _, name := range longNames("m", 10) {
		if !tikvkv.MayBeLong(s.Engine, name) {
			t.Errorf("%s has parts, and is taken for one that has none", name)
		}
	}
}

// TestDeletesManyParts: values in a deleted range have more parts than are removed at once.
func TestDeletesManyParts(t *testing.T) {
	s := manyLong(t, map[string]int{"m": 10})
	putLong(t, s.Engine, longNames("k", 20), 500)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.Engine = s.cluster.Open(t, tikvkv.Options{Clock: s.clock})
	if err := s.DeleteRange([]byte("k"), []byte("l")); err != nil {
		t.Fatal(err)
	}
	s.reclaimed()
	s.haveParts(10 * partsOfEach)
}
