package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
)

func checkGet(t *testing.T, s *Store) {
	put(t, s, "a=1", "empty=", "zero\x00byte=x")
	view := snap(t, s)
	defer view.Close()
	haveValue(t, view, "a", "1")
	haveValue(t, view, "zero\x00byte", "x")
	haveNothing(t, view, "b")
	haveNothing(t, view, "zero")
	value, err := view.Get([]byte("empty"))
	noError(t, err)
	if value == nil || len(value) != 0 {
		t.Fatalf("an empty value came back as %v", value)
	}
}

func checkGetMany(t *testing.T, s *Store) {
	for i := range 50 {
		put(t, s, fmt.Sprintf("k%02d=%d", i*2, i*2))
	}
	txn := begin(t, s)
	defer txn.Rollback()
	write(txn, "k01=own", "k02=mine", "-k04", "k00=")
	for key, want := range map[string]bool{"k00": true, "k01": true, "k04": true, "k06": false, "k99": false} {
		if txn.Wrote([]byte(key)) != want {
			t.Fatalf("%s: written %v", key, !want)
		}
	}
	for _, n := range []int{0, 1, 3, 100} {
		var keys [][]byte
		for i := range n { // not in order, and with one that is asked for twice
			keys = append(keys, fmt.Appendf(nil, "k%02d", i*37%100))
		}
		if n > 0 {
			keys = append(keys, keys[0])
		}
		for _, r := range []kv.Reader{txn, snap(t, s)} {
			values, err := r.GetMany(keys)
			noError(t, err)
			if len(values) != len(keys) {
				t.Fatalf("%d values for %d keys", len(values), len(keys))
			}
			ahead := make([][]byte, len(keys))
			looked, err := r.Ahead(keys, ahead)
			noError(t, err)
			if looked > len(keys) || looked == 0 && len(keys) > 0 || slices.ContainsFunc(ahead[looked:], func(v []byte) bool { return v != nil }) {
				t.Fatalf("of %d keys %d were looked for, and others have values", len(keys), looked)
			}
			for i, key := range keys {
				want, err := r.Get(key)
				if ahead[i] != nil && (err != nil || !bytes.Equal(ahead[i], want)) {
					t.Fatalf("%s: Ahead %q, Get %q (%v)", key, ahead[i], want, err)
				}
				if (values[i] == nil) != errors.Is(err, kv.ErrNotFound) || !bytes.Equal(values[i], want) {
					t.Fatalf("%s: GetMany %q, Get %q (%v)", key, values[i], want, err)
				}
			}
			if view, ok := r.(kv.Snapshot); ok {
				noError(t, view.Close())
			}
		}
	}
}

// checkGetManyNear asks for keys that lie near each other and far, with some between that are not there or no more.
func checkGetManyNear(t *testing.T, s *Store) {
	const most = 4000
	rng := rand.New(rand.NewPCG(7, 7))
	key := func(n int) []byte { return fmt.Appendf(nil, "k%05d", n) }
	for _, delete := range []bool{false, true} { // the second leaves long stretches of deleted keys
		txn := begin(t, s)
		for n := range most {
			switch {
			case !delete && rng.IntN(4) > 0:
				txn.Set(key(n), key(n))
			case delete && n%500 < 300:
				txn.Delete(key(n))
			}
		}
		noError(t, txn.Commit(t.Context(), kv.Buffered))
		view := snap(t, s)
		for range 30 {
			var keys [][]byte
			for n := rng.IntN(100); n < most; n += 1 + rng.IntN(1+rng.IntN(30)*rng.IntN(30)) {
				keys = append(keys, key(n))
			}
			values, err := view.GetMany(keys)
			noError(t, err)
			for i, key := range keys {
				if want, err := view.Get(key); (values[i] == nil) != errors.Is(err, kv.ErrNotFound) || !bytes.Equal(values[i], want) {
					t.Fatalf("%s: GetMany %q, Get %q (%v)", key, values[i], want, err)
				}
			}
		}
		noError(t, view.Close())
	}
}

func checkOrder(t *testing.T, s *Store) {
	put(t, s, "\xff=7", "b=4", "a\xff=3", "a\x00=2", "a=1", "\x00=0", "b\x00=5", "c=6")
	view := snap(t, s)
	defer view.Close()
	have(t, view, "\x00=0 a=1 a\x00=2 a\xff=3 b=4 b\x00=5 c=6 \xff=7")
}

func checkBounds(t *testing.T, s *Store) {
	put(t, s, "a=1", "b=2", "c=3", "d=4")
	txn := begin(t, s)
	defer txn.Rollback()
	write(txn, "bb=own", "-c", "dd=own", "a0=own")
	view := snap(t, s)
	defer view.Close()
	cases := []struct {
		lower, upper string // "" is open
		view, txn    string
	}{
		{"", "", "a=1 b=2 c=3 d=4", "a=1 a0=own b=2 bb=own d=4 dd=own"},
		{"b", "", "b=2 c=3 d=4", "b=2 bb=own d=4 dd=own"},
		{"", "c", "a=1 b=2", "a=1 a0=own b=2 bb=own"},
		{"b", "d", "b=2 c=3", "b=2 bb=own"},
		{"b\x00", "d\x00", "c=3 d=4", "bb=own d=4"},
		{"c", "d", "c=3", ""},
		{"e", "", "", ""},
		{"", "a", "", ""},
		{"bb", "bc", "", "bb=own"},
		{"d", "b", "", ""},
	}
	for _, c := range cases {
		o := kv.IterOptions{Lower: bound(c.lower), Upper: bound(c.upper)}
		haveWithin(t, view, o, c.view)
		haveWithin(t, txn, o, c.txn)
	}
	it, err := txn.NewIter(kv.IterOptions{Lower: []byte("b"), Upper: []byte("d")})
	noError(t, err)
	defer it.Close()
	for _, seek := range []struct {
		name string
		move func([]byte) bool
		key  string
		want string
	}{
		{"SeekGE", it.SeekGE, "a", "b=2"},
		{"SeekGE", it.SeekGE, "bb", "bb=own"},
		{"SeekGE", it.SeekGE, "c", "-"},
		{"SeekGE", it.SeekGE, "x", "-"},
		{"SeekLT", it.SeekLT, "z", "bb=own"},
		{"SeekLT", it.SeekLT, "bb", "b=2"},
		{"SeekLT", it.SeekLT, "b", "-"},
		{"SeekLT", it.SeekLT, "a", "-"},
	} {
		if moved := seek.move([]byte(seek.key)); at(t, it) != seek.want || moved != it.Valid() {
			t.Fatalf("%s(%s): moved %v to %s, want %s", seek.name, seek.key, moved, at(t, it), seek.want)
		}
	}
}

func bound(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}

func checkMoves(t *testing.T, s *Store) {
	put(t, s, "b=2", "d=4", "f=6", "h=8")
	txn := begin(t, s)
	defer txn.Rollback()
	write(txn, "a=1", "-b", "d=own", "e=5", "-f", "-g", "i=9")
	it, err := txn.NewIter(kv.IterOptions{})
	noError(t, err)
	defer it.Close()
	moves := []struct {
		name string
		move func() bool
		want string
	}{
		{"Next of a new iterator", it.Next, "a=1"},
		{"Next", it.Next, "d=own"},
		{"Prev", it.Prev, "a=1"},
		{"Next", it.Next, "d=own"},
		{"Next", it.Next, "e=5"},
		{"Next", it.Next, "h=8"},
		{"Prev", it.Prev, "e=5"},
		{"Prev", it.Prev, "d=own"},
		{"Next", it.Next, "e=5"},
		{"Next", it.Next, "h=8"},
		{"Next", it.Next, "i=9"},
		{"Prev", it.Prev, "h=8"},
		{"Next", it.Next, "i=9"},
		{"Next past the end", it.Next, "-"},
		{"Prev after the end", it.Prev, "-"},
		{"Last", it.Last, "i=9"},
		{"Prev", it.Prev, "h=8"},
		{"First", it.First, "a=1"},
		{"Prev past the start", it.Prev, "-"},
		{"Next after the start", it.Next, "-"},
		{"SeekGE c", func() bool { return it.SeekGE([]byte("c")) }, "d=own"},
		{"Prev", it.Prev, "a=1"},
		{"SeekLT h", func() bool { return it.SeekLT([]byte("h")) }, "e=5"},
		{"Next", it.Next, "h=8"},
	}
	for i, m := range moves {
		if moved := m.move(); at(t, it) != m.want || moved != it.Valid() {
			t.Fatalf("move %d, %s: moved %v to %s, want %s", i, m.name, moved, at(t, it), m.want)
		}
	}
	noError(t, it.Err())
	back, err := txn.NewIter(kv.IterOptions{})
	noError(t, err)
	defer back.Close()
	if back.Prev(); at(t, back) != "i=9" {
		t.Fatalf("Prev of a new iterator stands on %s", at(t, back))
	}
}

func checkSnapshot(t *testing.T, s *Store) {
	put(t, s, "a=1", "b=1")
	before := snap(t, s)
	it, err := before.NewIter(kv.IterOptions{})
	noError(t, err)
	put(t, s, "a=2", "-b", "c=2")
	noError(t, s.DeleteRange([]byte("x"), []byte("z")))
	after := snap(t, s)
	have(t, before, "a=1 b=1")
	have(t, after, "a=2 c=2")
	haveValue(t, before, "b", "1")
	haveNothing(t, before, "c")
	haveNothing(t, after, "b")
	if got := walk(t, it, it.First, it.Next, false); got != "a=1 b=1" {
		t.Fatalf("an iterator saw what came later: %s", got)
	}
	noError(t, it.Close())
	noError(t, before.Close())
	noError(t, after.Close())
}

func checkOwnWrites(t *testing.T, s *Store) {
	put(t, s, "a=1", "b=2", "c=3")
	txn := begin(t, s)
	have(t, txn, "a=1 b=2 c=3")
	write(txn, "b=own", "-c", "d=own")
	have(t, txn, "a=1 b=own d=own")
	haveValue(t, txn, "b", "own")
	haveNothing(t, txn, "c")
	write(txn, "c=back", "-d", "-a", "-missing")
	have(t, txn, "b=own c=back")
	other := snap(t, s)
	have(t, other, "a=1 b=2 c=3")
	noError(t, other.Close())
	if txn.Size() == 0 {
		t.Fatal("the transaction says it is empty")
	}
	commit(t, txn)
	after := snap(t, s)
	have(t, after, "b=own c=back")
	noError(t, after.Close())
}

func checkWriteWhileIterating(t *testing.T, s *Store) {
	put(t, s, "a=1", "c=1")
	txn := begin(t, s)
	write(txn, "b=1")
	it, err := txn.NewIter(kv.IterOptions{})
	noError(t, err)
	bare, err := txn.NewIter(kv.IterOptions{Lower: []byte("c")}) // nothing of the transaction's own in there, yet
	noError(t, err)
	it.First()
	write(txn, "aa=2", "-b", "c=2", "d=2")
	if got := walk(t, it, it.First, it.Next, false); got != "a=1 b=1 c=1" {
		t.Fatalf("an iterator saw later writes: %s", got)
	}
	if got := walk(t, bare, bare.First, bare.Next, false); got != "c=1" {
		t.Fatalf("an iterator saw later writes: %s", got)
	}
	have(t, txn, "a=1 aa=2 c=2 d=2")
	noError(t, it.Close())
	write(txn, "e=3")
	have(t, txn, "a=1 aa=2 c=2 d=2 e=3")
	noError(t, bare.Close())
	txn.Rollback()
}

// checkCopies changes what was handed in and what was handed out.
func checkCopies(t *testing.T, s *Store) {
	txn := begin(t, s)
	key, value := []byte("key"), []byte("value")
	txn.Set(key, value)
	copy(key, "xxx")
	copy(value, "xxxxx")
	haveValue(t, txn, "key", "value")
	haveNothing(t, txn, "xxx")
	commit(t, txn)
	view := snap(t, s)
	kept, err := view.Get([]byte("key"))
	noError(t, err)
	noError(t, view.Close())
	put(t, s, "key=other")
	if string(kept) != "value" {
		t.Fatalf("a value that Get returned has changed to %q", kept)
	}
}

func checkRollback(t *testing.T, s *Store) {
	put(t, s, "a=1")
	txn := begin(t, s)
	write(txn, "a=2", "b=2")
	txn.Add([]byte("n"), 5)
	txn.Claim([]byte("a"))
	txn.Rollback()
	view := snap(t, s)
	have(t, view, "a=1")
	haveCount(t, view, "n", 0)
	noError(t, view.Close())
}

func checkCancelled(t *testing.T, s *Store) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	txn := begin(t, s)
	write(txn, "a=1")
	if err := txn.Commit(ctx, kv.Synced); !errors.Is(err, context.Canceled) {
		t.Fatalf("commit: %v, want %v", err, context.Canceled)
	}
	view := snap(t, s)
	have(t, view, "")
	noError(t, view.Close())
}
