package raftlog

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/crashdisk"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
)

var (
	simSeeds = flag.Int("sim-seeds", 100, "how many simulations are run")
	simSeed  = flag.Uint64("sim-seed", 0, "the seed of the first")
	simFault = flag.String("sim-fault", "", "a fault to plant, which the simulation has to find: nosync, early")
)

// TestSimulation has three members with real stores and real logs on disks in memory lose messages, power and contact, while clients move
// money between accounts. Whatever happens: what was acknowledged is there at the end, what anybody has seen is never taken back, the sum stays
// the same, and all members have the same keys.
func TestSimulation(t *testing.T) {
	seeds := *simSeeds
	if testing.Short() || raceEnabled {
		seeds = min(seeds, 20)
	}
	for i := range seeds {
		seed := *simSeed + uint64(i)
		if err := simulate(seed, *simFault, 2500); err != nil {
			t.Fatalf("%v\nAgain: go test ./internal/raftlog -run TestSimulation -args -sim-seeds 1 -sim-seed %d", err, seed)
		}
	}
	t.Log(simEvents)
	for _, event := range []string{"crash", "leads", "deposed", "install", "ordered", "transfer", "resign", "partition", "slow", "together"} {
		if simEvents[event] == 0 {
			t.Errorf("nothing of this has happened: %s", event)
		}
	}
}

// TestSimulationFindsFaults: a member that forgets in a crash what it has told others, and one that applies its own order at once, are found.
func TestSimulationFindsFaults(t *testing.T) {
	for _, fault := range []string{"nosync", "early"} {
		found := false
		for seed := range uint64(40) {
			if err := simulate(seed, fault, 2500); err != nil {
				found = true
				t.Logf("%s, seed %d: %v", fault, seed, err)
				break
			}
		}
		if !found {
			t.Errorf("%s was not found", fault)
		}
	}
}

const (
	simMembers  = 3
	simAccounts = 5
	simMoney    = 100
)

// simulation is one run. Everything in it happens on one goroutine, but that transactions wait on theirs.
type simulation struct {
	random  *rand.Rand
	fault   string
	members [simMembers]*simMember
	air     []*simMessage
	now     int
	cut     [simMembers][simMembers]bool // who does not hear whom
	ops     []*simOp
	seen    map[string]bool // what anybody has seen
	events  map[string]int
}

type simMessage struct {
	m    *pb.Message
	at   int
	data [][2][]byte // of a snapshot
}

// simOp is a transaction of a client.
type simOp struct {
	member   *simMember
	key      string
	accounts [2]int
	done     chan error
	err      error
	over     bool
}

type simMember struct {
	sim    *simulation
	place  int
	fs     *crashdisk.Disk
	dir    int // of the store
	engine *pebblekv.Engine
	disk   *Disk
	core   *Core
	leads  uint64 // the term that the engine leads in
	told   uint64 // the last that it did
	at     uint64 // applied
	queued [][]byte
	data   [][2][]byte // of a snapshot that has arrived
	down   int         // until when it has no power
	append chan struct{}
	writes []*Write // on their way to the disk
}

// Append is kv.Log's.
func (m *simMember) Append(encoded []byte) {
	m.queued = append(m.queued, append([]byte{kindCommit}, encoded...))
	m.append <- struct{}{}
}

func simulate(seed uint64, fault string, steps int) (err error) {
	s := &simulation{random: rand.New(rand.NewPCG(seed, 7)), fault: fault, seen: map[string]bool{}, events: map[string]int{}}
	defer s.close()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("seed %d: panic: %v", seed, r)
		}
	}()
	if err := s.begin(); err != nil {
		return err
	}
	for s.now = 0; s.now < steps; s.now++ {
		if err := s.step(true); err != nil {
			return fmt.Errorf("seed %d, step %d: %w", seed, s.now, err)
		}
	}
	s.cut = [simMembers][simMembers]bool{}
	for ; s.now < steps+4000; s.now++ { // all is well again
		if err := s.step(false); err != nil {
			return fmt.Errorf("seed %d, step %d: %w", seed, s.now, err)
		}
		if s.isQuiet() {
			for _, op := range s.ops { // which is only about to hear of it
				if !op.over {
					op.err, op.over = <-op.done, true
				}
			}
			break
		}
	}
	if err := s.check(); err != nil {
		return fmt.Errorf("seed %d: %w", seed, err)
	}
	for event, n := range s.events {
		simEvents[event] += n
	}
	return nil
}

// simEvents counts what has happened in all simulations.
var simEvents = map[string]int{}

var simSet = [12]byte{1}

func (s *simulation) begin() error {
	var peers Peers
	for i := range s.members {
		m := &simMember{sim: s, place: i, fs: crashdisk.New(), append: make(chan struct{}, 1)}
		s.members[i] = m
		if err := m.openStore(); err != nil {
			return err
		}
		disk, err := OpenDisk("raft", m.fs, nil)
		if err != nil {
			return err
		}
		disk.id = uint64(i + 1) // which is random elsewhere
		m.disk = disk
		peers = append(peers, Peer{ID: disk.ID(), Member: int64(i)})
	}
	first := s.members[0]
	txn, err := first.engine.Begin()
	if err != nil {
		return err
	}
	for i := range simAccounts {
		txn.Set(account(i), amount(simMoney))
	}
	txn.Add([]byte("count"), 1)
	if err := txn.Commit(context.Background(), kv.Synced); err != nil {
		return err
	}
	if err := first.disk.Begin(simSet, simSet, peers); err != nil {
		return err
	}
	for i, m := range s.members {
		if i > 0 {
			if err := m.disk.Join(simSet, simSet); err != nil {
				return err
			}
		}
		if err := m.start(); err != nil {
			return err
		}
	}
	return nil
}

func account(i int) []byte { return fmt.Appendf(nil, "account/%d", i) }
func amount(n int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(n))
}

var commitKey = []byte("number")

func (m *simMember) openStore() (err error) {
	m.engine, err = pebblekv.Open(fmt.Sprintf("store%d", m.dir), pebblekv.Options{FS: m.fs, CommitKey: commitKey, CacheBytes: 1 << 20, RowCacheBytes: 1 << 16,
		MemTableBytes: 1 << 20, MinFreeBytes: -1, ReserveBytes: -1, Logger: slog.New(slog.DiscardHandler)})
	return err
}

// start starts a member on what its disk has.
func (m *simMember) start() (err error) {
	m.engine.Follow(errors.New("it follows"))
	m.leads, m.told, m.queued, m.data, m.writes = 0, 0, nil, nil, nil
	m.at = m.disk.applied
	m.disk.forgetful = m.sim.fault == "nosync"
	if m.core, err = NewCore(m.disk, rand.New(rand.NewPCG(m.sim.random.Uint64(), 1)), slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	stored, err := m.findStored()
	m.core.Settle(stored)
	return err
}

func (m *simMember) findStored() (index uint64, err error) {
	number, _ := m.engine.Last()
	return m.disk.foundStored(number)
}

// crash takes the power of a member: what was not synced is lost, or a part of it.
func (m *simMember) crash() error {
	m.sim.events["crash"]++
	keep := []int{0, 0, 50, 100}[m.sim.random.IntN(4)]
	if m.sim.fault == "nosync" {
		keep = 0
	}
	disk := &crashdisk.Disk{MemFS: m.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: keep, RNG: rand.New(rand.NewPCG(m.sim.random.Uint64(), 1))})}
	m.close()
	m.fs = disk
	m.down = m.sim.now + m.sim.random.IntN(120)
	return nil
}

func (m *simMember) close() {
	if m.engine != nil {
		m.engine.Follow(errors.New("no power"))
		_ = m.engine.Close()
		m.engine = nil
	}
	if m.disk != nil {
		_ = m.disk.Close()
		m.disk = nil
	}
	m.core = nil
}

func (m *simMember) restart() (err error) {
	if err = m.openStore(); err != nil {
		return err
	}
	if m.disk, err = OpenDisk("raft", m.fs, nil); err != nil {
		return err
	}
	if m.disk.Installs() { // a server looks whether the snapshot lies there; here it always came with the message, and is lost
		return m.installLost()
	}
	return m.start()
}

// installLost has a member that lost power while it put a snapshot in place be an empty one again, with its own id and its own vote: it is
// as in a server that finds that half of its snapshot is missing, and asks for another.
func (m *simMember) installLost() error {
	m.sim.events["lost install"]++
	return errors.New("a snapshot was noted and is not there")
}

func (s *simulation) close() {
	for _, m := range s.members {
		if m != nil {
			m.close()
		}
	}
	for _, op := range s.ops {
		if !op.over {
			<-op.done
		}
	}
}

// step is a tick of all.
func (s *simulation) step(trouble bool) error {
	if trouble {
		if err := s.trouble(); err != nil {
			return err
		}
	}
	for _, m := range s.members {
		if m.core == nil {
			if trouble && s.now < m.down {
				continue
			}
			if err := m.restart(); err != nil {
				return err
			}
		}
		if s.now%4 == m.place%4 {
			m.core.Tick()
		}
		if err := m.work(); err != nil {
			return err
		}
	}
	if trouble && s.random.IntN(3) == 0 {
		s.transact()
	}
	if err := s.deliver(trouble); err != nil {
		return err
	}
	if s.now%16 == 0 {
		for _, m := range s.members {
			if m.core != nil && s.random.IntN(4) == 0 {
				if err := m.cutLog(); err != nil {
					return err
				}
			}
		}
	}
	for _, op := range s.ops {
		if !op.over {
			select {
			case op.err = <-op.done:
				op.over = true
				s.events["done"]++
			default:
			}
		}
	}
	return nil
}

// trouble is what goes wrong.
func (s *simulation) trouble() error {
	switch s.random.IntN(60) {
	case 0: // somebody loses contact
		s.events["partition"]++
		alone := s.random.IntN(simMembers)
		for i := range simMembers {
			if i != alone {
				s.cut[alone][i], s.cut[i][alone] = s.random.IntN(4) > 0, s.random.IntN(4) > 0
			}
		}
	case 1, 2:
		s.cut = [simMembers][simMembers]bool{}
	case 3:
		if m := s.members[s.random.IntN(simMembers)]; m.core != nil && s.random.IntN(2) == 0 {
			return m.crash()
		}
	case 4:
		if m := s.members[s.random.IntN(simMembers)]; m.core != nil && m.core.Role().Leads {
			s.events["transfer"]++
			m.core.Transfer(uint64(s.random.IntN(simMembers) + 1))
		}
	case 5:
		if m := s.members[s.random.IntN(simMembers)]; m.core != nil && m.core.Role().Leads && s.random.IntN(4) == 0 {
			s.events["resign"]++
			return m.core.Resign()
		}
	}
	return nil
}

// cutLog syncs the store and cuts the log, short.
func (m *simMember) cutLog() error {
	if m.disk.install {
		return nil
	}
	if err := m.engine.Sync(); err != nil {
		return err
	}
	return m.core.Cut(m.at, UsualLimits.Spare, uint64(m.sim.random.IntN(60)), m.sim.random.IntN(2) == 0)
}

// work does what a member has to do.
func (m *simMember) work() error {
	if len(m.queued) > 0 {
		commits := m.queued
		m.queued = nil
		ok, err := m.core.Propose(m.leads, commits)
		if err != nil {
			return err
		}
		if !ok {
			m.depose()
		}
	}
	for {
		if err := m.write(); err != nil {
			return err
		}
		if !m.core.HasReady() {
			break
		}
		out, err := m.core.Process()
		if err != nil {
			return err
		}
		if out.Deposed {
			m.depose()
		}
		m.send(out.Messages)
	}
	return m.apply()
}

// write has some of what is on its way to the disk get there, several writes at once or one by one. A disk is slow now and then.
func (m *simMember) write() error {
	m.writes = append(m.writes, m.core.Writes()...)
	installs := slices.ContainsFunc(m.writes, func(w *Write) bool { return w.snapshot != nil }) // its data would have to wait, too
	for len(m.writes) > 0 && (installs || m.sim.random.IntN(3) > 0) {
		n := 1 + m.sim.random.IntN(len(m.writes))
		writes := m.writes[:n]
		m.writes = m.writes[n:]
		if n > 1 {
			m.sim.events["together"]++
		}
		if err := m.disk.Put(writes); err != nil {
			return err
		}
		for _, w := range writes {
			said, err := m.core.Written(w)
			if err != nil {
				return err
			}
			m.send(said)
			if w.snapshot != nil {
				if err := m.install(); err != nil {
					return err
				}
			}
		}
		m.writes = append(m.writes, m.core.Writes()...)
	}
	if len(m.writes) > 0 {
		m.sim.events["slow"]++
	}
	return nil
}

func (m *simMember) depose() {
	m.sim.events["deposed"]++
	m.leads = 0
	m.queued = nil
	m.engine.Follow(errors.New("deposed"))
}

func (m *simMember) apply() error {
	for {
		entries, err := m.core.Next(m.at)
		if err != nil || len(entries) == 0 {
			return err
		}
		for _, e := range entries {
			if err := m.applyEntry(e); err != nil {
				return err
			}
			m.at = e.Index
			m.core.Applied(e.Index)
			if role := m.core.Role(); role.Leads && e.Term == role.Term && m.told < role.Term {
				m.sim.events["leads"]++
				m.leads, m.told = role.Term, role.Term
				m.engine.Lead(m)
			}
		}
	}
}

func (m *simMember) applyEntry(e Entry) error {
	last, _ := m.engine.Last()
	if e.Commit == nil || e.number() <= last {
		return nil
	}
	c, err := kv.DecodeCommit(e.Commit)
	if err != nil {
		return err
	}
	for _, op := range c.Writes.(*kv.WriteList).Ops {
		if key := string(op.Key); key[:3] == "op/" {
			m.sim.seen[key] = true
		}
	}
	if m.leads == e.Term {
		return m.engine.Confirm(e.number())
	}
	return m.engine.Apply(context.Background(), c, kv.Unsynced)
}

func (m *simMember) send(messages []*pb.Message) {
	s := m.sim
	for _, message := range messages {
		to := int(message.GetTo() - 1)
		isSnapshot := message.GetType() == pb.MsgSnap
		if s.cut[m.place][to] {
			if isSnapshot {
				m.core.SnapshotSent(message.GetTo(), false)
			}
			continue
		}
		copies := 1
		switch s.random.IntN(50) {
		case 0:
			copies = 0
		case 1:
			copies = 2
		}
		if isSnapshot {
			copies = 1 // its sender hears how it went
		}
		for range copies {
			sent := &simMessage{m: proto.CloneOf(message), at: s.now + 1 + s.random.IntN(4)}
			if isSnapshot {
				sent.data = dump(m.engine)
				sent.at += s.random.IntN(40)
			}
			s.air = append(s.air, sent)
		}
	}
}

// deliver brings the messages whose time has come.
func (s *simulation) deliver(trouble bool) error {
	later := s.air[:0:0]
	for _, sent := range s.air {
		if sent.at > s.now {
			later = append(later, sent)
			continue
		}
		to := s.members[sent.m.GetTo()-1]
		if to.core == nil && sent.m.GetType() != pb.MsgSnap {
			continue
		}
		if sent.m.GetType() == pb.MsgSnap {
			s.events["snapshot"]++
			from := s.members[sent.m.GetFrom()-1]
			ok := to.core != nil && (!trouble || s.random.IntN(4) > 0)
			if from.core != nil {
				from.core.SnapshotSent(sent.m.GetTo(), ok)
			}
			if !ok {
				continue
			}
			to.data = sent.data
		}
		to.core.Step(sent.m)
		if sent.m.GetType() == pb.MsgSnap { // before another one comes
			if err := to.work(); err != nil {
				return err
			}
		}
	}
	s.air = later
	return nil
}

// install puts the data that came with a snapshot in the place of the store.
func (m *simMember) install() error {
	m.sim.events["install"]++
	if m.data == nil {
		return errors.New("a snapshot is to be installed that has not come")
	}
	data := m.data
	m.data = nil
	m.engine.Follow(errors.New("a snapshot comes"))
	for _, op := range m.sim.ops { // whose transaction has ended before the engine closes
		if op.member == m && !op.over {
			op.err, op.over = <-op.done, true
		}
	}
	if err := m.engine.Close(); err != nil {
		return err
	}
	m.dir++
	fill, err := pebblekv.Open(fmt.Sprintf("store%d", m.dir), pebblekv.Options{FS: m.fs, CacheBytes: 1 << 20, MinFreeBytes: -1, ReserveBytes: -1})
	if err != nil {
		return err
	}
	i := 0
	if err := fill.Load(context.Background(), func() (key, value []byte, ok bool, err error) {
		if i == len(data) {
			return nil, nil, false, nil
		}
		i++
		return data[i-1][0], data[i-1][1], true, nil
	}); err != nil {
		return err
	}
	if err := fill.Close(); err != nil {
		return err
	}
	if err := m.openStore(); err != nil {
		return err
	}
	m.engine.Follow(errors.New("it follows"))
	m.at, m.leads = m.disk.base.index, 0
	if err := m.disk.Installed(); err != nil {
		return err
	}
	_, err = m.findStored()
	return err
}

func dump(e *pebblekv.Engine) (pairs [][2][]byte) {
	s, err := e.Snapshot()
	if err != nil {
		panic(err)
	}
	defer s.Close()
	it, err := s.NewIter(kv.IterOptions{})
	if err != nil {
		panic(err)
	}
	defer it.Close()
	for it.Next() {
		value, err := it.Value()
		if err != nil {
			panic(err)
		}
		pairs = append(pairs, [2][]byte{slices.Clone(it.Key()), slices.Clone(value)})
	}
	return pairs
}

// transact has a client move money, at a member that leads.
func (s *simulation) transact() {
	place := s.random.IntN(simMembers)
	m := s.members[place]
	if m.core == nil || m.leads == 0 {
		return
	}
	from, to := s.random.IntN(simAccounts), s.random.IntN(simAccounts)
	for _, op := range s.ops { // who waits for another is about another test
		if !op.over && (slices.Contains(op.accounts[:], from) || slices.Contains(op.accounts[:], to)) {
			return
		}
	}
	op := &simOp{member: m, key: fmt.Sprintf("op/%d", len(s.ops)), accounts: [2]int{from, to}, done: make(chan error, 1)}
	s.ops = append(s.ops, op)
	sum := int64(s.random.IntN(20))
	done := make(chan error, 1)
	go func() { done <- transfer(m.engine, op, from, to, sum) }()
	select {
	case <-m.append: // it waits for the log
		s.events["ordered"]++
		if s.fault == "early" {
			last, _ := m.engine.Last()
			if err := m.engine.Confirm(last + 1); err != nil {
				panic(err)
			}
			s.seen[op.key] = true
		}
		go func() { op.done <- <-done }()
	case op.err = <-done:
		op.over = true
	}
}

func transfer(e *pebblekv.Engine, op *simOp, from, to int, sum int64) error {
	t, err := e.Begin()
	if err != nil {
		return err
	}
	for _, change := range []struct {
		account int
		by      int64
	}{{from, -sum}, {to, sum}} {
		key := account(change.account)
		b, err := t.Get(key)
		if err != nil {
			t.Rollback()
			return err
		}
		t.Claim(key)
		t.Set(key, amount(int64(binary.BigEndian.Uint64(b))+change.by))
	}
	t.Add([]byte("count"), 1)
	t.Set([]byte(op.key), nil)
	return t.Commit(context.Background(), kv.Synced)
}

// isQuiet says whether all members have all.
func (s *simulation) isQuiet() bool {
	for _, m := range s.members {
		if m.core == nil || len(m.queued)+len(m.writes) > 0 || m.at != s.members[0].at || m.disk.last != m.at || m.core.Role().Leader == 0 || m.core.Role() != s.roleOf(m) {
			return false
		}
	}
	return true
}

func (s *simulation) roleOf(m *simMember) Role {
	r := s.members[0].core.Role()
	r.Leads = r.Leader == m.disk.id
	return r
}

func (s *simulation) check() error {
	if !s.isQuiet() {
		for _, m := range s.members {
			fmt.Println(m.place, m.at, m.disk.last, m.core.Role(), m.core.Status())
		}
		return fmt.Errorf("they do not agree although all is well: %v", s.events)
	}
	var first map[string]string
	for _, m := range s.members {
		found, sum := map[string]string{}, int64(0)
		for _, pair := range dump(m.engine) {
			found[string(pair[0])] = string(pair[1])
			if string(pair[0][:4]) == "acco" {
				sum += int64(binary.BigEndian.Uint64(pair[1]))
			}
		}
		if sum != simAccounts*simMoney {
			return fmt.Errorf("member %d has a sum of %d", m.place, sum)
		}
		if first == nil {
			first = found
		} else if !maps.Equal(first, found) {
			return fmt.Errorf("member %d has %d keys, the first %d, and they are not the same", m.place, len(found), len(first))
		}
	}
	count := int64(1)
	for _, op := range s.ops {
		_, there := first[op.key]
		if there {
			count++
		}
		switch {
		case op.err == nil && !there:
			return fmt.Errorf("%s was acknowledged and is lost", op.key)
		case op.err != nil && there && !errors.Is(op.err, kv.ErrUndetermined):
			return fmt.Errorf("%s failed with %v and is there", op.key, op.err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.seen)) {
		if _, there := first[key]; !there {
			return fmt.Errorf("%s was seen and is not there any more", key)
		}
	}
	if got := int64(binary.BigEndian.Uint64([]byte(first["count"]))); got != count {
		return fmt.Errorf("%d were counted, and %d are there", got, count)
	}
	return nil
}
