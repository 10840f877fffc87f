package rangetombstone

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
)

const keys = 40

// model is by key: the number of the last deletion, and whether a key was written since.
type model struct {
	deleted, written [keys]uint64
}

func key(i int) []byte { return fmt.Appendf(nil, "%02d", i) }

func apartFromNone(Tombstone) bool { return false }

// Random deletions, writes and removals are as a model by key has them.
func TestSetRandom(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		var s *Set
		var m model
		var removing Tombstone
		apart := func(t Tombstone) bool { return t.Number == removing.Number }
		for number := uint64(1); number <= 60; number++ {
			before := s
			switch i := random.IntN(keys); random.IntN(5) {
			case 0, 1:
				from, to := i, random.IntN(keys+1)
				s = s.Deleted(kv.Range{Start: key(from), End: key(to)}, number, apart)
				for k := from; k < to; k++ {
					m.deleted[k] = number
				}
			case 2, 3:
				s = s.Wrote(key(i))
				m.written[i] = number
			default:
				if removing.Number > 0 {
					s = s.Without(removing.Range, removing.Number)
					removing = Tombstone{}
				} else if s.Len() > 0 {
					removing = s.all[random.IntN(s.Len())]
				}
			}
			check(t, seed, s, &m)
			put, gone := s.Changes(before)
			stored := map[string]Tombstone{}
			for _, one := range before.All() {
				stored[string(one.Start)] = one
			}
			for _, start := range gone {
				delete(stored, string(start))
			}
			for _, one := range put {
				stored[string(one.Start)] = one
			}
			var all []Tombstone
			for _, one := range stored {
				all = append(all, one)
			}
			if put, gone := SetOf(all).Changes(s); len(put)+len(gone) > 0 {
				t.Fatalf("seed %d: what is stored differs by %v and %s", seed, put, gone)
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d: %v", seed, number, s.All())
			}
		}
	}
}

// check: what was written before a deletion is hidden, unless its tombstone was removed, and what was written since is seen.
func check(t *testing.T, seed uint64, s *Set, m *model) {
	t.Helper()
	for i := 1; i < s.Len(); i++ {
		if bytes.Compare(s.all[i-1].End, s.all[i].Start) > 0 {
			t.Errorf("seed %d: tombstones overlap", seed)
		}
	}
	for k := range keys {
		covering, covered := s.Covering(key(k))
		if m.written[k] > m.deleted[k] {
			if s.Hides(key(k), m.written[k]) {
				t.Errorf("%d was written in %d, deleted in %d, and is hidden", k, m.written[k], m.deleted[k])
			}
			if covered && !covering.Written {
				t.Errorf("%d was written, and nothing is to be seen there", k)
			}
		}
		if covered && covering.Number < m.deleted[k] {
			t.Errorf("%d was deleted in %d, and is covered for %d", k, m.deleted[k], covering.Number)
		}
		if covered && m.deleted[k] > 0 && m.written[k] < m.deleted[k] && !s.Hides(key(k), m.written[k]) {
			t.Errorf("%d is not hidden", k)
		}
	}
	walks(t, s)
}

// walks: a walk over what may be seen finds the same keys in both directions as a look at each.
func walks(t *testing.T, s *Set) {
	t.Helper()
	visible := func(k int) bool {
		covering, covered := s.Covering(key(k))
		return !covered || covering.Written
	}
	limit := key(keys)
	seen := 0
	for at := s.Skip(key(0)); bytes.Compare(at, limit) < 0; {
		to := s.Until(at, limit)
		if bytes.Compare(to, at) <= 0 {
			t.Errorf("from %s on until %s", at, to)
			return
		}
		for k := range keys {
			if bytes.Compare(at, key(k)) <= 0 && bytes.Compare(key(k), to) < 0 {
				seen++
				if !visible(k) {
					t.Errorf("a walk comes to %d", k)
				}
			}
		}
		at = s.Skip(to)
	}
	for at := s.SkipBack(limit); bytes.Compare(at, key(0)) > 0; {
		from := s.UntilBack(at, key(0))
		if bytes.Compare(from, at) >= 0 {
			t.Errorf("back from %s until %s", at, from)
			return
		}
		for k := range keys {
			if bytes.Compare(from, key(k)) <= 0 && bytes.Compare(key(k), at) < 0 {
				seen++
			}
		}
		at = s.SkipBack(from)
	}
	want := 0
	for k := range keys {
		if visible(k) {
			want += 2
		}
	}
	if seen != want {
		t.Errorf("walks see %d keys, want %d", seen, want)
	}
}

// Sweeps side by side leave one tombstone, and what is written in it upwards, downwards or anywhere cuts it once.
func TestSetStaysSmall(t *testing.T) {
	var s *Set
	for i := range keys {
		s = s.Deleted(kv.Range{Start: key(i), End: key(i + 1)}, uint64(i+1), apartFromNone)
	}
	if s.Len() != 1 {
		t.Fatalf("ranges side by side are %d tombstones", s.Len())
	}
	for name, order := range map[string]func(int) int{"upwards": func(i int) int { return i }, "downwards": func(i int) int { return keys - 1 - i }, "anywhere": func(i int) int { return i * 7 % keys }} {
		after := s
		for i := range keys {
			if after = after.Wrote(key(order(i))); after.Len() > 2 {
				t.Errorf("written %s there are %d tombstones", name, after.Len())
			}
		}
	}
}
