package spill_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/spill"
	"github.com/ebbdb/ebb/internal/testseed"
)

type record struct{ key, value []byte }

func (r *record) read(from *spill.Run) error { return from.Read(&r.key, &r.value) }

func (r *record) compare(o *record) int { return bytes.Compare(r.key, o.key) }

// What several runs hold comes out in order, equal keys in the order of their runs, and no file is left behind.
func TestMerge(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	var runs []*spill.Run
	var want []string
	for n := range 1 + rng.IntN(9) {
		var keys []string
		for range rng.IntN(300) {
			keys = append(keys, fmt.Sprintf("%0*d", 1+rng.IntN(200), rng.IntN(90)))
		}
		slices.Sort(keys)
		runs = append(runs, write(t, dir, keys, n))
		for i, key := range keys {
			want = append(want, fmt.Sprintf("%s\x00%d\x00%d", key, n, i))
		}
	}
	m, err := spill.Open(runs, func(r *spill.Run, rec *record) error { return rec.read(r) }, (*record).compare)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for rec := m.Top(); rec != nil; rec = m.Top() {
		got = append(got, fmt.Sprintf("%s\x00%s", rec.key, rec.value))
		if err := m.Next(); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortStableFunc(want, func(a, b string) int {
		before, _, _ := bytes.Cut([]byte(a), []byte{0})
		after, _, _ := bytes.Cut([]byte(b), []byte{0})
		return bytes.Compare(before, after)
	})
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	spill.Close(runs)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func write(t *testing.T, dir string, keys []string, n int) *spill.Run {
	t.Helper()
	r, err := spill.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		if err := r.Write([]byte(key), fmt.Appendf(nil, "%d\x00%d", n, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Rewind(); err != nil {
		t.Fatal(err)
	}
	return r
}

// A record that is not whole is an error and not the end.
func TestBrokenRecord(t *testing.T) {
	for name, bytes := range map[string][]byte{"cut in its lengths": {0xFF}, "too long": {0xFF, 0xFF, 0xFF, 0xFF, 0x7F}, "cut": {9}} {
		r, err := spill.New(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := r.Write(bytes); err != nil {
			t.Fatal(err)
		}
		if err := r.Rewind(); err != nil {
			t.Fatal(err)
		}
		var a, b []byte
		if err := r.Read(&a, &b); err == nil || err == io.EOF {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEmptyParts(t *testing.T) {
	r, err := spill.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 2 {
		if err := r.Write(nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Rewind(); err != nil {
		t.Fatal(err)
	}
	var a, b []byte
	for i := range 3 {
		if err := r.Read(&a, &b); (err == io.EOF) != (i == 2) || err != nil && err != io.EOF || len(a)+len(b) > 0 {
			t.Errorf("read %d: %q, %q, %v", i, a, b, err)
		}
	}
}

func TestNoFolder(t *testing.T) {
	if _, err := spill.New("/nowhere/at/all"); err == nil {
		t.Error("a file where no folder is")
	}
}
