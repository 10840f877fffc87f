package ebbtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/crashdisk"
	"github.com/ebbdb/ebb/internal/peer"
	"github.com/ebbdb/ebb/internal/standin"
	"github.com/ebbdb/ebb/internal/wire"
)

// Members is how many servers a Set has.
const Members = 3

// Set is a replica set of three servers in this process, with one clock, that ends with its test. Their disks are in memory, and keep what a
// member has written while it is stopped. Elections go by real time, since the network does: a primary that is gone is missed after a second
// or two, however the clock stands.
type Set struct {
	// Clock is the time of all members.
	Clock *Clock

	t       testing.TB
	network network
	members [Members]*setMember
	id      [12]byte // of the set
	calls   peer.Options
}

type setMember struct {
	options ebb.Options
	disk    *crashdisk.Disk
	server  *ebb.Server // nil: it is stopped
	addr    string
	stop    context.CancelFunc
	served  chan error
}

// StartSet starts a set, and returns when it has a primary and two secondaries. What goes wrong ends the test.
func StartSet(t testing.TB, options ...Option) *Set {
	t.Helper()
	c := config{start: clock.Wall().Now().Truncate(time.Millisecond)}
	for _, o := range options {
		o(&c)
	}
	codec, err := wire.NewCodec(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &Set{Clock: NewClock(c.start), t: t, calls: peer.Options{Codec: codec}}
	s.network.begin()
	t.Cleanup(func() {
		s.network.heal()
		for i := range s.members {
			s.Stop(i)
		}
	})
	list := bson.Build().String("_id", setName).Array("members")
	for i := range s.members {
		m := &setMember{disk: crashdisk.New()}
		s.members[i] = m
		m.options = ebb.Options{Port: ebb.AnyPort, DBPath: t.TempDir(), Clock: s.Clock, ScriptsInProcess: true, MinFreeBytes: -1, ReserveBytes: -1, CacheBytes: 16 << 20,
			ReplicaSet: &ebb.ReplicaSet{Name: setName, OplogBytes: 64 << 20}}
		s.Start(i)
		m.addr = m.server.Addr()
		s.network.know(i, m.addr)
		_, port, _ := strings.Cut(m.addr, ":")
		if _, err := fmt.Sscan(port, &m.options.Port); err != nil {
			t.Fatal(err)
		}
		list.Object(bson.IndexKey(i)).Int32("_id", int32(i)).String("host", m.addr).End()
	}
	if _, err := s.call(0, bson.Build().Document("replSetInitiate", list.End().Doc()).String("$db", "admin").Doc()); err != nil {
		t.Fatal(err)
	}
	reply, err := s.call(s.Primary(), bson.Build().Int32("replSetGetConfig", 1).String("$db", "admin").Doc())
	if err != nil {
		t.Fatal(err)
	}
	s.id = reply.Lookup("config").Doc().Lookup("settings").Doc().Lookup("replicaSetId").ObjectID()
	s.awaitCopies()
	return s
}

// awaitCopies returns when each member is primary or secondary, so that it has its first copy of the set.
func (s *Set) awaitCopies() {
	s.t.Helper()
	for i := range s.members {
		s.await(fmt.Sprintf("member %d is no secondary", i), func() error {
			r, err := s.call(i, bson.Build().Int32("hello", 1).String("$db", "admin").Doc())
			if err == nil && !r.Lookup("secondary").Truthy() && !r.Lookup("isWritablePrimary").Truthy() {
				err = errors.New("it has no copy of the set yet")
			}
			return err
		})
	}
}

// URI is the connection string for clients of the set.
func (s *Set) URI() string {
	var hosts []string
	for _, m := range s.members {
		hosts = append(hosts, m.addr)
	}
	return "mongodb://" + strings.Join(hosts, ",") + "/?replicaSet=" + setName
}

// MemberURI is the connection string for clients of member i alone.
func (s *Set) MemberURI(i int) string {
	return "mongodb://" + s.members[i].addr + "/?directConnection=true&readPreference=secondaryPreferred"
}

// call runs a command at a member.
func (s *Set) call(i int, command bson.Doc) (bson.Doc, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	conn, err := peer.Dial(ctx, s.members[i].addr, s.calls)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.Call(ctx, command)
}

// callTime is how long a member may take to answer, and patience how long a set may take to do what it does by itself, both in real time.
const (
	callTime = 5 * time.Second
	patience = time.Minute
	lookTime = 10 * time.Millisecond
)

// await returns when f is content.
func (s *Set) await(what string, f func() error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		err := f()
		if err == nil {
			return
		}
		if clock.Wait(ctx, clock.Wall(), lookTime) != nil {
			s.t.Fatalf("ebbtest: %s: %v", what, err)
		}
	}
}

// Primary is which member is the primary, as a majority sees it. It waits for one.
func (s *Set) Primary() (primary int) {
	s.t.Helper()
	s.await("there is no primary", func() error {
		best, newest := int64(-1), int64(-1)
		for i, m := range s.members {
			if m == nil || m.server == nil || s.network.isolated(i) {
				continue
			}
			p, _ := s.position(i) // a member that is about to end has none
			newest = max(newest, p.term)
			r, err := s.call(i, bson.Build().Int32("hello", 1).String("$db", "admin").String("apiVersion", "1").Doc())
			if err == nil && r.Lookup("isWritablePrimary").Truthy() && p.term > best {
				primary, best = i, p.term
			}
		}
		switch {
		case best < 0:
			return errors.New("nobody says that it is")
		case best < newest:
			return fmt.Errorf("member %d leads in term %d, and somebody is in term %d", primary, best, newest)
		}
		return nil
	})
	return primary
}

// position is how far a member is.
type position struct {
	term        int64
	number, now int64
}

func (s *Set) position(i int) (p position, err error) {
	r, err := s.call(i, bson.Build().String("ebbMember", "position").String("$db", "admin").Int32("version", 1).ObjectID("set", s.id).Int64("from", 0).String("host", "").Doc())
	if err != nil {
		return p, err
	}
	for _, f := range []struct {
		key string
		to  *int64
	}{{"term", &p.term}, {"number", &p.number}, {"now", &p.now}} {
		if v := r.Lookup(f.key); v.Type == bson.TypeInt64 {
			*f.to = v.Int64()
		}
	}
	return p, nil
}

// Advance moves the clock, and returns when what has expired by then is deleted on all members that are there.
func (s *Set) Advance(d time.Duration) {
	s.t.Helper()
	s.Settle()
	s.Clock.Advance(d)
	s.Settle()
}

// Settle returns when the primary has deleted what is due, and all members that are there have what it has, and its time.
func (s *Set) Settle() {
	s.t.Helper()
	now := s.Clock.Now().UnixMilli()
	s.await("the members do not agree", func() error {
		p := s.Primary()
		if err := s.members[p].server.Settle(s.t.Context()); err != nil {
			return err
		}
		want, err := s.position(p)
		if err != nil {
			return err
		}
		for i, m := range s.members {
			if m.server == nil || s.network.isolated(i) {
				continue
			}
			has, err := s.position(i)
			if err != nil {
				return err
			}
			if has.number < want.number || has.now < now {
				return fmt.Errorf("member %d is at commit %d, time %d; the primary at %d, %d", i, has.number, has.now, want.number, now)
			}
		}
		return nil
	})
}

// Isolate cuts a member off from the others; clients reach it as before. Heal ends that for all.
func (s *Set) Isolate(i int) { s.network.isolate(i) }

// Heal lets all members reach one another.
func (s *Set) Heal() { s.network.heal() }

// SlowDown has each connection between members carry so many bytes a second at most; 0: as many as it can.
func (s *Set) SlowDown(bytesPerSecond int) { s.network.slowDown(bytesPerSecond) }

// Stop ends a member as a signal would; Start starts it again, with what is on its disk.
func (s *Set) Stop(i int) {
	s.t.Helper()
	m := s.members[i]
	if m == nil || m.server == nil {
		return
	}
	m.stop()
	if err := <-m.served; err != nil {
		s.t.Error(err)
	} else if err := m.server.Close(); err != nil {
		s.t.Error(err)
	}
	m.server = nil
}

// Crash ends a member as a loss of power would: what it has not brought to its disk is gone.
func (s *Set) Crash(i int) {
	s.t.Helper()
	s.network.isolate(i) // nobody hears of what happens after it
	m := s.members[i]
	left := m.disk.CrashClone(vfs.CrashCloneCfg{})
	s.Stop(i)
	m.disk = &crashdisk.Disk{MemFS: left}
	s.network.rejoin(i)
}

// Start starts a member that is stopped.
func (s *Set) Start(i int) {
	s.t.Helper()
	m := s.members[i]
	if m.server != nil {
		return
	}
	m.options.Machine = &standin.Machine{Disk: m.disk, Dial: s.network.dialer(i)}
	var err error
	if m.server, err = ebb.Open(m.options); err != nil {
		m.server = nil
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	m.stop, m.served = stop, make(chan error, 1)
	go func(server *ebb.Server, served chan error) { served <- server.Serve(ctx) }(m.server, m.served)
}
