package member

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
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
