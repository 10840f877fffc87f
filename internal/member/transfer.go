package member

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/diskwatch"
	"github.com/ebbdb/ebb/internal/raftlog"
	"github.com/ebbdb/ebb/internal/replset"
)

func anybody(raftlog.Peer) bool { return true }

var errNobodyElse = errors.New("no electable member has caught up")

// transferTime is how long a member that has everything may take to become primary.
const transferTime = 2 * time.Second

// handOver has another member that may lead take over within a time. Once one has all but the last few entries, what clients write waits until it
// has these, too. A member in a hurry does not wait where nobody is within reach.
func (m *member) handOver(ctx context.Context, within time.Duration, hurry bool, to func(raftlog.Peer) bool) error {
	ctx, cancel := clock.WithTimeout(ctx, m.group.o.Wall, within)
	defer cancel()
	defer m.log.Watch()()
	term := m.log.Role().Term
	leads := func(s *raftlog.Status) bool { return s.Leads && s.Term == term }
	s := m.log.Status()
	for ; leads(s) && m.successor(s, to, maxBehind) == 0; s = m.log.Status() {
		if hurry {
			return errNobodyElse
		}
		select {
		case <-s.Changed:
		case <-ctx.Done():
			return errNobodyElse
		}
	}
	engine := m.Engine()
	defer engine.GoOn()
	if err := engine.Pause(ctx); err != nil {
		return err
	}
	asked := uint64(0)
	for ; leads(s); s = m.log.Status() {
		if !isWithinReach(s, asked) {
			if asked = m.successor(s, to, 0); asked != 0 {
				if err := m.log.Do(ctx, func(c *raftlog.Core) error { c.Transfer(asked); return nil }); err != nil {
					return err
				}
			} else if hurry && m.successor(s, to, math.MaxUint32) == 0 {
				return errNobodyElse
			}
		}
		select {
		case <-s.Changed:
		case <-ctx.Done():
			return errNobodyElse
		}
	}
	return nil
}

// isWithinReach says whether a member is known to get what is sent to it.
func isWithinReach(s *raftlog.Status, id uint64) bool {
	progress, known := s.Progress[id]
	return known && progress.Active && !progress.Behind
}

// successor is the member that should lead next: one that may, and has the whole log but for so many entries; 0 where there is none.
func (m *member) successor(s *raftlog.Status, to func(raftlog.Peer) bool, behind uint64) uint64 {
	v := m.view()
	if v == nil || v.Config == nil {
		return 0
	}
	best, priority := uint64(0), 0.0
	for _, other := range v.Config.Members {
		p, ok := peerOf(s.Peers, other.ID)
		if !ok || p.ID == m.disk.ID() || other.Priority <= priority || !to(p) || !s.IsVoter(p.ID) || m.isUnfit(other.Host) {
			continue
		}
		if isWithinReach(s, p.ID) && s.Progress[p.ID].Match+behind >= s.Last {
			best, priority = p.ID, other.Priority
		}
	}
	return best
}

// freeze keeps the member from being elected for some time, or as long as it was asked for before where that is longer; 0 ends both. The others hear of it
// with its position.
func (m *member) freeze(d time.Duration) {
	m.mu.Lock()
	m.mu.frozen = replset.Frozen(m.mu.frozen, clock.Monotonic(m.group.o.Wall), d)
	m.mu.Unlock()
}

// rest has the member stand for election or not, by its priority and by what it was asked for.
func (m *member) rest(v *replset.View) {
	if v != nil {
		passive := v.Self >= 0 && v.Config.Members[v.Self].Priority == 0
		barred := v.Self < 0 || passive && !m.isWaitedFor(v)
		m.mu.Lock()
		m.mu.passive, m.mu.barred = passive, barred
		m.mu.Unlock()
	}
	idle, passive := m.stands()
	_ = m.log.Do(m.ctx, func(c *raftlog.Core) error { c.SetIdle(idle, passive); return nil })
}

// isWaitedFor says whether a member that may lead is up. Where nobody leads although one is, it may lack what this member has.
func (m *member) isWaitedFor(v *replset.View) bool {
	s := m.log.Status()
	m.looks.Lock()
	defer m.looks.Unlock()
	for i, other := range v.Config.Members {
		p, known := peerOf(s.Peers, other.ID)
		if i != v.Self && other.Priority > 0 && known && s.IsVoter(p.ID) && m.looks.health[other.Host].Up && !m.looks.unfit[other.Host] {
			return true
		}
	}
	return false
}

// rests says whether the member does not stand for election now, unless nobody else can lead.
func (m *member) rests() bool {
	idle, passive := m.stands()
	return idle || passive
}

// stands says whether the member does not stand for election now, or only where nobody else can lead.
func (m *member) stands() (idle, passive bool) {
	m.mu.Lock()
	idle, passive = m.mu.barred || m.mu.frozen > clock.Monotonic(m.group.o.Wall), m.mu.passive
	m.mu.Unlock()
	return idle || m.unfit() != "" || m.group.o.Disk.Stalled() >= diskwatch.Patience, passive
}

var errNotElected = errors.New("the member was not elected")

// stepUp has the member lead. Who leads is asked to hand over: nobody votes against one that is heard of. As soon as the member leads its database
// gives way to another, which interrupts who waits here.
func (m *member) stepUp(ctx context.Context) error {
	if m.rests() {
		return errNotElected
	}
	ctx, cancel := clock.WithTimeout(ctx, m.group.o.Wall, 2*transferTime)
	defer cancel()
	defer m.log.Watch()()
	var err error
	if leader := m.log.Role().Leader; leader != 0 {
		_, err = m.group.call(ctx, m.links.hostOf(leader), m.newLetter(letterStepUp).Doc())
	} else {
		err = m.log.Do(ctx, func(c *raftlog.Core) error { return c.Campaign() })
	}
	for s := m.log.Status(); !m.log.Role().Leads; s = m.log.Status() {
		if err != nil || ctx.Err() != nil {
			return errNotElected
		}
		select {
		case <-s.Changed:
		case <-ctx.Done():
		}
	}
	return nil
}

// takeoverEvery is how often a primary of less priority than another tries to hand over, takeoverAtMost how often it still does where the other is not
// elected, and relieveEvery how often one that is unfit tries to.
const (
	takeoverEvery  = 10 * time.Second
	takeoverAtMost = 5 * time.Minute
	relieveEvery   = 2 * time.Second
)

// takeover is when a primary tries next to hand over to a member of more priority. Nothing is written while it does, so one that is never elected, since the
// others do not hear it, is tried less and less often.
type takeover struct {
	next, wait time.Duration // next is by the clock's monotonic time; 0: at once
	config     int64         // the version of the configuration for which that is; under another one it is at once
}

func (t *takeover) isDue(now time.Duration, config int64) bool {
	if t.config != config {
		*t = takeover{config: config}
	}
	return now >= t.next
}

func (t *takeover) tried(now time.Duration, elected bool) {
	if t.wait = min(max(2*t.wait, takeoverEvery), takeoverAtMost); elected {
		t.wait = takeoverEvery
	}
	t.next = now + t.wait
}

// unfit is why the member should not lead: there is too little room for data to be added here, or none for the log, or what is stored is damaged.
// It is empty where nothing is in the way.
func (m *member) unfit() (why string) {
	switch engine := m.Engine(); {
	case engine.IsDamaged():
		return "A file of the primary is damaged"
	case engine.IsFull() || m.disk.IsFull():
		return "The disk of the primary is full"
	}
	return ""
}

// isUnfit says whether another member was unfit to lead when it was asked last.
func (m *member) isUnfit(host string) bool {
	m.looks.Lock()
	defer m.looks.Unlock()
	return m.looks.unfit[host]
}

// relieve has a member that is unfit hand over to one that can take writes. Where there is none it leads on: reads go on, and so do deletions where
// only the disk is full.
func (m *member) relieve(why string) {
	now := clock.Monotonic(m.group.o.Wall)
	m.mu.Lock()
	early := m.mu.relieved != 0 && now < m.mu.relieved+relieveEvery
	if !early {
		m.mu.relieved = now
	}
	m.mu.Unlock()
	if early || m.successor(m.log.Status(), anybody, maxBehind) == 0 {
		return
	}
	log := m.group.o.Log.For("REPL")
	if err := m.handOver(m.ctx, transferTime, false, anybody); err != nil {
		log.Warn(why+", and no other member could take over", "error", err.Error())
		return
	}
	log.Warn(why + ": it has stepped down for another member, and is not elected as long as that is so")
}

// yieldTo hands over to a member of more priority that has caught up.
func (m *member) yieldTo(v *replset.View) {
	own := v.Config.Members[v.Self].Priority
	s := m.log.Status()
	higher := func(p raftlog.Peer) bool {
		for _, other := range v.Config.Members {
			if other.ID == p.Member {
				return other.Priority > own
			}
		}
		return false
	}
	m.mu.Lock()
	due := m.mu.takeover.isDue(clock.Monotonic(m.group.o.Wall), v.Config.Version)
	m.mu.Unlock()
	if !due || m.successor(s, higher, maxBehind) == 0 {
		return
	}
	err := m.handOver(m.ctx, transferTime, false, higher)
	m.mu.Lock()
	m.mu.takeover.tried(clock.Monotonic(m.group.o.Wall), err == nil)
	m.mu.Unlock()
}
