package ebb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/raftlog"
)

// logDir is where a member of a replica set with other members keeps its log.
const logDir = "replication"

// role is what a database is for.
type role struct {
	kind roleKind
	term int64
}

type roleKind uint8

const (
	alone roleKind = iota // a standalone, or a set of one, or of none yet
	follower
	leader
)

// member is the server's part in the log of its replica set (raftlog.Machine). Its store goes by the role that it has there: a loop has one
// database give way to another when that changes (Server.serving).
type member struct {
	server *Server
	disk   *raftlog.Disk
	log    *raftlog.Member
	links  *links
	memory *vfs.MemFS // where the store is, in a server in memory; nil where it is not, or was from the start

	wake   chan struct{} // holds one: the role may have changed
	ctx    context.Context
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu struct {
		sync.Mutex
		leads   uint64        // the term that this member leads in and has applied all that was before it; 0: it does not
		term    uint64        // that the engine leads in
		changed chan struct{} // closed when who applies should look again
		// frozen is until when the member is not elected, and yielded when it has handed over to one of more priority, by the clock's
		// monotonic time. passive: it never is.
		frozen, yielded time.Duration
		passive         bool
	}
	// turn is held while a database gives way to another.
	turn     sync.Mutex
	time     followedTime
	incoming incoming
	// looks is what is known of the others, by their addresses.
	looks struct {
		sync.Mutex
		busy   map[string]bool
		health map[string]command.Health
		ids    map[string]uint64
	}
}

// openAll opens what the server answers by.
func (s *Server) openAll() (err error) {
	if s.foundation, err = openFoundation(s); err != nil {
		return err
	}
	if s.opts.ReplicaSet == nil && s.hasLog() {
		return errNotAlone
	}
	if s.isInLog() {
		m, err := newMember(s)
		if err != nil {
			return err
		}
		if m.disk.IsMember() {
			s.member.Store(m)
			err = m.finishInstall()
		} else { // it was about to become one
			err = m.close()
		}
		if err != nil {
			return err
		}
	}
	engine, opened, err := s.openEngine()
	if err != nil {
		return err
	}
	s.foundation.engine = engine
	if s.foundation.temp, err = spillDir(s); err != nil {
		return err
	}
	r, m := role{}, s.member.Load()
	if m != nil {
		number, millis := engine.Last()
		m.time.begin(number, millis)
		s.foundation.engine.Follow(errDeposed())
		r = role{kind: follower}
	}
	d, err := openDatabase(s, r, opened)
	if err != nil {
		return err
	}
	s.serving.become(s, d)
	if m != nil {
		return m.start()
	}
	return nil
}

// isInLog says whether the data is that of a member whose set has others.
func (s *Server) isInLog() bool {
	return s.opts.ReplicaSet != nil && s.hasLog()
}

// hasLog says whether the log is in the data directory.
func (s *Server) hasLog() bool {
	if s.dir == nil {
		return false
	}
	_, err := os.Stat(filepath.Join(s.dir.Path(), logDir))
	return err == nil
}

// errNotAlone: what is written to a member alone is in no log, and would never be at the others.
var errNotAlone = errors.New("the data is that of a member of a replica set with others, whose log is in the directory replication: start it with --replSet")

// newMember opens the log, or makes an empty one.
func newMember(s *Server) (m *member, err error) {
	m = &member{server: s, wake: make(chan struct{}, 1)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.mu.changed = make(chan struct{})
	m.looks.busy, m.looks.health, m.looks.ids = map[string]bool{}, map[string]command.Health{}, map[string]uint64{}
	if s.dir == nil {
		m.disk, err = raftlog.OpenDisk(logDir, vfs.NewMem(), s.log.For("REPL"))
	} else {
		m.disk, err = raftlog.OpenDisk(filepath.Join(s.dir.Path(), logDir), vfs.Default, s.log.For("REPL"))
	}
	if err != nil {
		return nil, err
	}
	m.links = newLinks(m)
	return m, nil
}

// maxLogBytes is how much of the log a member keeps for others that are behind.
const maxLogBytes = 1 << 30

// start has the member take part.
func (m *member) start() (err error) {
	m.log, err = raftlog.Start(raftlog.Options{
		Disk: m.disk, Machine: m, Send: m.links.send, Clock: clock.Wall(), // whoever is missed is missed in real time
		Log: m.server.log.For("REPL"), Failed: m.server.fail, MaxLogBytes: maxLogBytes,
	})
	if err != nil {
		return err
	}
	m.ended.Go(m.followRole)
	m.ended.Go(m.tellTime)
	m.ended.Go(m.keepGroup)
	return nil
}

func (m *member) stop() {
	if m == nil {
		return
	}
	m.cancel()
	if m.log != nil {
		m.log.Stop()
	}
	m.links.stop()
	m.ended.Wait()
}

func (m *member) close() error {
	if m == nil {
		return nil
	}
	return m.disk.Close()
}

// Apply implements raftlog.Machine.
func (m *member) Apply(ctx context.Context, e raftlog.Entry) error {
	if e.Commit == nil {
		return nil
	}
	number := kv.CommitNumber(e.Commit)
	for {
		m.mu.Lock()
		term, changed := m.mu.term, m.mu.changed
		m.mu.Unlock()
		engine := m.engine()
		if last, _ := engine.Last(); number <= last {
			return nil
		}
		if term == e.Term {
			if err := engine.Confirm(number); !errors.Is(err, kv.ErrNotLeader) {
				return err
			}
		}
		if d := m.server.current.Load(); d != nil && d.role.kind == follower && d.users.enter() {
			defer d.users.leave()
			return m.applyTo(ctx, d, e)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (m *member) applyTo(ctx context.Context, d *database, e raftlog.Entry) error {
	c, err := kv.DecodeCommit(e.Commit)
	if err != nil {
		return err
	}
	if err := d.store.Apply(ctx, c, kv.Unsynced); err != nil {
		return err
	}
	m.time.applied(c.Number, c.Time)
	return nil
}

// Lead implements raftlog.Machine.
func (m *member) Lead(term uint64) {
	m.mu.Lock()
	m.mu.leads = term
	m.mu.Unlock()
	m.awake()
}

// Deposed implements raftlog.Machine.
func (m *member) Deposed() {
	if d := m.server.current.Load(); d != nil {
		d.commands.Replica.Depose()
	}
	m.mu.Lock()
	m.mu.leads, m.mu.term = 0, 0
	m.server.foundation.engine.Follow(errDeposed())
	m.mu.Unlock()
	m.awake()
}

// Changed implements raftlog.Machine.
func (m *member) Changed() { m.awake() }

// Sync implements raftlog.Machine.
func (m *member) Sync() error { return m.engine().Sync() }

// engine is the store's. It is another one after a snapshot.
func (m *member) engine() *pebblekv.Engine {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.server.foundation.engine
}

func (m *member) awake() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// wants is the role that the member should have.
func (m *member) wants() role {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.leads != 0 {
		return role{leader, int64(m.mu.leads)}
	}
	return role{kind: follower}
}

// followRole has the server answer by a database of the role that it has.
func (m *member) followRole() {
	for {
		want := m.wants()
		if d := m.server.current.Load(); d == nil || d.role != want {
			if err := m.change(want); err != nil {
				if m.ctx.Err() == nil {
					m.server.fail(fmt.Errorf("change the role in the replica set: %w", err))
				}
				return
			}
			continue
		}
		if d := m.server.current.Load(); d.role.kind == follower {
			if err := d.commands.NoteGroup(m.ctx); err != nil && m.ctx.Err() == nil {
				m.server.log.For("REPL").Warn("The replica set's configuration could not be read", "error", err.Error())
			}
		}
		select {
		case <-m.wake:
		case <-m.ctx.Done():
			return
		}
	}
}

// change has the database give way to one of another role.
func (m *member) change(want role) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	if err := m.endDatabase(); err != nil {
		return err
	}
	if want.kind == leader {
		m.mu.Lock()
		if m.mu.leads != uint64(want.term) {
			want = role{kind: follower}
		} else {
			m.mu.term = m.mu.leads
			m.server.foundation.engine.Lead(m.log.LogOf(m.mu.term))
		}
		m.mu.Unlock()
	}
	d, err := openDatabase(m.server, want, func() {})
	if err != nil && want.kind == leader {
		if m.ctx.Err() != nil {
			return err
		}
		m.server.log.For("REPL").Warn("The member could not become primary", "term", want.term, "error", err.Error())
		m.giveUp(uint64(want.term))
		want = role{kind: follower}
		d, err = openDatabase(m.server, want, func() {})
	}
	if err != nil {
		return err
	}
	m.server.serving.become(m.server, d)
	m.tellChanged()
	m.server.log.For("REPL").Info("The member's role has changed", "primary", want.kind == leader, "term", want.term)
	return nil
}

// giveUp has a member that cannot lead in a term not do so.
func (m *member) giveUp(term uint64) {
	m.mu.Lock()
	if m.mu.leads == term {
		m.mu.leads = 0
	}
	m.mu.term = 0
	m.server.foundation.engine.Follow(errDeposed())
	m.mu.Unlock()
	_ = m.log.Do(m.ctx, func(c *raftlog.Core) error {
		if r := c.Role(); r.Leads && r.Term == term {
			return c.Resign()
		}
		return nil
	})
}

func (m *member) tellChanged() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.mu.changed)
	m.mu.changed = make(chan struct{})
}

// interruptEvery is how often who works with a database that ends is interrupted: one that was about to begin may not have heard.
const interruptEvery = 10 * time.Millisecond

// endDatabase interrupts who works with the database, and closes it.
func (m *member) endDatabase() error {
	d := m.server.current.Load()
	if d == nil {
		return nil
	}
	gone := d.users.end()
	for left := true; left; {
		wait := clock.Wall().NewTimer(interruptEvery)
		select {
		case <-gone:
			left = false
		case <-wait.C():
			d.commands.Interrupt(errDeposed())
		}
		wait.Stop()
	}
	err := d.close()
	m.server.current.Store(nil)
	return err
}

// Install implements raftlog.Machine.
func (m *member) Install(context.Context) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	if err := m.endDatabase(); err != nil {
		return err
	}
	f := m.server.foundation
	if err := f.engine.Close(); err != nil {
		return err
	}
	if err := m.putInPlace(); err != nil {
		return err
	}
	engine, opened, err := m.server.openEngine()
	if err != nil {
		return err
	}
	engine.Follow(errDeposed())
	m.mu.Lock()
	f.engine, m.mu.leads, m.mu.term = engine, 0, 0
	m.mu.Unlock()
	number, millis := engine.Last()
	m.time.begin(number, millis)
	d, err := openDatabase(m.server, role{kind: follower}, opened)
	if err != nil {
		return err
	}
	m.server.serving.become(m.server, d)
	m.tellChanged()
	m.server.log.For("REPL").Info("The member has got a snapshot", "commits", number)
	return nil
}

// incomingDir is where a snapshot is put together, and readyName a file that says that it is whole.
const (
	incomingDir = "incoming"
	readyName   = "READY"
)

// putInPlace has the snapshot that has come be the store.
func (m *member) putInPlace() error {
	s := m.server
	if s.dir == nil {
		if m.incoming.memory == nil {
			return errors.New("a snapshot was to be installed that is not there")
		}
		m.memory, m.incoming.memory = m.incoming.memory, nil
		return nil
	}
	store, incoming := filepath.Join(s.dir.Path(), storeDir), filepath.Join(s.dir.Path(), incomingDir)
	if _, err := os.Stat(filepath.Join(incoming, readyName)); errors.Is(err, fs.ErrNotExist) {
		return nil // it is in its place
	} else if err != nil {
		return err
	}
	if err := os.RemoveAll(store); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(incoming, readyName)); err != nil {
		return err
	}
	if err := os.Rename(incoming, store); err != nil {
		return err
	}
	return syncDir(s.dir.Path())
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

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Limits of a snapshot's way.
const (
	snapshotChunkBytes = 1 << 20
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
	memory *vfs.MemFS // where it lies, in a server in memory
}

// beginSnapshot makes room for one. Another that has not come to its end is given up.
func (m *member) beginSnapshot(from uint64) error {
	in := &m.incoming
	in.mu.Lock()
	defer in.mu.Unlock()
	in.giveUp()
	o := m.server.engineOptions()
	o.CommitKey, o.HoldRemovals, o.OnFailure = nil, false, nil // it takes what it gets
	dir := storeDir
	if m.server.dir == nil {
		in.memory = vfs.NewMem()
		o.FS = in.memory
	} else {
		dir = filepath.Join(m.server.dir.Path(), incomingDir)
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
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
	if m.server.dir != nil {
		dir := filepath.Join(m.server.dir.Path(), incomingDir)
		f, err := os.OpenFile(filepath.Join(dir, readyName), os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close(), syncDir(dir), syncDir(m.server.dir.Path())); err != nil {
			return err
		}
	}
	m.log.Receive(message)
	return nil
}
