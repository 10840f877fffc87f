package member

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestPutInPlace: a snapshot that has come takes the place of the store, whatever comes beside it.
func TestPutInPlace(t *testing.T) {
	files := vfs.NewMem()
	m := &member{group: New(Options{Files: files, Dir: "data", StoreDir: "store"})}
	put := func(folder, name string) {
		t.Helper()
		if err := files.MkdirAll(m.path(folder), 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := files.Create(files.PathJoin(m.path(folder), name), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	has := func(folder string, want ...string) {
		t.Helper()
		names, err := files.List(m.path(folder))
		if len(names) != len(want) || len(want) == 1 && names[0] != want[0] {
			t.Errorf("%s has %v, want %v; %v", folder, names, want, err)
		}
	}
	put("store", "old")
	put(arrivedDir, "first")
	put(incomingDir, "second")
	m.incoming.mu.Lock() // as a part does that waits for room on a full disk
	defer m.incoming.mu.Unlock()
	for range 2 { // the second time there is nothing to be done
		if err := m.putInPlace(); err != nil {
			t.Fatal(err)
		}
		has("store", "first")
		has(incomingDir, "second")
		has(arrivedDir)
	}
}

// TestPartsOfEarlierVersions: what a snapshot consists of is taken once each, by its number, and as it comes from a version that gives none.
func TestPartsOfEarlierVersions(t *testing.T) {
	numbered := func(n int64) bson.Doc { return bson.Build().Int64("part", n).Doc() }
	for _, c := range []struct {
		letters []bson.Doc
		taken   int64
	}{
		{[]bson.Doc{bson.EmptyDoc, bson.EmptyDoc, bson.EmptyDoc}, 3},
		{[]bson.Doc{numbered(0), numbered(0), numbered(1)}, 2},
	} {
		m := &member{}
		in := &m.incoming
		in.from, in.chunks = 7, make(chan []byte, len(c.letters))
		for _, letter := range c.letters {
			part, err := partNumber(letter)
			if err == nil {
				err = m.addToSnapshot(t.Context(), 7, part, nil)
			}
			if err != nil {
				t.Errorf("%s of %s: %v", letter, c.letters, err)
			}
		}
		if in.part != c.taken || int64(len(in.chunks)) != c.taken {
			t.Errorf("of %s %d are taken, %d is the next", c.letters, len(in.chunks), in.part)
		}
	}
	if _, err := partNumber(bson.MustDoc(`{part: "x"}`)); err == nil {
		t.Error("a number that is none is taken")
	}
}
