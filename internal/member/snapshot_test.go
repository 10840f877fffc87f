package member

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/raftlog"
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

// installing is a raftlog.Machine whose store a snapshot is about to take the place of.
type installing struct {
	raftlog.Machine
	begun, goOn chan struct{}
}

func (m installing) Install(context.Context) (uint64, error) {
	close(m.begun)
	<-m.goOn
	return 5, nil
}
func (installing) Changed()    {}
func (installing) Deposed()    {}
func (installing) Sync() error { return nil }

// TestSnapshotBehindSnapshot: as long as a snapshot that the log has taken is not in the place of the store, no other one takes its place.
func TestSnapshotBehindSnapshot(t *testing.T) {
	files := vfs.NewMem()
	m := &member{group: New(Options{Files: files, Dir: "data", StoreDir: "store"}), ctx: t.Context()}
	var err error
	if m.disk, err = raftlog.OpenDisk(m.path(LogDir), files, nil); err != nil {
		t.Fatal(err)
	}
	if err := m.disk.Join([12]byte{1}, [12]byte{2}); err != nil {
		t.Fatal(err)
	}
	machine := installing{begun: make(chan struct{}), goOn: make(chan struct{})}
	if m.log, err = raftlog.Start(raftlog.Options{Disk: m.disk, Machine: machine, Clock: clock.Wall(), Limits: raftlog.UsualLimits, Send: func([]*pb.Message) {}}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		m.log.Stop()
		if err := m.disk.Close(); err != nil {
			t.Error(err)
		}
	}()
	come := func(index uint64) error {
		t.Helper()
		if err := files.MkdirAll(files.PathJoin(m.path(incomingDir), "store"), 0o700); err != nil {
			t.Fatal(err)
		}
		in := &m.incoming
		in.from, in.chunks, in.done, in.cancel = 7, make(chan []byte), make(chan error, 1), func() {}
		in.done <- nil
		return m.endSnapshot(7, &pb.Message{Type: pb.MsgSnap.Enum(), From: proto.Uint64(7), To: proto.Uint64(m.disk.ID()), Term: proto.Uint64(1), Snapshot: &pb.Snapshot{
			Data:     make([]byte, 17), // of no members
			Metadata: &pb.SnapshotMetadata{Index: proto.Uint64(index), Term: proto.Uint64(1), ConfState: &pb.ConfState{Voters: []uint64{7}, Learners: []uint64{m.disk.ID()}}},
		}})
	}
	if err := come(10); err != nil {
		t.Fatal(err)
	}
	<-machine.begun
	if err := come(9); err == nil {
		t.Error("another snapshot is taken")
	}
	if names, err := files.List(m.path(incomingDir)); err != nil || len(names) != 1 {
		t.Errorf("the other one is where the first is: %v, %v", names, err)
	}
	close(machine.goOn)
	if err := m.log.Do(t.Context(), mayTakeSnapshot); err != nil {
		for at, changed := m.log.Applied(); at < 10; at, changed = m.log.Applied() {
			<-changed
		}
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
