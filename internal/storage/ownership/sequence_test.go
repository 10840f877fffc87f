package ownership_test

import (
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/storage/ownership"
)

// TestReservedElsewhere: what is reserved begins behind what anybody else has reserved, so no number is given out twice.
func TestReservedElsewhere(t *testing.T) {
	e, err := pebblekv.OpenMemory(pebblekv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	var both [2]ownership.Collection
	for i := range both {
		o, err := ownership.Of(e)
		if err != nil {
			t.Fatal(err)
		}
		both[i] = o.Collection(7)
	}
	given := map[uint64]bool{}
	for range 150_000 { // more than two reservations of each
		for i, c := range both {
			n, err := c.NextNumber(true)
			if err != nil {
				t.Fatal(err)
			}
			if given[n] {
				t.Fatalf("%d is given twice, the second time by %d", n, i)
			}
			given[n] = true
		}
	}
}

// TestNotAlone: over an engine that others write as well nothing is taken for one's own.
func TestNotAlone(t *testing.T) {
	if o, err := ownership.Of(shared{}); err == nil {
		t.Errorf("all is %T's", o)
	}
}

type shared struct{ kv.Engine }

func (shared) Capabilities() kv.Capabilities {
	return kv.Capabilities{Counters: true, RangeDeletes: true, Tables: true, LocalSync: true}
}
