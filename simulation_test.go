package ebb

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/smalldisk"
	"github.com/ebbdb/ebb/internal/member"
	"github.com/ebbdb/ebb/internal/raftlog"
	"github.com/ebbdb/ebb/internal/wire"
)

var (
	membersSeeds = flag.Int("members-seeds", 30, "how many simulations of whole members are run")
	membersSeed  = flag.Uint64("members-seed", 0, "the seed of the first")
	membersLog   = flag.Bool("members-log", false, "show what the members log, and what befalls them")
	membersDumps = flag.String("members-stacks", "", "a folder for what all goroutines are at where something does not come about in time; none without")
	membersLast  = flag.Duration("members-last", 8*time.Second, "how long the members of each are disturbed, in their own time")
)

// TestMembers has whole members of a replica set live in one process: real servers, stores and logs, on disks in memory that lose what was not
// synced, in a network that delays, holds back and breaks, each with a clock of its own that is set now and then. Time is that of a bubble
// (testing/synctest), which moves when everybody waits; so an hour takes as long as what happens in it.
//
// A seed tells who is disturbed when and how, how long messages take, and what clients do. It does not tell everything: goroutines run beside
// one another, members draw their ids and the times of their elections themselves. So a seed that has failed fails again often, not always.
func TestMembers(t *testing.T) {
	seeds := *membersSeeds
	if testing.Short() || raceEnabled {
		seeds = min(seeds, 3)
	}
	var sum simCounts
	t.Run("seeds", func(t *testing.T) {
		for i := range seeds {
			seed := *membersSeed + uint64(i)
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				err := simulate(t, seed, "", &sum)
				if err != nil {
					t.Fatalf("%v\nAgain: go test . -run 'TestMembers$' -args -members-seeds 1 -members-seed %d -members-last %v", err, seed, *membersLast)
				}
			})
		}
	})
	t.Log(sum.String())
	if seeds >= 20 {
		sum.mustHave(t, "crash", "crash of all", "stop", "cut", "slow", "step", "step down", "member added", "member removed", "leads",
			"transaction", "write", "swap", "read", "insert", "expired", "hidden", "create", "createIndexes", "dropIndexes", "collMod", "drop", "compared",
			"disk lost", "disk full", "replaced", "votes", "sent again", "refused key", "event", "expiration event", "stream opened", "renameCollection", "setDefaultRWConcern")
	}
}

// faultSeeds is after how many seeds a fault counts as not found. Most are found by the first; a client that does not say what it has seen must
// meet a member that is behind, which one seed in twenty brings about.
const faultSeeds = 200

// TestMembersFindFaults: members and clients that do what they must not are found out.
func TestMembersFindFaults(t *testing.T) {
	for _, fault := range []string{faultNoSync, faultCounter, faultOwnSweep, faultOwnClock, faultStale, faultTwice, faultOldToken} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(faultSeeds) {
				if err := simulate(t, seed, fault, &simCounts{}); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("it was not found")
		})
	}
}

// The faults that are planted.
const (
	faultNoSync   = "no sync"   // a member that does not sync its log
	faultCounter  = "counter"   // one that forgets a counter
	faultOwnSweep = "own sweep" // one that deletes what has expired by its own clock
	faultOwnClock = "own clock" // one that hides by its own clock
	faultStale    = "stale"     // a client that does not say what it has seen
	faultTwice    = "twice"     // one that sends a write again as another one
	faultOldToken = "old token" // one that resumes a change stream where it was before
)

const (
	simMembers = 3
	// simMost is how many members there are with those that come later.
	simMost = 4
	simSet  = "sim"
)

// simulation is one run.
type simulation struct {
	seed    uint64
	fault   string
	random  *rand.Rand // of the trouble
	network *simNetwork
	members [simMost]*simMember
	codec   *wire.Codec
	ctx     context.Context // of everybody who works; its cause is what was found
	found   context.CancelCauseFunc
	over    atomic.Bool // clients begin nothing more
	ticks   atomic.Int64
	values  atomic.Int64
	time    atomic.Int64 // the latest that a database that leads has read
	counts  *simCounts
	states  map[uint64]simState
	admin   *simClient
	clients []simWork
	spare   bool // there is a member that comes and goes
	// replaced is a member that has lost its disk and is not back yet.
	replaced replacement
	limits   member.Limits
}

// simState is what the store of a member is by a commit.
type simState struct {
	sum    [sha256.Size]byte
	member int
}

// simWork is what a client does, and what is to be said in the end.
type simWork interface {
	run()
	check() error
}

// simulate runs a simulation and returns what it has found to be wrong.
func simulate(t *testing.T, seed uint64, fault string, sum *simCounts) (err error) {
	t.Helper()
	return inBubble(t, &simulation{seed: seed, fault: fault, counts: sum}, (*simulation).run)
}

// inBubble has run run a simulation.
func inBubble(t *testing.T, s *simulation, run func(s *simulation, dirs []string) error) (err error) {
	t.Helper()
	dirs := make([]string, simMost)
	for i := range dirs {
		dirs[i] = t.TempDir()
	}
	synctest.Test(t, func(*testing.T) {
		s.random, s.states = rand.New(rand.NewPCG(s.seed, 1)), map[uint64]simState{}
		s.network = newSimNetwork(rand.New(rand.NewPCG(s.seed, 2)))
		s.ctx, s.found = context.WithCancelCause(context.Background())
		if s.codec, err = wire.NewCodec(nil); err != nil {
			return
		}
		s.pause(simBegins)
		err = run(s, dirs)
		s.found(errSimOver)
		for _, m := range s.members {
			if m != nil {
				err = errors.Join(err, m.stopNow())
			}
		}
		s.closeClients()
	})
	return err
}

// simBegins is how long the bubble has been there when the members start: it begins in the year 2000, and the process's monotonic time when that was
// started. Members take it for positive.
const simBegins = 40 * 365 * 24 * time.Hour

var errSimOver = errors.New("the simulation is over")

// fail ends the simulation with what was found.
func (s *simulation) fail(format string, args ...any) { s.found(fmt.Errorf(format, args...)) }

// failed is what was found so far.
func (s *simulation) failed() error {
	if s.ctx.Err() == nil {
		return nil
	}
	return context.Cause(s.ctx)
}

// pause lets time pass.
func (s *simulation) pause(d time.Duration) { _ = clock.Wait(s.ctx, clock.Wall(), d) }

func (s *simulation) now() time.Time { return clock.Wall().Now() }

func (s *simulation) run(dirs []string) error {
	if err := s.begin(dirs); err != nil {
		return err
	}
	var work sync.WaitGroup
	for _, c := range s.clients {
		work.Go(c.run)
	}
	s.trouble()
	s.heal()
	s.over.Store(true)
	work.Wait()
	if err := s.failed(); err != nil {
		return err
	}
	if err := s.settle(); err != nil {
		return err
	}
	in, err := s.inSet()
	if err != nil {
		return err
	}
	for _, m := range in {
		if err := s.awaitExpiry(m); err != nil {
			return err
		}
	}
	for _, c := range s.clients {
		if err := c.check(); err != nil {
			return err
		}
	}
	return s.validate()
}

// begin starts the members and has them be a set.
func (s *simulation) begin(dirs []string) error {
	s.spare = s.seed%3 == 0
	s.limits = member.UsualLimits
	if s.seed%2 == 0 { // members that were away need copies, in many parts
		s.limits = member.Limits{Log: raftlog.Limits{Bytes: 1, HardBytes: s.random.Int64N(2) * math.MaxInt64, Spare: 30, Every: time.Second}, PartBytes: 4 << 10}
	}
	for i := range s.members {
		if i >= simMembers && !s.spare {
			break
		}
		m := &simMember{s: s, place: i, disk: smalldisk.New(simDisk), addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 27017 + i}}
		m.clock.set(time.Duration(s.random.Int64N(int64(4*time.Second))) - 2*time.Second)
		if i == 1 {
			switch s.fault {
			case faultOwnClock:
				m.clock.set(30 * time.Second)
			case faultOwnSweep:
				m.clock.set(-30 * time.Second)
			}
		}
		m.dir = dirs[i]
		s.members[i] = m
		if err := m.start(); err != nil {
			return err
		}
	}
	s.admin = s.newClient("admin", 100)
	list := bson.Build().Array("members")
	for i := range simMembers {
		list.Object(bson.IndexKey(i)).Int32("_id", int32(i)).String("host", s.members[i].host()).End()
	}
	initiate := bson.Build().Document("replSetInitiate", bson.Build().String("_id", simSet).Fields(list.End().Doc()).Doc()).Doc()
	if err := s.within(time.Minute, func() error { _, err := s.admin.call(s.ctx, 0, "admin", initiate); return err }); err != nil {
		return fmt.Errorf("initiate: %w", err)
	}
	for _, text := range []string{
		`{createIndexes: "h", indexes: [{key: {_ts: 1}, name: "t", expireAfterSeconds: 2}]}`,
		`{createIndexes: "p", indexes: [{key: {at: 1}, name: "t", expireAfterSeconds: 1, hideExpired: true}]}`,
		`{createIndexes: "q", indexes: [{key: {at: 1}, name: "t", expireAfterSeconds: 1}]}`,
		`{create: "capped", capped: true, size: 4096, max: 20}`, `{createIndexes: "capped", indexes: [{key: {b: -1, a: 1}, name: "ba"}]}`,
		`{create: "r"}`, `{create: "log"}`, `{create: "marks"}`, `{createIndexes: "u", indexes: [{key: {k: 1}, name: "k", unique: true}]}`,
	} {
		if _, err := s.admin.atPrimary("d", bson.MustDoc(text), time.Minute); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	for i := range simAccounts {
		if _, err := s.admin.atPrimary("d", bson.MustDoc(fmt.Sprintf(`{insert: "a", documents: [{_id: %d, n: %d}]}`, i, simMoney)), time.Minute); err != nil {
			return err
		}
	}
	for i := range simCounters {
		if _, err := s.admin.atPrimary("d", bson.MustDoc(fmt.Sprintf(`{insert: "c", documents: [{_id: %d, n: NumberLong(0)}]}`, i)), time.Minute); err != nil {
			return err
		}
	}
	s.newClients()
	return nil
}

// dumpStacks writes down what each goroutine is at, where that is wanted.
func (s *simulation) dumpStacks() {
	if *membersDumps == "" {
		return
	}
	f, err := os.CreateTemp(*membersDumps, fmt.Sprintf("%d-*.txt", s.seed))
	if err == nil {
		err = errors.Join(pprof.Lookup("goroutine").WriteTo(f, 2), f.Close())
	}
	if err != nil {
		s.fail("write down what runs: %w", err)
	}
}

// within calls f until it is content, or a time is over.
func (s *simulation) within(limit time.Duration, f func() error) (err error) {
	for by := s.now().Add(limit); ; {
		if err = f(); err == nil {
			return nil
		}
		if s.now().After(by) {
			s.dumpStacks()
			return err
		}
		if failed := s.failed(); failed != nil {
			return failed
		}
		s.pause(50 * time.Millisecond)
	}
}

// trouble is what goes wrong.
func (s *simulation) trouble() {
	kinds := []struct {
		weight int
		run    func() string
	}{{5, s.crash}, {1, s.crashAll}, {2, s.stop}, {6, s.cut}, {3, s.slow}, {4, s.step}, {3, s.stepDown}, {4, s.reconfigure}, {3, s.recover},
		{4, s.replace}, {2, s.revote}, {2, s.freeze}, {4, s.fill}}
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	for end := s.now().Add(*membersLast); s.now().Before(end) && s.failed() == nil; {
		s.pause(time.Duration(50+s.random.IntN(900)) * time.Millisecond)
		at := s.random.IntN(total)
		for _, k := range kinds {
			if at -= k.weight; at < 0 {
				if what := k.run(); what != "" {
					s.say("%s", what)
					s.counts.add(what)
				}
				break
			}
		}
		s.compare()
	}
}

func (s *simulation) any() *simMember {
	for {
		if m := s.members[s.random.IntN(simMost)]; m != nil {
			return m
		}
	}
}

// down is how many have no power.
func (s *simulation) down() (n int) {
	for _, m := range s.members[:simMembers] {
		if m.server == nil {
			n++
		}
	}
	return n
}

// crash takes the power from a member, mostly from one at a time.
func (s *simulation) crash() string {
	m := s.any()
	if s.random.IntN(3) > 0 {
		if p := s.leading(); p != nil {
			m = p
		}
	}
	if m.server == nil || s.down() > 0 {
		return s.recover()
	}
	m.crash()
	return "crash"
}

// crashAll takes it from all.
func (s *simulation) crashAll() string {
	for _, m := range s.members {
		if m != nil && m.server != nil {
			s.network.darken(m.place, true)
		}
	}
	for _, m := range s.members {
		if m != nil {
			m.crash()
		}
	}
	s.heal()
	return "crash of all"
}

func (s *simulation) stop() string {
	m := s.any()
	if m.server == nil || s.down() > 0 {
		return s.recover()
	}
	if err := m.stopNow(); err != nil {
		s.fail("stop member %d: %w", m.place, err)
	}
	return "stop"
}

// recover gives everybody power.
func (s *simulation) recover() string {
	for _, m := range s.members {
		if m != nil && m.server == nil {
			if err := m.start(); err != nil {
				s.fail("start member %d: %w", m.place, err)
			}
		}
	}
	return ""
}

func (s *simulation) heal() {
	for _, m := range s.members {
		if m != nil {
			m.disk.Resize(simDisk)
		}
	}
	s.network.setCut(map[[2]int]bool{})
	s.network.setSlow(0)
	s.recover()
}

// simDisk is how much room there is on a disk, unless it is filled.
const simDisk = 256 << 20

// fill leaves little room on a member's disk, or none, or gives all back.
func (s *simulation) fill() string {
	m := s.any()
	if p := s.leading(); p != nil && s.random.IntN(2) == 0 {
		m = p
	}
	if s.random.IntN(3) == 0 {
		m.disk.Resize(simDisk)
		return ""
	}
	used, _ := m.disk.Used()
	m.disk.Resize(used + s.random.Int64N(3<<20))
	return "disk full"
}

// cut cuts a member off, both ways or one, from all or some, or ends that.
func (s *simulation) cut() string {
	ways := map[[2]int]bool{}
	if s.random.IntN(3) == 0 {
		s.network.setCut(ways)
		return ""
	}
	alone := s.any()
	if p := s.leading(); p != nil && s.random.IntN(2) == 0 {
		alone = p
	}
	kind := s.random.IntN(4)
	for i := range simMost {
		if i == alone.place || kind == 3 && s.random.IntN(2) == 0 {
			continue
		}
		if kind != 1 {
			ways[[2]int{alone.place, i}] = true
		}
		if kind != 2 {
			ways[[2]int{i, alone.place}] = true
		}
	}
	s.network.setCut(ways)
	if s.random.IntN(2) == 0 {
		s.network.sever(alone.place) // clients among them
	}
	return "cut"
}

func (s *simulation) slow() string {
	s.network.setSlow(time.Duration(s.random.Int64N(int64(400 * time.Millisecond))))
	if s.random.IntN(2) == 0 {
		s.network.setSlow(0)
	}
	return "slow"
}

// step sets the clock of a member: mostly by little, which is trusted, forward or back.
func (s *simulation) step() string {
	d := time.Duration(s.random.Int64N(int64(4*time.Second))) - 2*time.Second
	if s.random.IntN(6) == 0 {
		d *= 100
	}
	s.any().clock.set(d)
	return "step"
}

func (s *simulation) stepDown() string {
	p := s.leading()
	if p == nil {
		return ""
	}
	body := bson.MustDoc(`{replSetStepDown: 5, secondaryCatchUpPeriodSecs: 1}`)
	if s.random.IntN(2) == 0 {
		body = bson.MustDoc(`{replSetStepDown: 2, secondaryCatchUpPeriodSecs: 1, force: true}`)
	}
	ctx, cancel := clock.WithTimeout(s.ctx, clock.Wall(), 5*time.Second)
	defer cancel()
	if _, err := s.admin.call(ctx, p.place, "admin", body); err != nil {
		return ""
	}
	return "step down"
}

// leading is the member that leads, as it says itself; nil where there is none.
func (s *simulation) leading() *simMember {
	for _, m := range s.members {
		if d := m.database(); d != nil && d.role.Kind == member.Leader {
			return m
		}
	}
	return nil
}

// simCounts counts what has happened in all simulations.
type simCounts struct {
	mu sync.Mutex // guards n
	n  map[string]int
}

func (c *simCounts) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[what]++
}

func (c *simCounts) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.n)
}

func (c *simCounts) mustHave(t *testing.T, events ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, event := range events {
		if c.n[event] == 0 {
			t.Errorf("nothing of this has happened: %s", event)
		}
	}
}
