package kvtest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
)

// replacing is a replacement, sealed, of what lies from start up to end.
func replacing(t *testing.T, s *Store, start, end string, all ...string) kv.Replacement {
	t.Helper()
	r, err := s.Replace([]byte(start))
	noError(t, err)
	size := 0
	for _, pair := range all {
		key, value, _ := strings.Cut(pair, "=")
		noError(t, r.Set([]byte(key), []byte(value)))
		size += len(key) + len(value)
	}
	if r.Size() < size {
		t.Fatalf("%d bytes were set, and its size is %d", size, r.Size())
	}
	noError(t, r.Seal([]byte(end)))
	return r
}

// checkReplace: the pairs are there and nothing else of the range, all at once or not at all, and older views do not see it.
func checkReplace(t *testing.T, s *Store) {
	ctx := context.Background()
	put(t, s, "a=1", "m1=1", "m2=2", "m3=3", "m4=4", "z=1")
	before := snap(t, s)
	if value, err := before.Get([]byte("m3")); err != nil || string(value) != "3" { // which keeps it
		t.Fatal(value, err)
	}
	r := replacing(t, s, "m", "m4", "m1=1", "m2=new", "m2x=more")
	have(t, before, "a=1 m1=1 m2=2 m3=3 m4=4 z=1")
	noError(t, r.Commit(ctx))
	r.Discard()
	have(t, before, "a=1 m1=1 m2=2 m3=3 m4=4 z=1")
	noError(t, before.Close())
	want := "a=1 m1=1 m2=new m2x=more m4=4 z=1"
	after := snap(t, s)
	have(t, after, want)
	if _, err := after.Get([]byte("m3")); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("a key that was replaced by nothing: %v", err)
	}
	put(t, s, "m1=later", "-m2")
	have(t, after, want)
	noError(t, after.Close())

	replacing(t, s, "m", "n", "m9=never").Discard()
	open, err := s.Replace([]byte("m"))
	noError(t, err)
	noError(t, open.Set([]byte("m9"), []byte("never")))
	open.Discard()
	open.Discard()
	if s.Reopen != nil {
		s.Engine = s.Reopen(t)
	}
	haveNow(t, s, "a=1 m1=later m2x=more m4=4 z=1")
	noError(t, replacing(t, s, "m", "n").Commit(ctx))
	haveNow(t, s, "a=1 z=1")
}
