package expiryorder

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/testseed"
)

// TestSequences: they have the numbers that they were made of, and no other, also when they were stored.
func TestSequences(t *testing.T) {
	seed := testseed.Of(t)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		has := map[uint64]bool{}
		var numbers []uint64
		for range random.IntN(40) {
			n := uint64(random.IntN(60))
			has[n] = true
			numbers = append(numbers, n)
		}
		s := SequencesOf(numbers)
		if len(s) > 0 {
			stored, rest, ok := readSequences(append(s.append(nil), 7))
			if !ok || !reflect.DeepEqual(stored, s) || string(rest) != "\x07" {
				t.Fatalf("seed %d: %v was stored, and %v read, with %x behind it", seed, s, stored, rest)
			}
		}
		for n := range uint64(62) {
			if s.Has(n) != has[n] {
				t.Fatalf("seed %d: %v has %d: %v", seed, s, n, s.Has(n))
			}
		}
	}
}

// TestTombstonesSpare: what a tombstone spares it does not cover, but another may; and it is read as it was stored. What is broken is an error.
func TestTombstonesSpare(t *testing.T) {
	ts := Tombstones(nil).With(Tombstone{7, layout.OnDefault, 100, 50, SequencesOf([]uint64{3, 4, 5, 20})}).With(Tombstone{7, layout.OnOverride, 100, 50, nil})
	stored, err := DecodeTombstones(ts.Encode())
	if err != nil || !reflect.DeepEqual(stored, ts) {
		t.Fatalf("%v was stored, and %v read: %v", ts, stored, err)
	}
	id := func(n uint64) layout.RecordID {
		return layout.OrderedID(layout.AppendPlace(nil, 7, layout.OnDefault, 90), n)
	}
	for n, dead := range map[uint64]bool{2: true, 3: false, 5: false, 6: true, 20: false, 50: true, 51: false} {
		if stored.Cover(id(n)) != dead {
			t.Errorf("%d is dead: %v", n, !dead)
		}
	}
	if later := stored.With(Tombstone{7, layout.OnDefault, 100, 60, nil}); !later.Cover(id(4)) {
		t.Error("what was spared is not swept by the next")
	}
	encoded := ts.Encode()
	for n := range encoded {
		if n == 0 || n == len(encoded)-tombstoneLength {
			continue
		}
		if got, err := DecodeTombstones(encoded[:n]); err == nil {
			t.Errorf("%d bytes are read as %v", n, got)
		}
	}
	for _, broken := range []string{"\x00", "\x01\x00\x00\x00\x00\x00\x00\x00\x05\x00", "\xff\xff\xff\x7f"} { // none, an empty run, too many
		if s, _, ok := readSequences([]byte(broken)); ok {
			t.Errorf("%x is read as %v", broken, s)
		}
	}
}
