package ebb

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/kv/smalldisk"
	"github.com/ebbdb/ebb/internal/member"
	"github.com/ebbdb/ebb/internal/standin"
	"github.com/ebbdb/ebb/internal/storage"
)

// simMember is a machine with a server.
type simMember struct {
	s      *simulation
	place  int
	addr   *net.TCPAddr
	dir    string
	disk   *smalldisk.Disk
	clock  simClock
	server *Server // nil: it has no power
	lives  int     // how many disks it has lost
	stop   context.CancelFunc
	served chan error
}

func (m *simMember) host() string { return m.addr.String() }

// simClock is the clock of a machine: that of everybody, set by so much.
type simClock struct{ by atomic.Int64 }

func (c *simClock) set(d time.Duration) { c.by.Add(int64(d)) }

// Now implements Clock.
func (c *simClock) Now() time.Time { return clock.Wall().Now().Add(time.Duration(c.by.Load())) }

// Read implements Clock.
func (c *simClock) Read() (time.Time, time.Duration) {
	wall, ran := clock.Wall().Read()
	return wall.Add(time.Duration(c.by.Load())), ran
}

// NewTimer implements Clock.
func (c *simClock) NewTimer(d time.Duration) Timer { return clock.Wall().NewTimer(d) }

// watchedClock notes what a database that leads reads.
type watchedClock struct {
	storage.CommitClock
	s *simulation
}

// CommitTime implements storage.CommitClock.
func (c watchedClock) CommitTime() time.Time {
	t := c.CommitClock.CommitTime()
	c.s.noteTime(t)
	return t
}

func (c watchedClock) Now() time.Time {
	t := c.CommitClock.Now()
	c.s.noteTime(t)
	return t
}

func (c watchedClock) Read() (time.Time, time.Duration) {
	t, ran := c.CommitClock.Read()
	c.s.noteTime(t)
	return t, ran
}

func (s *simulation) noteTime(t time.Time) {
	for millis := t.UnixMilli(); ; {
		was := s.time.Load()
		if millis <= was || s.time.CompareAndSwap(was, millis) {
			return
		}
	}
}

func (m *simMember) start() (err error) {
	var disk vfs.FS = m.disk
	if m.s.fault == faultNoSync {
		disk = &forgetfulDisk{m.disk}
	}
	m.server, err = Open(Options{
		Port: m.addr.Port, DBPath: filepath.Join(m.dir, strconv.Itoa(m.lives)), Clock: &m.clock, ScriptsInProcess: true, MinFreeBytes: 2 << 20, ReserveBytes: 1 << 20, CacheBytes: 4 << 20,
		memTableBytes: 1 << 20, MemoryBytes: 1 << 30, MaxConns: 1000, Quiet: true, ReplicaSet: &ReplicaSet{Name: simSet, OplogBytes: 16 << 20},
		Machine: &standin.Machine{Disk: disk, Listener: m.s.network.listen(m.place, m.addr), Dial: m.s.network.dialer(m.place)},
		seams:   &seams{clock: m.clockOf, apply: m.tamper, limits: m.s.limits}, Log: m.log(),
	})
	if err != nil {
		m.server = nil
		return err
	}
	m.s.say("member %d starts", m.place)
	ctx, stop := context.WithCancel(context.Background())
	server, served := m.server, make(chan error, 1)
	m.stop, m.served = stop, served
	go func() {
		err := server.Serve(ctx)
		if ctx.Err() == nil {
			m.s.fail("member %d has ended: %w", m.place, err)
		}
		served <- err
	}()
	return nil
}

// log shows what a member logs, where that is wanted.
func (m *simMember) log() *slog.Logger {
	if !*membersLog {
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil)).With("member", m.place)
}

// say tells what befalls the members, where that is wanted.
func (s *simulation) say(format string, args ...any) {
	if *membersLog {
		fmt.Fprintln(os.Stderr, s.now().Format("04:05.000"), fmt.Sprintf(format, args...))
	}
}

// clockOf is the clock of the database of a role.
func (m *simMember) clockOf(r member.Role, c clock.Clock) clock.Clock {
	switch {
	case r.Kind == member.Leader:
		m.s.counts.add("leads")
		return watchedClock{c.(storage.CommitClock), m.s}
	case r.Kind == member.Follower && m.s.fault == faultOwnClock && m.place == 1:
		return givenClock{&m.clock}
	}
	return c
}

// tamper spoils what is applied, where a fault says so.
func (m *simMember) tamper(c *kv.Commit) {
	w, ok := c.Writes.(*kv.WriteList)
	if !ok || m.place != 1 {
		return
	}
	switch {
	case m.s.fault == faultCounter && len(w.Added) > 0 && c.Number%7 == 0:
		w.Added = w.Added[1:]
	case m.s.fault == faultOwnSweep && len(w.Ops)+len(w.Deleted) > 0 && clock.Millis(givenClock{&m.clock}) < c.Time-1000:
		w.Deleted = nil
		w.Ops = slices.DeleteFunc(w.Ops, func(op kv.Op) bool { return op.Delete })
	}
}

// stopNow ends a server as a signal would.
func (m *simMember) stopNow() error {
	if m.server == nil {
		return nil
	}
	m.disk.Resize(simDisk) // who waits for room on a full disk never ends
	m.stop()
	err := errors.Join(<-m.served, m.server.Close())
	m.server = nil
	return err
}

// crash takes the power: what was not synced is lost, or some of it.
func (m *simMember) crash() {
	if m.server == nil {
		return
	}
	m.s.network.darken(m.place, true)
	keep := []int{0, 0, 50, 100}[m.s.random.IntN(4)]
	if m.s.fault == faultNoSync {
		keep = 0
	}
	left, err := m.disk.Crash(100-keep, rand.New(rand.NewPCG(m.s.random.Uint64(), 1)))
	if err != nil {
		m.s.fail("crash of member %d: %w", m.place, err)
		return
	}
	left.Resize(simDisk)
	if err := m.stopNow(); err != nil {
		m.s.fail("crash of member %d: %w", m.place, err)
	}
	m.s.network.darken(m.place, false)
	m.disk = left
}

func (m *simMember) database() *database {
	if m == nil || m.server == nil {
		return nil
	}
	return m.server.serving.Current()
}

func (m *simMember) engine() *pebblekv.Engine { return m.server.foundation.engine.Load() }

// each calls f for each key of a member's store.
func (m *simMember) each(f func(key, value []byte)) (number uint64, err error) {
	e := m.engine()
	number, _ = e.Last()
	snapshot, err := e.Snapshot()
	if err != nil {
		return 0, err
	}
	defer snapshot.Close()
	it, err := snapshot.NewIter(kv.IterOptions{})
	if err != nil {
		return 0, err
	}
	defer it.Close()
	for it.Next() {
		value, err := it.Value()
		if err != nil {
			return 0, err
		}
		f(it.Key(), value)
	}
	return number, it.Err()
}

func (m *simMember) state() (number uint64, sum [sha256.Size]byte, err error) {
	h := sha256.New()
	number, err = m.each(func(key, value []byte) { fmt.Fprintf(h, "%d %d ", len(key), len(value)); h.Write(key); h.Write(value) })
	h.Sum(sum[:0])
	return number, sum, err
}

// shownDifferences is how many are told.
const shownDifferences = 5

// differences tells which keys two members have that differ, as far as both are at the same commit still.
func (s *simulation) differences(a, b int) string {
	var have [2]map[string][]byte
	for i, place := range []int{a, b} {
		if s.members[place].database() == nil {
			return "one of them is gone"
		}
		have[i] = map[string][]byte{}
		number, err := s.members[place].each(func(key, value []byte) { have[i][string(key)] = bytes.Clone(value) })
		if err != nil {
			return err.Error()
		}
		have[i]["number"] = fmt.Append(nil, number)
	}
	var out []string
	keys := maps.Clone(have[0])
	maps.Copy(keys, have[1])
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		own, here := have[0][key]
		other, there := have[1][key]
		if here != there || !bytes.Equal(own, other) {
			if out = append(out, fmt.Sprintf("%q: %x (%t), %x (%t)", key, own, here, other, there)); len(out) >= shownDifferences {
				break
			}
		}
	}
	return strings.Join(out, "\n")
}

// forgetfulDisk syncs nothing of a log: it is a fault that is planted.
type forgetfulDisk struct{ *smalldisk.Disk }

type forgetfulFile struct{ vfs.File }

func (forgetfulFile) Sync() error                { return nil }
func (forgetfulFile) SyncData() error            { return nil }
func (forgetfulFile) SyncTo(int64) (bool, error) { return false, nil }
func (d *forgetfulDisk) forget(name string, f vfs.File, err error) (vfs.File, error) {
	if err == nil && strings.HasPrefix(name, member.LogDir) && strings.HasSuffix(name, ".log") {
		f = forgetfulFile{f}
	}
	return f, err
}

func (d *forgetfulDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.Disk.Create(name, c)
	return d.forget(name, f, err)
}

func (d *forgetfulDisk) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.Disk.ReuseForWrite(old, name, c)
	return d.forget(name, f, err)
}
