package member

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/raftlog"
)

// Install implements raftlog.Machine.
func (m *member) Install(context.Context) (number uint64, err error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	if err := m.EndDatabase(errDeposed()); err != nil {
		return 0, err
	}
	begin := m.endOutgoing()
	opened, err := m.OpenEngine(m.putInPlace)
	begin()
	if err != nil {
		return 0, err
	}
	m.mu.Lock()
	m.mu.leads, m.mu.term = 0, 0
	m.follow(false)
	m.mu.Unlock()
	number, _ = m.Engine().Last()
	if err := m.become(Role{Kind: Follower}, opened); err != nil {
		return 0, err
	}
	m.tellChanged()
	m.group.o.Log.For("REPL").Info("The member has got a snapshot", "commits", number)
	return number, nil
}

// incomingDir is where a snapshot is put together, and arrivedDir where it lies when it is whole, until the log has it be the store. Another one may be
// on its way meanwhile.
const (
	incomingDir = "incoming"
	arrivedDir  = "arrived"
)

// putInPlace has the snapshot that has come be the store.
func (m *member) putInPlace() error {
	m.arrived.Lock() // or another one that has come would take its place meanwhile
	defer m.arrived.Unlock()
	files, store, arrived := m.group.o.Files, m.path(m.group.o.StoreDir), m.path(arrivedDir)
	if _, err := files.Stat(arrived); oserror.IsNotExist(err) {
		return nil // it is in its place
	} else if err != nil {
		return err
	}
	if err := removeAll(files, store); err != nil {
		return err
	}
	if err := files.Rename(arrived, store); err != nil {
		return err
	}
	return syncDir(files, m.group.o.Dir)
}

// finishInstall goes on with what a crash has interrupted, or forgets it where the log does not know of it.
func (m *member) finishInstall() error {
	files, incoming, arrived := m.group.o.Files, m.path(incomingDir), m.path(arrivedDir)
	if !m.disk.Installs() {
		return errors.Join(removeAll(files, incoming), removeAll(files, arrived))
	}
	// What was whole had a file that said so before it had a folder of its own.
	ready := files.PathJoin(incoming, "READY")
	if _, err := files.Stat(ready); err == nil {
		if err := errors.Join(files.Remove(ready), removeAll(files, arrived), files.Rename(incoming, arrived)); err != nil {
			return err
		}
	}
	if err := m.putInPlace(); err != nil {
		return err
	}
	return m.disk.Installed()
}

// removeAll removes a folder, if it is there.
func removeAll(files vfs.FS, path string) error {
	if err := files.RemoveAll(path); err != nil && !oserror.IsNotExist(err) {
		return err
	}
	return nil
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
	maxChunkBytes    = 4 << 20 // unless one value alone has more
	maxSnapshotPairs = 1 << 16 // in a chunk
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
	part   int64 // the number of the next chunk
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
	if err := removeAll(m.group.o.Files, dir); err != nil {
		return err
	}
	engine, err := pebblekv.Open(dir, o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(m.ctx)
	in.from, in.part, in.chunks, in.done, in.cancel = from, 0, make(chan []byte), make(chan error, 1), cancel
	chunks, done := in.chunks, in.done
	m.ended.Go(func() {
		err := errors.Join(load(ctx, engine, chunks), engine.Close())
		if err != nil && ctx.Err() == nil {
			err = errors.Join(err, removeAll(m.group.o.Files, dir)) // or it would take the room of the log and the store
			m.group.o.Log.For("REPL").Error("The copy of the set's data could not be kept; the primary sends another one", "error", err.Error())
		}
		done <- err
	})
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

// theNext is the number of a chunk that comes without one: an earlier version sends each once, and so it is the next.
const theNext = math.MinInt64

// partNumber is the number of the chunk that a letter brings.
func partNumber(letter bson.Doc) (int64, error) {
	switch part := letter.Lookup("part"); part.Type {
	case bson.TypeInt64:
		return part.Int64(), nil
	case bson.TypeMissing:
		return theNext, nil
	}
	return 0, errBrokenLetter
}

// addToSnapshot adds the chunk of a number, which is the snapshot's from then on. One that is there already is sent again by who has got no answer.
func (m *member) addToSnapshot(ctx context.Context, from uint64, part int64, chunk []byte) error {
	in := &m.incoming
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.chunks == nil || in.from != from {
		return errors.New("no snapshot is on its way")
	}
	if part == theNext {
		part = in.part
	}
	switch {
	case part == in.part-1:
		return nil
	case part != in.part:
		return fmt.Errorf("part %d of a snapshot has come where %d is the next", part, in.part)
	}
	select {
	case in.chunks <- chunk:
		in.part++
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
	if err := m.log.Do(m.ctx, mayTakeSnapshot); err != nil {
		return err
	}
	if err := m.arrive(); err != nil {
		return err
	}
	m.log.Receive(message)
	return m.log.Do(m.ctx, func(*raftlog.Core) error { return nil }) // the next one hears whether the log has taken this one
}

// mayTakeSnapshot refuses a snapshot as long as the log begins behind one that is still to take the place of the store: what has come later may be older, where
// another member sends it, and a crash would find neither of the two where the log needs one.
func mayTakeSnapshot(c *raftlog.Core) error {
	if c.Installs() {
		return errors.New("another snapshot is about to take the place of the store")
	}
	return nil
}

// arrive has a snapshot that is whole lie where the log takes it from.
func (m *member) arrive() error {
	files, dir, arrived := m.group.o.Files, m.path(incomingDir), m.path(arrivedDir)
	if err := syncDir(files, dir); err != nil {
		return err
	}
	m.arrived.Lock()
	defer m.arrived.Unlock()
	if err := removeAll(files, arrived); err != nil {
		return err
	}
	return errors.Join(files.Rename(dir, arrived), syncDir(files, m.group.o.Dir))
}
