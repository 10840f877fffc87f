package ownership

import (
	"slices"
	"testing"
)

// TestIntents: a key has one transaction at a time, and whoever waits for it is woken.
func TestIntents(t *testing.T) {
	all := NewIntents()
	a, b := all.Begin(), all.Begin()
	take := func(by *Intent, key string, isNew, ok bool) {
		t.Helper()
		if gotNew, gotOK := by.Take([]byte(key)); gotNew != isNew || gotOK != ok {
			t.Fatalf("taking %s is new %v, ok %v", key, gotNew, gotOK)
		}
	}
	k := []byte("k")
	if all.Held(k) != nil {
		t.Fatal("a key is held by nobody")
	}
	take(a, "k", true, true)
	take(a, "k", false, true)
	take(a, "l", true, true)
	take(b, "k", false, false)
	over := all.Held(k)
	select {
	case <-over:
		t.Fatal("the transaction is over before it is")
	default:
	}
	a.End()
	<-over
	if all.Held(k) != nil || all.open.Load() != 0 || len(all.all) != 0 {
		t.Fatal("a key is not given back")
	}
	take(b, "k", true, true)
	if all.Held(k) == nil {
		t.Fatal("a key is not taken again")
	}
	b.End()
}

// TestSparedIntents: who passes keys over is told of their collection when the transaction ends that has them, and of no other.
func TestSparedIntents(t *testing.T) {
	all := NewIntents()
	if all.Between([]byte("a"), []byte("z")) != nil || all.Spare([]byte("k"), 1) {
		t.Error("there are keys where there is no transaction")
	}
	a, b := all.Begin(), all.Begin()
	for _, key := range []string{"m", "c", "k"} {
		a.Take([]byte(key))
	}
	b.Take([]byte("d"))
	b.Take([]byte("m2"))
	if got := all.Between([]byte("c"), []byte("m")); !slices.Equal(got, []string{"c", "d", "k"}) {
		t.Errorf("between are %q", got)
	}
	if !all.Spare([]byte("k"), 7) || !all.Spare([]byte("c"), 7) || all.Spare([]byte("x"), 8) || !all.SpareAll([]string{"m", "m2"}, 9) {
		t.Error("a key that is held is not")
	}
	if got := a.End(); !slices.Equal(got, []uint32{7, 9}) {
		t.Errorf("somebody waits for %d", got)
	}
	if all.SpareAll([]string{"d", "m"}, 10) {
		t.Error("a transaction that has ended has a key")
	}
	if got := b.End(); !slices.Equal(got, []uint32{9, 10}) {
		t.Errorf("somebody waits for %d", got)
	}
}
