package kvtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
)

// pairs gives "key=value" pairs to Load, out of memory that it uses again, and then err.
func pairs(err error, all ...string) func() (key, value []byte, ok bool, e error) {
	var k, v []byte
	return func() ([]byte, []byte, bool, error) {
		if len(all) == 0 {
			return nil, nil, false, err
		}
		key, value, _ := strings.Cut(all[0], "=")
		all = all[1:]
		k, v = append(k[:0], key...), append(v[:0], value...)
		return k, v, true, nil
	}
}

// checkLoad: all at once or not at all, and from then on like what was written any other way.
func checkLoad(t *testing.T, s *Store) {
	ctx := context.Background()
	put(t, s, "a=1", "z=1")
	before := snap(t, s)
	noError(t, s.Load(ctx, pairs(nil)))
	noError(t, s.Load(ctx, pairs(nil, "m1=1", "m2=2", "m3=3", "m4=")))
	have(t, before, "a=1 z=1")
	noError(t, before.Close())

	broken := errors.New("no more")
	if err := s.Load(ctx, pairs(broken, "n1=1", "n2=2")); !errors.Is(err, broken) {
		t.Fatalf("the source's error came back as %v", err)
	}
	for _, disorder := range [][]string{{"n2=2", "n1=1"}, {"n1=1", "n1=2"}} {
		if err := s.Load(ctx, pairs(nil, disorder...)); err == nil {
			t.Fatalf("%v was loaded", disorder)
		}
	}
	after := snap(t, s)
	have(t, after, "a=1 m1=1 m2=2 m3=3 m4= z=1")
	put(t, s, "m1=changed", "-m2", "m3x=new")
	have(t, after, "a=1 m1=1 m2=2 m3=3 m4= z=1")
	noError(t, after.Close())
	want := "a=1 m1=changed m3=3 m3x=new m4= z=1"
	haveNow(t, s, want)
	if s.Reopen != nil {
		s.Engine = s.Reopen(t)
		haveNow(t, s, want)
	}
	noError(t, s.DeleteRange([]byte("m"), []byte("n")))
	haveNow(t, s, "a=1 z=1")
	checkLongLoad(t, s)
}

func haveNow(t *testing.T, e kv.Engine, want string) {
	t.Helper()
	view := snap(t, e)
	have(t, view, want)
	noError(t, view.Close())
}

// checkLongLoad: more than a block of a table holds.
func checkLongLoad(t *testing.T, s *Store) {
	t.Helper()
	var all []string
	for i := range 1000 {
		all = append(all, fmt.Sprintf("n%06d=%0200d", i, i))
	}
	noError(t, s.Load(context.Background(), pairs(nil, all...)))
	view := snap(t, s)
	defer view.Close()
	haveWithin(t, view, kv.IterOptions{Lower: []byte("n"), Upper: []byte("o")}, strings.Join(all, " "))
}
