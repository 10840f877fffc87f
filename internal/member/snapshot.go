package member

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/ebbdb/ebb/internal/kv/pebblekv"
)

// Install implements raftlog.Machine.
func (m *member) Install(context.Context) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	if err := m.EndDatabase(errDeposed()); err != nil {
		return err
	}
	opened, err := m.OpenEngine(m.putInPlace)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.mu.leads, m.mu.term = 0, 0
	m.follow(false)
	m.mu.Unlock()
	number, _ := m.Engine().Last()
	if err := m.become(Role{Kind: Follower}, opened); err != nil {
		return err
	}
	m.tellChanged()
	m.group.o.Log.For("REPL").Info("The member has got a snapshot", "commits", number)
	return nil
}

// incomingDir is where a snapshot is put together, and readyName a file that says that it is whole.
const (
	incomingDir = "incoming"
	readyName   = "READY"
)

// putInPlace has the snapshot that has come be the store.
func (m *member) putInPlace() error {
	files, store, incoming := m.group.o.Files, m.path(m.group.o.StoreDir), m.path(incomingDir)
	ready := files.PathJoin(incoming, readyName)
	if _, err := files.Stat(ready); oserror.IsNotExist(err) {
		return nil // it is in its place
	} else if err != nil {
		return err
	}
	if err := files.RemoveAll(store); err != nil {
		return err
	}
	if err := files.Remove(ready); err != nil {
		return err
	}
	if err := files.Rename(incoming, store); err != nil {
		return err
	}
	return syncDir(files, m.group.o.Dir)
}

// finishInstall goes on with what a crash has interrupted.
func (m *member) finishInstall() error {
	if !m.disk.Installs() {
		return nil
	}
	if err := m.putInPlace(); err != nil {
		return err
	}
	return m.disk.Installed()
}

func syncDir(files vfs.FS, path string) error {
	f, err := files.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Limits of a snapshot's way.
const (
	snapshotChunkBytes = 1 << 20
	maxChunkBytes      = 4 << 20 // unless one value alone has more
	maxSnapshotPairs   = 1 << 16 // in a chunk
)

// appendPair appends a key and a value behind their lengths.
func appendPair(dst, key, value []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	dst = append(dst, key...)
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(dst, value...)
}

var errBrokenChunk = errors.New("a part of a snapshot is broken")

func nextPart(b []byte) (part, rest []byte, err error) {
	n, length := binary.Uvarint(b)
	if length <= 0 || n > uint64(len(b)-length) {
		return nil, nil, errBrokenChunk
	}
	b = b[length:]
	return b[:n:n], b[n:], nil
}

// incoming is a snapshot on its way here.
type incoming struct {
	mu     sync.Mutex // guards all below; one comes at a time
	from   uint64
	chunks chan []byte
	done   chan error
	cancel context.CancelFunc
}

// beginSnapshot makes room for one. Another that has not come to its end is given up.
func (m *member) beginSnapshot(from uint64) error {
	in := &m.incoming
	in.mu.Lock()
	defer in.mu.Unlock()
	in.giveUp()
	o := m.EngineOptions()
	o.CommitKey, o.HoldRemovals, o.OnFailure = nil, false, nil // it takes what it gets
	dir := m.path(incomingDir)
	if err := m.group.o.Files.RemoveAll(dir); err != nil && !oserror.IsNotExist(err) {
		return err
	}
	engine, err := pebblekv.Open(dir, o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(m.ctx)
	in.from, in.chunks, in.done, in.cancel = from, make(chan []byte), make(chan error, 1), cancel
	chunks, done := in.chunks, in.done
	m.ended.Go(func() { done <- errors.Join(load(ctx, engine, chunks), engine.Close()) })
	return nil
}

func (in *incoming) giveUp() {
	if in.cancel != nil {
		in.cancel()
		<-in.done
		in.cancel, in.chunks = nil, nil
	}
}

// load puts the pairs of chunks into an empty engine.
func load(ctx context.Context, engine *pebblekv.Engine, chunks <-chan []byte) error {
	var rest []byte
	return engine.Load(ctx, func() (key, value []byte, ok bool, err error) {
		for len(rest) == 0 {
			select {
			case b, more := <-chunks:
				if !more {
					return nil, nil, false, nil
				}
				rest = b
			case <-ctx.Done():
				return nil, nil, false, context.Cause(ctx)
			}
		}
		if key, rest, err = nextPart(rest); err == nil {
			value, rest, err = nextPart(rest)
		}
		return key, value, err == nil, err
	})
}

// addToSnapshot adds a chunk, which is the snapshot's from then on.
func (m *member) addToSnapshot(ctx context.Context, from uint64, chunk []byte) error {
	in := &m.incoming
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.chunks == nil || in.from != from {
		return errors.New("no snapshot is on its way")
	}
	select {
	case in.chunks <- chunk:
		return nil
	case err := <-in.done:
		in.done <- err
		return errors.Join(errors.New("the snapshot has failed"), err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// endSnapshot has the log take a snapshot that has come as a whole.
func (m *member) endSnapshot(from uint64, message *pb.Message) error {
	in := &m.incoming
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.chunks == nil || in.from != from {
		return errors.New("no snapshot is on its way")
	}
	close(in.chunks)
	err := <-in.done
	in.cancel()
	in.cancel, in.chunks = nil, nil
	if err != nil {
		return err
	}
	files, dir := m.group.o.Files, m.path(incomingDir)
	f, err := files.Create(files.PathJoin(dir, readyName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close(), syncDir(files, dir), syncDir(files, m.group.o.Dir)); err != nil {
		return err
	}
	m.log.Receive(message)
	return nil
}
