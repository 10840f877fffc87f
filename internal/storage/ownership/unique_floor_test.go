package ownership

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/testseed"
)

type largest func() []byte

func (l largest) Largest() ([]byte, error) { return l(), nil }

// A key that is there is never called new, whatever order keys come in; keys that ascend but for a little disorder are
// called new after the first look.
func TestUniqueFloor(t *testing.T) {
	seed := testseed.Of(t)
	r := rand.New(rand.NewPCG(seed, 0))
	key := func(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	for _, disorder := range []int{0, 3, maxGeneration / 4, 40 * maxGeneration} {
		var n uniqueFloor
		there := map[int]bool{1000: true}
		looks, known := 0, 0
		const tries = 20 * maxGeneration
		for i := range tries {
			k := 1001 + i
			if disorder > 0 && k > disorder {
				k -= r.IntN(disorder)
			}
			isNew, err := n.IsNew(key(k), largest(func() []byte { looks++; return key(1000) }))
			switch {
			case err != nil:
				t.Fatal(err)
			case isNew && (there[k] || k < 1000):
				t.Fatalf("disorder %d: %d is called new", disorder, k)
			case isNew:
				known++
			}
			if k >= 1000 {
				there[k] = true
			}
			if listed := len(n.newest.hashes) + len(n.newer.hashes); listed > 2*maxGeneration {
				t.Fatalf("%d keys are listed", listed)
			}
		}
		if looks != 1 {
			t.Errorf("disorder %d: %d looks at the index", disorder, looks)
		}
		if want := len(there) - 1; disorder <= maxGeneration/4 && known < want*9/10 {
			t.Errorf("disorder %d: of %d new keys %d were known to be", disorder, want, known)
		}
	}
}

// Long keys are not remembered, and nothing is called new after one.
func TestUniqueFloorOfLongKeys(t *testing.T) {
	long, short := make([]byte, maxFloorKey+1), []byte{1}
	for _, keys := range [][][]byte{{nil, short, long}, {long, short}} {
		var n uniqueFloor
		floor, known := keys[0], keys[1:]
		for i, key := range append(known, []byte{2}, []byte{3}) {
			isNew, err := n.IsNew(key, largest(func() []byte { return floor }))
			if want := floor == nil && i == 0; err != nil || isNew != want {
				t.Errorf("key %d of %d bytes is new: %v, %v", i, len(key), isNew, err)
			}
		}
		if len(n.floor)+len(n.newest.largest)+len(n.newer.largest) > 0 {
			t.Error("keys are remembered")
		}
	}
}
