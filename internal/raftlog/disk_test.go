package raftlog

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/ebbdb/ebb/internal/kv/crashdisk"
	"github.com/ebbdb/ebb/internal/kv/inspect"
)

// killedDisk is the disk of a member whose process has ended without a stop, after it has kept 100 entries in its log.
func killedDisk(t *testing.T) *vfs.MemFS {
	t.Helper()
	fs := crashdisk.New()
	d, err := OpenDisk("raft", fs, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Begin(simSet, simSet, Peers{{ID: d.ID()}}); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(100) {
		e := &pb.Entry{Index: proto.Uint64(firstIndex + 1 + i), Term: proto.Uint64(1), Data: append([]byte{kindCommit}, make([]byte, 1000)...)}
		w := &Write{entries: []*pb.Entry{e}, sync: true}
		if err := d.Put([]*Write{w}); err != nil {
			t.Fatal(err)
		}
	}
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

// filesOf are the names and sizes of the files of a log.
func filesOf(t *testing.T, fs vfs.FS) map[string]int64 {
	t.Helper()
	names, err := fs.List("raft")
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int64{}
	for _, name := range names {
		info, err := fs.Stat(fs.PathJoin("raft", name))
		if err != nil {
			t.Fatal(err)
		}
		sizes[name] = info.Size()
	}
	return sizes
}

// find is the path of the file whose name has a part.
func find(t *testing.T, fs vfs.FS, part string) string {
	t.Helper()
	for name := range filesOf(t, fs) {
		if strings.Contains(name, part) {
			return fs.PathJoin("raft", name)
		}
	}
	t.Fatalf("there is no file %s", part)
	return ""
}

func writeAt(t *testing.T, fs vfs.FS, path string, b []byte, offset int64) {
	t.Helper()
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(b, offset)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func cutFile(t *testing.T, fs vfs.FS, path string, size int) {
	t.Helper()
	from, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	_, err = from.ReadAt(b, 0)
	if err := errors.Join(err, from.Close()); err != nil {
		t.Fatal(err)
	}
	to, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = to.Write(b)
	if err := errors.Join(err, to.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedLog: a log of which a part is missing that was synced is refused, and stays as it is; one that nobody has touched is whole.
func TestDamagedLog(t *testing.T) {
	for what, damage := range map[string]func(*vfs.MemFS){
		"nothing":      func(*vfs.MemFS) {},
		"its end":      func(fs *vfs.MemFS) { cutFile(t, fs, find(t, fs, ".log"), 8000) },
		"a page":       func(fs *vfs.MemFS) { writeAt(t, fs, find(t, fs, ".log"), make([]byte, 4096), 60000) },
		"all of it":    func(fs *vfs.MemFS) { cutFile(t, fs, find(t, fs, ".log"), 0) },
		"the log":      func(fs *vfs.MemFS) { must(fs.Remove(find(t, fs, ".log"))) },
		"the marker":   func(fs *vfs.MemFS) { must(fs.Remove(find(t, fs, inspect.MarkerPrefix))) },
		"the manifest": func(fs *vfs.MemFS) { must(fs.Remove(find(t, fs, "MANIFEST-"))) },
		"end, and note": func(fs *vfs.MemFS) {
			must(fs.Remove(find(t, fs, inspect.NoteFile)))
			writeAt(t, fs, find(t, fs, ".log"), make([]byte, 4096), 60000)
		},
	} {
		fs := killedDisk(t)
		damage(fs)
		before := filesOf(t, fs)
		d, err := OpenDisk("raft", fs, nil)
		if what == "nothing" {
			if err != nil || d.last != firstIndex+100 {
				t.Fatalf("a log that is whole: %v, %v", d, err)
			}
			must(d.Close())
			continue
		}
		var damaged *inspect.Error
		if !errors.As(err, &damaged) || !strings.Contains(err.Error(), "remove this member from the set") {
			t.Errorf("%s is missing: %v, %v", what, d, err)
			continue
		}
		for name, size := range filesOf(t, fs) {
			if was, there := before[name]; name != "LOCK" && (!there || was != size) {
				t.Errorf("%s is missing: %s has %d bytes, and had %d", what, name, size, was)
			}
		}
	}
}

// TestLogWithoutFormat: a log that has entries is none that begins.
func TestLogWithoutFormat(t *testing.T) {
	fs := killedDisk(t)
	d, err := OpenDisk("raft", fs, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := d.db.NewBatch()
	must(b.Delete(keyFormat, nil))
	must(d.commit(b, true))
	must(d.Close())
	if d, err := OpenDisk("raft", fs, nil); err == nil || !strings.Contains(err.Error(), "whose it is") {
		t.Errorf("%v, %v", d, err)
	}
}
