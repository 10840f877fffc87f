package claims

import (
	"fmt"
	"testing"
)

func TestClaimsForget(t *testing.T) {
	c := New()
	for s := range uint64(10) {
		c.Record(s+1, [][]byte{[]byte("all"), fmt.Append(nil, s+1)})
	}
	c.Forget(4)
	for begin := range uint64(12) {
		if got, want := c.Conflict(begin, [][]byte{[]byte("all")}), begin < 10; got != want {
			t.Errorf("a transaction from %d conflicts: %v", begin, got)
		}
	}
	if !c.Conflict(4, [][]byte{[]byte("5")}) || c.Conflict(5, [][]byte{[]byte("5")}) {
		t.Error("a claim is remembered wrongly")
	}
	c.Forget(10)
	if len(c.last) != 0 || len(c.order) != 0 {
		t.Errorf("%d and %d entries are left", len(c.last), len(c.order))
	}
}

// Past its bound the table forgets, and old transactions that claim anything fail instead of missing a conflict.
func TestClaimsBound(t *testing.T) {
	c := New()
	const perCommit = 1000
	var sequence uint64
	for range 3 * maxClaims / perCommit {
		sequence++
		keys := make([][]byte, perCommit)
		for i := range keys {
			keys[i] = fmt.Append(nil, sequence, i)
		}
		c.Record(sequence, keys)
		if len(c.order) > maxClaims || len(c.last) > maxClaims {
			t.Fatalf("%d claims are held", len(c.order))
		}
	}
	for _, begin := range []uint64{0, c.floor - 1} {
		if !c.Conflict(begin, [][]byte{[]byte("unclaimed")}) {
			t.Errorf("a transaction from %d may have missed a conflict", begin)
		}
		if c.Conflict(begin, nil) {
			t.Errorf("a transaction from %d that claims nothing fails", begin)
		}
	}
	if c.Conflict(c.floor, [][]byte{[]byte("unclaimed")}) {
		t.Error("a transaction that misses nothing fails")
	}
}
