package member

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/peer"
	"github.com/ebbdb/ebb/internal/raftlog"
)

// Limits of what waits for a lane of a link. What is more is lost, as on a network.
const (
	maxLaneMessages = 1 << 12
	maxLaneBytes    = 64 << 20
	maxLinks        = 64
	// letterBytes is how much one message of the protocol carries; what is larger comes in several. Each has to be taken within a time (peer), by a
	// member that is slow as well.
	letterBytes = 256 << 10
	// maxLetterBytes is how large what comes in several may be together.
	maxLetterBytes = 128 << 20
)

// redial is how long after a call that failed a member is called again.
const redial = 200 * time.Millisecond

// links are the connections to the other members.
type links struct {
	member *member
	ctx    context.Context
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu struct {
		sync.Mutex
		to    map[uint64]*link
		known map[uint64]string // where those are that have called, and that the log does not know yet
	}
}

// link is the way to one member. Its lanes are connections of their own, so that a heartbeat does not wait behind an entry of megabytes: a member that is
// slow to take that would miss its primary.
type link struct {
	urgent, bulk *lane
}

// of is the lane for a message. What appends keeps its order, entries or not; all else may overtake it.
func (k *link) of(m *pb.Message) *lane {
	if m.GetType() == pb.MsgApp {
		return k.bulk
	}
	return k.urgent
}

// lane is a connection to a member and what waits for it.
type lane struct {
	links *links
	id    uint64 // of the member
	wake  chan struct{}

	mu struct {
		sync.Mutex
		messages []*pb.Message
		bytes    int
		time     toldTime
		hasTime  bool
		said     *pb.Message // the last acknowledgement; nil: none, or it may have been lost
	}
}

func newLinks(m *member) *links {
	l := &links{member: m}
	l.ctx, l.cancel = context.WithCancel(m.ctx)
	l.mu.to, l.mu.known = map[uint64]*link{}, map[uint64]string{}
	return l
}

func (l *links) stop() {
	l.cancel()
	l.ended.Wait()
}

// meet takes note of where a member is that has called.
func (l *links) meet(id uint64, host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mu.known) < maxLinks || l.mu.known[id] != "" {
		l.mu.known[id] = host
	}
}

// hostOf is where a member is; "" where nobody knows.
func (l *links) hostOf(id uint64) string {
	if p, ok := l.member.log.Status().Peers.ByID(id); ok {
		return p.Host
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.known[id]
}

// send implements raftlog.Options.Send.
func (l *links) send(messages []*pb.Message) {
	for _, m := range messages {
		if m.GetType() == pb.MsgSnap {
			l.ended.Go(func() { l.sendSnapshot(m) })
			continue
		}
		if k := l.link(m.GetTo()); k != nil {
			k.of(m).add(m)
		}
	}
}

// tellTime tells all members the primary's time.
func (l *links) tellTime(number uint64, millis int64) {
	for _, p := range l.member.log.Status().Peers {
		if p.ID == l.member.disk.ID() {
			continue
		}
		if k := l.link(p.ID); k != nil {
			k.urgent.tell(toldTime{number, millis})
		}
	}
}

func (l *links) link(id uint64) *link {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.mu.to[id]; k != nil {
		return k
	}
	if len(l.mu.to) >= maxLinks || l.ctx.Err() != nil {
		return nil
	}
	k := &link{urgent: l.newLane(id), bulk: l.newLane(id)}
	l.mu.to[id] = k
	return k
}

func (l *links) newLane(id uint64) *lane {
	k := &lane{links: l, id: id, wake: make(chan struct{}, 1)}
	l.ended.Go(k.run)
	return k
}

// add has a message be sent. An acknowledgement that repeats what was said goes with what is sent next, an answer to a heartbeat at the latest: raft
// answers all that a primary sends, also what only tells how far the log is committed.
func (k *lane) add(m *pb.Message) {
	if !k.isRepeated(m) {
		k.awake()
	}
}

// isRepeated has a message wait, and says whether it only repeats what was said.
func (k *lane) isRepeated(m *pb.Message) bool {
	size := proto.Size(m)
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(k.mu.messages)
	switch {
	case n > 0 && hasMelted(&k.mu.messages[n-1], m):
	case n < maxLaneMessages && (k.mu.bytes == 0 || k.mu.bytes+size <= maxLaneBytes):
		k.mu.messages = append(k.mu.messages, m)
	default:
		return false // it is lost
	}
	k.mu.bytes += size
	if includes(k.mu.said, m) {
		return true
	}
	if isAcknowledgement(m) {
		k.mu.said = m
	}
	return false
}

// hasMelted has what is still to be sent say what comes after it, too, where one of the two only tells how far the log is committed, or the later one
// acknowledges what the other does, and perhaps more: it is one less to be sent, heard, and answered.
func hasMelted(waiting **pb.Message, m *pb.Message) bool {
	w := *waiting
	if includes(m, w) {
		*waiting = m
		return true
	}
	if w.GetType() != pb.MsgApp || m.GetType() != pb.MsgApp || w.GetTerm() != m.GetTerm() || m.GetCommit() < w.GetCommit() {
		return false
	}
	switch {
	case len(w.GetEntries()) == 0 && m.GetIndex() == w.GetIndex():
		*waiting = m
		return true
	case len(m.GetEntries()) == 0 && m.GetIndex() == w.GetIndex()+uint64(len(w.GetEntries())):
		w.Commit = m.Commit
		return true
	}
	return false
}

func isAcknowledgement(m *pb.Message) bool { return m.GetType() == pb.MsgAppResp && !m.GetReject() }

// includes says whether an acknowledgement says all that another one does.
func includes(m, other *pb.Message) bool {
	return isAcknowledgement(m) && isAcknowledgement(other) && m.GetTerm() == other.GetTerm() && m.GetIndex() >= other.GetIndex()
}

// tell has the primary's time go with what is sent next.
func (k *lane) tell(t toldTime) {
	k.mu.Lock()
	k.mu.time, k.mu.hasTime = t, true
	k.mu.Unlock()
	k.awake()
}

func (k *lane) awake() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// run sends what is to be sent.
func (k *lane) run() {
	var conn *line
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	for {
		select {
		case <-k.wake:
		case <-k.links.ctx.Done():
			return
		}
		k.mu.Lock()
		messages, at, hasTime := k.mu.messages, k.mu.time, k.mu.hasTime
		k.mu.messages, k.mu.bytes, k.mu.hasTime = nil, 0, false
		k.mu.Unlock()
		if len(messages) == 0 && !hasTime {
			continue
		}
		var err error
		if conn == nil {
			conn, err = k.dial()
		} else if conn.isSilent(k.now()) {
			err = errSilent
		}
		if err == nil {
			err = k.write(conn, messages, at, hasTime)
		}
		if err == nil {
			continue
		}
		if conn != nil {
			_ = conn.Close()
			conn = nil
		}
		k.lost()
		k.links.member.unreachable(k.id)
		if clock.Wait(k.links.ctx, k.links.member.group.o.Wall, redial) != nil {
			return
		}
	}
}

// lost takes note that what was sent may not have come.
func (k *lane) lost() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.said = nil
}

var errUnknownMember = errors.New("nobody knows where the member is")

func (k *lane) dial() (*line, error) {
	host := k.links.hostOf(k.id)
	if host == "" {
		return nil, errUnknownMember
	}
	conn, err := peer.Dial(k.links.ctx, host, k.links.member.group.o.Peers())
	if err != nil {
		return nil, err
	}
	return &line{Conn: conn}, nil
}

func (k *lane) now() time.Duration { return clock.Monotonic(k.links.member.group.o.Wall) }

// line is a connection that a lane sends on. Nothing tells of a network that lets nothing through: what is sent waits, and is tried again less and less often.
// So after some minutes without a network it would take up to two more until anything arrived. The other side is asked for an answer now and then, and a line
// on which none comes is given up for a new one.
type line struct {
	*peer.Conn
	asked time.Duration // when an answer was asked for last
	waits atomic.Bool   // it has not come yet
}

// answerEvery is how often an answer is asked for, and answerTime how long it may take.
const (
	answerEvery = time.Second
	answerTime  = 5 * time.Second
)

var errSilent = errors.New("the member does not answer")

func (c *line) isSilent(now time.Duration) bool { return c.waits.Load() && now-c.asked >= answerTime }

// post sends a letter, for which an answer is asked where that is due.
func (c *line) post(letter bson.Doc, now time.Duration) (asked bool, err error) {
	if c.waits.Load() || now-c.asked < answerEvery && c.asked != 0 {
		return false, c.Send(letter)
	}
	c.asked = now
	c.waits.Store(true)
	return true, c.Ask(letter)
}

// await takes note of the answer that has been asked for.
func (c *line) await() {
	if c.AwaitReply() == nil { // otherwise the line is silent
		c.waits.Store(false)
	}
}

// write sends messages in letters: small ones together, a large one in several of its own, so that what has come is answered before all has.
func (k *lane) write(conn *line, messages []*pb.Message, at toldTime, hasTime bool) error {
	var data []byte
	for i, m := range messages {
		size := proto.Size(m)
		if len(data) > 0 && len(data)+size > letterBytes {
			if err := k.post(conn, data, toldTime{}, false); err != nil {
				return err
			}
			data = data[:0]
		}
		var err error
		data = slices.Grow(data, binary.MaxVarintLen64+size)
		data = binary.AppendUvarint(data, uint64(size))
		if data, err = (proto.MarshalOptions{UseCachedSize: true}).MarshalAppend(data, m); err != nil {
			panic(err) // of what raft has made
		}
		messages[i] = nil
	}
	return k.post(conn, data, at, hasTime)
}

// post sends one letter, in several parts where it is large.
func (k *lane) post(conn *line, data []byte, at toldTime, hasTime bool) error {
	for first := true; first || len(data) > 0; first = false {
		n := min(len(data), letterBytes)
		b := k.links.member.newLetter(letterMessages).Binary("data", 0, data[:n]).Bool("more", n < len(data))
		if data = data[n:]; len(data) == 0 && hasTime {
			b.Int64("number", int64(at.number)).Int64("time", at.millis)
		}
		asked, err := conn.post(b.Doc(), k.now())
		if err != nil {
			return err
		}
		if asked {
			k.links.ended.Go(conn.await)
		}
	}
	return nil
}

// unreachable says that a message was lost.
func (m *member) unreachable(id uint64) {
	_ = m.log.Do(m.ctx, func(c *raftlog.Core) error { c.Unreachable(id); return nil })
}

// The kinds of letters between members.
const (
	letterName          = "ebbMember"
	letterMessages      = "messages"
	letterSnapshotBegin = "snapshotBegin"
	letterSnapshotPart  = "snapshotPart"
	letterSnapshotEnd   = "snapshotEnd"
	letterJoin          = "join"
	letterReserve       = "reserve"
	letterCheck         = "check"
	letterPosition      = "position"
	letterStepUp        = "stepUp"
)

// letterVersion is that of the form that letters have, what is in the log included, and oldestLetters the oldest that is understood. While a set is
// upgraded member by member both sides of a step speak the older one; so a version that changes the form writes the one before until all can read it.
const (
	letterVersion = 1
	oldestLetters = 1
)

// newLetter begins a letter of this member.
func (m *member) newLetter(kind string) *bson.Builder {
	return m.group.newLetter(kind, m.disk.SetID(), m.disk.ID()).Int64("process", m.twins.own)
}

func (g *Group) newLetter(kind string, set [12]byte, from uint64) *bson.Builder {
	return bson.Build().String(letterName, kind).String("$db", "admin").Int32("version", letterVersion).ObjectID("set", set).Int64("from", int64(from)).
		String("host", g.o.Host)
}
