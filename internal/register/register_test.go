package register

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// TestCheck: histories that are written by hand.
func TestCheck(t *testing.T) {
	write := func(client int, value, begin, end int64) porcupine.Operation {
		return Operation(client, Call{Kind: Write, Key: "k", Value: value}, begin, Answer{Known: end > 0}, end)
	}
	read := func(value, begin, end int64) porcupine.Operation {
		return Operation(9, Call{Kind: Read, Key: "k"}, begin, Answer{Known: true, Value: value}, end)
	}
	swap := func(old, value int64, done bool, begin, end int64) porcupine.Operation {
		return Operation(8, Call{Kind: Swap, Key: "k", Old: old, Value: value}, begin, Answer{Known: true, Done: done}, end)
	}
	for _, c := range []struct {
		about string
		calls []porcupine.Operation
		good  bool
	}{
		{"one after the other", []porcupine.Operation{write(1, 1, 1, 2), read(1, 3, 4), write(1, 2, 5, 6), read(2, 7, 8)}, true},
		{"a stale read", []porcupine.Operation{write(1, 1, 1, 2), write(1, 2, 3, 4), read(1, 5, 6)}, false},
		{"a read beside a write", []porcupine.Operation{write(1, 1, 1, 2), write(1, 2, 3, 6), read(1, 4, 5)}, true},
		{"a lost write", []porcupine.Operation{write(1, 1, 1, 2), read(0, 3, 4)}, false},
		{"a write of unknown outcome that was done later", []porcupine.Operation{write(1, 1, 1, 0), read(0, 3, 4), read(1, 5, 6)}, true},
		{"one that is taken back", []porcupine.Operation{write(1, 1, 1, 0), read(1, 3, 4), read(0, 5, 6)}, false},
		{"a swap", []porcupine.Operation{write(1, 1, 1, 2), swap(1, 2, true, 3, 4), swap(1, 3, false, 5, 6), read(2, 7, 8)}, true},
		{"a swap of what is not there any more", []porcupine.Operation{write(1, 1, 1, 2), write(1, 2, 3, 4), swap(1, 3, true, 5, 6)}, false},
	} {
		if r := Check(c.calls, time.Minute); len(r.Wrong) == 0 != c.good {
			t.Errorf("%s: %+v", c.about, r)
		}
		if c.good && len(Check(Spoil(c.calls), time.Minute).Wrong) == 0 {
			t.Errorf("%s, spoilt, is taken for good", c.about)
		}
	}
}
