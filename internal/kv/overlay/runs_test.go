package overlay

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
)

// nothing is an iterator over nothing.
type nothing struct{ kv.Iterator }

func (nothing) First() bool        { return false }
func (nothing) SeekGE([]byte) bool { return false }
func (nothing) Next() bool         { return false }
func (nothing) Valid() bool        { return false }
func (nothing) Err() error         { return nil }
func (nothing) Close() error       { return nil }

// TestWrites writes at random to several tables, in order for a while, and compares with a map after each write.
func TestWrites(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { tryWrites(t, rand.New(rand.NewPCG(seed, 5))) })
	}
}

// writing makes keys of a few tables, those of each often behind the last.
type writing struct {
	*rand.Rand
	tables int
	last   [2 * maxRuns]int
	unruly int // how often of a hundred times a key does not lie behind the last
}

func (w *writing) key() []byte {
	table := w.IntN(w.tables)
	n := w.last[table] + 1 + w.IntN(3)
	if w.IntN(100) < w.unruly {
		n = w.IntN(n + 1)
	}
	w.last[table] = max(w.last[table], n)
	key := fmt.Appendf(nil, "t%02d\x00\x00%05d", table, n)
	if w.IntN(50) == 0 {
		return key[:1+w.IntN(7)]
	}
	return key
}

func tryWrites(t *testing.T, r *rand.Rand) {
	makes := &writing{Rand: r, tables: []int{1, 3, maxRuns, 2 * maxRuns}[r.IntN(4)], unruly: []int{0, 2, 50}[r.IntN(3)]}
	var w Writes
	truth := map[string]string{}
	walked := 1 + r.IntN(2000) // it is a tree from then on
	for n := range 1500 {
		key := makes.key()
		if r.IntN(8) == 0 {
			w.Delete(key)
			truth[string(key)] = "deleted"
		} else {
			truth[string(key)] = fmt.Sprint(n)
			w.Set(key, []byte(truth[string(key)]))
		}
		if n%16 == 0 || n == walked {
			compareWrites(t, &w, truth, makes.key(), n >= walked)
		}
	}
	compareWrites(t, &w, truth, nil, true)
}

func compareWrites(t *testing.T, w *Writes, truth map[string]string, at []byte, walk bool) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(truth))
	var seen []string
	w.Each(func(op kv.Op) { seen = append(seen, string(op.Key)) })
	if !slices.Equal(seen, keys) || w.Len() != len(keys) {
		t.Fatalf("%d writes, not %d:\n%q\nwant\n%q", w.Len(), len(keys), seen, keys)
	}
	for _, key := range append(keys, string(at)) {
		op, found := w.Lookup([]byte(key))
		if want, there := truth[key]; found != there || there && op.Delete != (want == "deleted") || there && !op.Delete && string(op.Value) != want {
			t.Fatalf("at %q: %q, %v; want %q, %v", key, op.Value, found, want, there)
		}
	}
	i, _ := slices.BinarySearch(keys, string(at))
	first, found := w.from(at)
	if found != (i < len(keys)) || found && string(first.Key) != keys[i] {
		t.Fatalf("from %q on: %q, %v", at, first.Key, found)
	}
	if walk {
		compareWalk(t, w, truth, keys, at)
	}
}

func compareWalk(t *testing.T, w *Writes, truth map[string]string, keys []string, at []byte) {
	t.Helper()
	it := newIterator(w, nothing{}, kv.IterOptions{})
	i, _ := slices.BinarySearch(keys, string(at))
	for ok := it.SeekGE(at); ok; ok = it.Next() {
		for truth[keys[i]] == "deleted" {
			i++
		}
		if string(it.Key()) != keys[i] {
			t.Fatalf("the walk is at %q, not at %q", it.Key(), keys[i])
		}
		i++
	}
	for i < len(keys) && truth[keys[i]] == "deleted" {
		i++
	}
	if err := it.Close(); i != len(keys) || err != nil {
		t.Fatalf("the walk ends before %d of %d keys: %v", len(keys)-i, len(keys), err)
	}
}

func TestBeginOf(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	key := func() []byte {
		key := make([]byte, r.IntN(10))
		for i := range key {
			key[i] = byte(r.IntN(3)) * 0x7f
		}
		return key
	}
	for range 100_000 {
		a, b := key(), key()
		if beginOf(a) < beginOf(b) && bytes.Compare(a, b) >= 0 {
			t.Fatalf("%x begins before %x", a, b)
		}
		if len(a) >= beginLength && len(b) >= beginLength && (beginOf(a) == beginOf(b)) != bytes.Equal(a[:beginLength], b[:beginLength]) {
			t.Fatalf("%x and %x", a, b)
		}
	}
}

// BenchmarkWrites writes a thousand documents as a bulk insert does, to a record store and indexes.
func BenchmarkWrites(b *testing.B) {
	for _, x := range []struct {
		name           string
		orderly, other int
	}{{"2 in order", 2, 0}, {"3 in order", 3, 0}, {"2 in order, 1 at random", 2, 1}} {
		b.Run(x.name, func(b *testing.B) {
			r, value := rand.New(rand.NewPCG(1, 1)), make([]byte, 100)
			b.ReportAllocs()
			for range b.N {
				var w Writes
				for n := range 1000 {
					for table := range x.orderly + x.other {
						at := n
						if table >= x.orderly {
							at = r.IntN(1 << 30)
						}
						w.Set(fmt.Appendf(nil, "t000%d%010d", table, at), value)
					}
				}
				w.Each(func(kv.Op) {})
			}
		})
	}
}
