package ownership

import "testing"

// TestIntents: a key has one transaction at a time, and whoever waits for it is woken.
func TestIntents(t *testing.T) {
	all := NewIntents()
	a, b := all.Begin(), all.Begin()
	k, l := []byte("k"), []byte("l")
	if all.Held(k) != nil || !a.Take(k) || !a.Take(k) || !a.Take(l) || b.Take(k) {
		t.Fatal("a key is not its transaction's alone")
	}
	over := all.Held(k)
	select {
	case <-over:
		t.Fatal("the transaction is over before it is")
	default:
	}
	a.End()
	<-over
	if all.Held(k) != nil || all.open.Load() != 0 || !b.Take(k) || all.Held(k) == nil {
		t.Fatal("a key is not given back")
	}
	b.End()
}
