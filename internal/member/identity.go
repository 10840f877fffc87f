package member

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// A member is its directory: whoever is started on a copy of that has its id, and would vote, and acknowledge, in its name. That is refused where it can be
// seen: a server does not start in the place of another member, nor where the one that it would be answers already (checkPlace); and of two that speak in one
// name the others hear the one that is where the member should be, or spoke first (twins). A copy that is started when the one that it is of is gone cannot be told from that one.

// checkPlace refuses the directory of a member where the member is another server.
func (m *member) checkPlace() error {
	ctx, cancel := clock.WithTimeout(m.ctx, m.group.o.Wall, callTime)
	defer cancel()
	peers := m.disk.Peers()
	own, known := peers.ByID(m.disk.ID())
	if !known || own.Host == m.group.o.Host || m.group.o.IsSelf(ctx, own.Host) {
		return nil
	}
	for _, p := range peers {
		if p.ID != own.ID && m.group.o.IsSelf(ctx, p.Host) {
			return fmt.Errorf("the data directory is that of the member %s of the replica set, and this server is the member %s: two members with one identity would lose what is acknowledged. "+
				"Where this member has lost its own directory, remove it from the set, empty this one, and add it again", own.Host, p.Host)
		}
	}
	if m.answersAt(ctx, own.Host) {
		return fmt.Errorf("the data directory is that of the member %s of the replica set, which answers there: this one is a copy of it, and two members with one identity would lose what is acknowledged. "+
			"To add a member, start it with an empty directory; to have the member be here, stop it there, and start it here with what it has then", own.Host)
	}
	return nil
}

// answersAt says whether a server that is this member, too, answers at an address.
func (m *member) answersAt(ctx context.Context, host string) bool {
	reply, err := m.group.call(ctx, host, m.newLetter(letterPosition).Doc())
	if err != nil {
		return mongoerr.Is(err, errTwin.Code)
	}
	id := reply.Lookup("id")
	return id.Type == bson.TypeInt64 && uint64(id.Int64()) == m.disk.ID()
}

// twins tells servers apart that speak in one member's name, by a number that each process draws.
type twins struct {
	own int64
	mu  struct {
		sync.Mutex
		heard map[uint64]voice // by the member's id
	}
}

// voice is who speaks in a member's name.
type voice struct {
	process int64
	home    bool          // it is where the member should be
	at      time.Duration // when it has spoken last, by the clock's monotonic time
	told    int64         // the process that was refused last, of which the log tells once
}

// voiceTime is how long one who speaks in a member's name is that member, unless its connection ends before. A member says something several times a second.
const voiceTime = 3 * time.Second

// maxVoices bounds those who are remembered.
const maxVoices = 4 * maxLinks

func newTwins() *twins {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	t := &twins{own: int64(binary.BigEndian.Uint64(b[:])&math.MaxInt64 | 1)}
	t.mu.heard = map[uint64]voice{}
	return t
}

// hear refuses a process that speaks in the name of a member as which another one speaks; first says that it has not been told yet. A process of 0 is one of an
// earlier version, which does not say. Only what comes by a link is remembered, for with the link's end it is forgotten: a question by a connection of its own
// may come after that, and would have the member's next process refused for a copy.
func (t *twins) hear(id uint64, process int64, home, byLink bool, now time.Duration) (refused, first bool) {
	if process == 0 {
		return false, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	v, known := t.mu.heard[id]
	if known && v.process != process && now-v.at < voiceTime && (v.home || !home) {
		first = v.told != process
		v.told = process
		t.mu.heard[id] = v
		return true, first
	}
	if byLink && (known || len(t.mu.heard) < maxVoices) {
		t.mu.heard[id] = voice{process, home, now, v.told}
	}
	return false, false
}

// leave takes note that a connection has ended on which a process spoke in a member's name: another one may from then on.
func (t *twins) leave(id uint64, process int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.heard[id].process == process {
		delete(t.mu.heard, id)
	}
}

// errTwin is what one of two servers is told that are one member.
var errTwin = mongoerr.New(mongoerr.IllegalOperation, "another server speaks as this member of the replica set: one of the two was started on a copy of the other's data directory, and must be stopped")

// hearAs refuses who speaks in the name of a member that is another server.
func (m *member) hearAs(k *Caller, id uint64, process int64, host string, byLink bool) error {
	if id == 0 || process == m.twins.own {
		return nil
	}
	refused, first := id == m.disk.ID() && process != 0, true
	if !refused {
		p, known := m.log.Status().Peers.ByID(id)
		refused, first = m.twins.hear(id, process, known && p.Host == host, byLink, clock.Monotonic(m.group.o.Wall))
	}
	if !refused {
		k.process = process
		return nil
	}
	if first {
		m.group.o.Log.For("REPL").Error("Two servers speak as one member of the replica set: one was started on a copy of the other's data directory, and must be stopped. One of them is not heard",
			"member", m.links.hostOf(id), "notHeard", host)
	}
	return errTwin
}
