package walk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
)

const stored = 3 * StepsBetweenChecks

func key(i int) []byte { return fmt.Appendf(nil, "k%04d", i) }

func filled(t *testing.T) kv.Snapshot {
	t.Helper()
	e, err := pebblekv.OpenMemory(pebblekv.Options{})
	must(t, err)
	txn, err := e.Begin()
	must(t, err)
	for i := range stored {
		txn.Set(key(i), []byte("value"))
	}
	must(t, txn.Commit(context.Background(), kv.Buffered))
	s, err := e.Snapshot()
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(s.Close(), e.Close())) })
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWalk: a walk gives the keys between its bounds, in its direction, from behind where it goes on.
func TestWalk(t *testing.T) {
	s := filled(t)
	bounds := kv.IterOptions{Lower: key(10), Upper: key(20)}
	for _, c := range []struct {
		name           string
		bounds         kv.IterOptions
		reverse, again bool
		after, seek    []byte
		want           []int
	}{
		{name: "all", bounds: bounds, want: []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}},
		{name: "behind", bounds: bounds, after: key(17), want: []int{18, 19}},
		{name: "again", bounds: bounds, after: key(17), again: true, want: []int{17, 18, 19}},
		{name: "behind what is gone", bounds: bounds, after: []byte("k0017x"), want: []int{18, 19}},
		{name: "down", bounds: bounds, reverse: true, after: key(12), want: []int{11, 10}},
		{name: "sought", bounds: bounds, seek: key(18), want: []int{18, 19}},
		{name: "sought, down", bounds: bounds, reverse: true, seek: key(12), want: []int{11, 10}},
		{name: "nothing between", bounds: kv.IterOptions{Lower: key(20), Upper: key(20)}},
		{name: "bounds that cross", bounds: kv.IterOptions{Lower: key(20), Upper: key(10)}},
	} {
		w := Keys{Again: c.again}
		must(t, w.Open(context.Background(), s, c.bounds, c.reverse, c.after))
		if c.seek != nil {
			w.Seek(c.seek)
		}
		var got []int
		for w.Next() {
			var n int
			_, err := fmt.Sscanf(string(w.Key()), "k%d", &n)
			must(t, err)
			got = append(got, n)
		}
		must(t, w.Err())
		must(t, errors.Join(w.Close(), w.Close()))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestWalkEnds: a walk looks at its context now and then, and so does a count.
func TestWalkEnds(t *testing.T) {
	s := filled(t)
	why := errors.New("enough")
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	var w Keys
	must(t, w.OpenRange(ctx, s, []byte("k")))
	defer w.Close()
	n := 0
	for w.Next() {
		if n++; n == 10 {
			stop(why)
		}
	}
	if n >= StepsBetweenChecks || !errors.Is(w.Err(), why) {
		t.Errorf("%d keys, and then %v", n, w.Err())
	}
}

// TestCount: keys are counted up to a limit.
func TestCount(t *testing.T) {
	s := filled(t)
	all := kv.IterOptions{Lower: key(0), Upper: []byte("l")}
	for limit, want := range map[int64]int64{-1: stored, 5: 5, stored: stored, 2 * stored: stored, 0: 0} {
		if n, err := Count(context.Background(), s, all, limit); n != want || err != nil {
			t.Errorf("up to %d: %d (%v), want %d", limit, n, err, want)
		}
	}
	if n, err := Count(context.Background(), s, kv.IterOptions{Lower: key(9), Upper: key(9)}, -1); n != 0 || err != nil {
		t.Errorf("of nothing: %d (%v)", n, err)
	}
}
