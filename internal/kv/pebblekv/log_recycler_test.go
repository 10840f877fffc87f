package pebblekv

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv"
)

// canRecycle says whether the file system can make a file zeros and keep its blocks.
func canRecycle(t *testing.T) bool {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	must(os.WriteFile(name, ones(1<<20), 0o600))
	file, err := vfs.Default.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	must(err)
	defer file.Close()
	_, err = zeroRange(file, 4<<20)
	return err == nil
}

func recyclerIn(dir string) *logRecycler {
	no := func() bool { return false }
	return &logRecycler{disk: vfs.Default, path: filepath.Join(dir, logSpareFile), most: 16 << 20, zero: zeroRange, isHeld: no, isScarce: no}
}

// TestRecycling has a file of the log come again under another name: all zeros, with its blocks.
func TestRecycling(t *testing.T) {
	can, dir := canRecycle(t), t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	d := logDisk{vfs.Default, recyclerIn(dir)}
	file, err := d.Create(path("000001.log"), "pebble-wal")
	must(err)
	_, err = file.Write(ones(1 << 20))
	must(err)
	must(file.Close())
	must(d.Remove(path("000001.log")))
	_, err = os.Stat(path(logSpareFile))
	if (err == nil) != can {
		t.Fatalf("the file system can: %v, and the spare: %v", can, err)
	}
	file, err = d.Create(path("000002.log"), "pebble-wal")
	must(err)
	_, err = file.Write(ones(1000))
	must(err)
	must(file.Sync())
	must(file.Close())
	content, err := os.ReadFile(path("000002.log"))
	must(err)
	if !bytes.Equal(content[:1000], ones(1000)) || bytes.ContainsFunc(content[1000:], func(r rune) bool { return r != 0 }) {
		t.Errorf("the new file is not what was written, and zeros")
	}
	info, err := os.Stat(path("000002.log"))
	must(err)
	if can && allocated(info) < 1<<20 {
		t.Errorf("the new file takes %d bytes on disk", allocated(info))
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("the directory holds %v", names)
	}
}

// TestRecyclingLeaves lists what is removed as ever.
func TestRecyclingLeaves(t *testing.T) {
	yes := func() bool { return true }
	for name, set := range map[string]func(r *logRecycler, file string){
		"another name": func(_ *logRecycler, file string) { must(os.Link(file, file+".copy")) },
		"too large":    func(r *logRecycler, _ string) { r.most = 1000 },
		"scarce":       func(r *logRecycler, _ string) { r.isScarce = yes },
		"a spare":      func(r *logRecycler, _ string) { r.state.Store(spareReady) },
		"busy":         func(r *logRecycler, _ string) { r.state.Store(spareBusy) },
		"unsupported":  func(r *logRecycler, _ string) { r.unsupported = true },
	} {
		dir := t.TempDir()
		r, file := recyclerIn(dir), filepath.Join(dir, "000001.log")
		must(os.WriteFile(file, ones(1<<20), 0o600))
		set(r, file)
		must(logDisk{vfs.Default, r}.Remove(file))
		for _, gone := range []string{file, r.path} {
			if _, err := os.Stat(gone); err == nil {
				t.Errorf("%s: %s is there", name, filepath.Base(gone))
			}
		}
		if name != "another name" {
			continue
		}
		if left, err := os.ReadFile(file + ".copy"); err != nil || !bytes.Equal(left, ones(1<<20)) {
			t.Errorf("the copy has changed: %v", err)
		}
	}
}

// TestRecyclingClears removes what a process has left, and not what this one keeps.
func TestRecyclingClears(t *testing.T) {
	for state, want := range map[int32]bool{noSpare: false, spareBusy: true, spareReady: true} {
		r := recyclerIn(t.TempDir())
		for range 2 { // the second time there is nothing
			must(r.clear())
		}
		must(os.WriteFile(r.path, ones(1000), 0o600))
		r.state.Store(state)
		must(r.clear())
		if _, err := os.Stat(r.path); (err == nil) != want || r.state.Load() != state {
			t.Errorf("state %d: %v, then %d", state, err, r.state.Load())
		}
	}
}

// TestRecyclingHeld has the spare keep its name while the files are held.
func TestRecyclingHeld(t *testing.T) {
	dir := t.TempDir()
	r := recyclerIn(dir)
	r.isHeld = func() bool { return true }
	must(os.WriteFile(r.path, ones(1000), 0o600))
	r.state.Store(spareReady)
	file, err := logDisk{vfs.Default, r}.Create(filepath.Join(dir, "000001.log"), "pebble-wal")
	must(err)
	must(file.Close())
	if _, err := os.Stat(r.path); err != nil {
		t.Error(err)
	}
}

// TestRecycledLog writes many logs, some with small commits and some with large ones, is cut off, and has all when it starts again.
func TestRecycledLog(t *testing.T) {
	can, dir := canRecycle(t), t.TempDir()
	e, err := Open(dir, Options{MemTableBytes: 1 << 20})
	must(err)
	written := 0
	for round := range 12 {
		for range 20 {
			txn, err := e.Begin()
			must(err)
			txn.Set(benchKey(written), ones(1000+round%3*40_000))
			must(txn.Commit(context.Background(), kv.Synced))
			written++
		}
		must(e.db.Flush())
		if !passes(func() bool { return can && e.logs.state.Load() != spareReady }, 1000) {
			t.Fatal("no log is kept")
		}
	}
	must(e.HoldFiles(context.Background()))
	copied := filepath.Join(t.TempDir(), "copy") // as it is when the process is killed
	must(os.CopyFS(copied, os.DirFS(dir)))
	e.ReleaseFiles()
	must(e.Close())
	for _, dir := range []string{copied, dir} {
		e, err := Open(dir, Options{})
		must(err)
		if _, err := os.Stat(filepath.Join(dir, logSpareFile)); err == nil && e.logs.state.Load() == noSpare {
			t.Error("what was left of a spare is there")
		}
		s, err := e.Snapshot()
		must(err)
		for i := range written {
			if value, err := s.Get(benchKey(i)); err != nil || len(value) != 1000+i/20%3*40_000 {
				t.Fatalf("%d: %d bytes, %v", i, len(value), err)
			}
		}
		s.Close()
		must(e.Close())
	}
}
