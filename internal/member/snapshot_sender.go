package member

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/peer"
	"github.com/ebbdb/ebb/internal/raftlog"
	"github.com/ebbdb/ebb/internal/throttle"
)

// sendSnapshot sends the data of the store and then the message that it belongs to.
func (l *links) sendSnapshot(message *pb.Message) {
	err := l.trySnapshot(message)
	if err != nil && l.ctx.Err() == nil {
		l.member.group.o.Log.For("REPL").Warn("A snapshot could not be sent", "to", l.hostOf(message.GetTo()), "error", err.Error())
		if mongoerr.Is(err, mongoerr.OutOfDiskSpace) {
			_ = clock.Wait(l.ctx, l.member.group.o.Wall, fullRest)
		}
	}
	_ = l.member.log.Do(l.ctx, func(c *raftlog.Core) error { c.SnapshotSent(message.GetTo(), err == nil); return nil })
}

// snapshotRest is how long the sender of a snapshot rests after each part of it, which took as long as both sides' disks and the network needed for that:
// others use them, too.
var snapshotRest = throttle.Rest{Factor: 2, Longest: 100 * time.Millisecond}

// A snapshot goes on where it was when the network was interrupted: a part is sent again until it is answered, and the receiver knows by its number
// whether it has it. A receiver that was restarted begins anew.
const (
	// partTime is how long a part may take, and resumeTime for how long one is sent again and again, resumeEvery with what rest.
	partTime    = 30 * time.Second
	resumeTime  = 5 * time.Minute
	resumeEvery = time.Second
)

// fullRest is how long after a receiver has had no room the next snapshot is sent: all of it, and everybody's disk and network have their part in it.
const fullRest = 10 * time.Second

// snapshotSender is a snapshot on its way to another member.
type snapshotSender struct {
	links *links
	ctx   context.Context // ends when the store is closed
	to    uint64
	conn  *peer.Conn // nil: it has to be called anew
	part  int64      // the number of the next part
	pace  *throttle.Throttle
}

func (l *links) trySnapshot(message *pb.Message) error {
	m := l.member
	of := m.outgoing.Enter(l.ctx)
	if of == nil {
		return context.Cause(l.ctx)
	}
	defer of.Leave()
	ctx, cancel := both(l.ctx, of.ctx)
	defer cancel()
	s := &snapshotSender{links: l, ctx: ctx, to: message.GetTo(), pace: throttle.New(snapshotRest)}
	defer s.hangUp()
	if err := s.send(m.newLetter(letterSnapshotBegin).Doc()); err != nil { // once: a second one would end the first
		return err
	}
	m.group.o.Log.For("REPL").Info("A snapshot is sent to a member that is too far behind", "to", l.hostOf(s.to))
	if err := s.sendStore(m.Engine()); err != nil {
		return err
	}
	b, err := proto.Marshal(message)
	if err != nil {
		return err
	}
	return s.send(m.newLetter(letterSnapshotEnd).Binary("data", 0, b).Doc())
}

// sendStore sends all pairs of a store.
func (s *snapshotSender) sendStore(engine kv.Engine) (err error) {
	snapshot, err := engine.Snapshot()
	if err != nil {
		return err
	}
	defer snapshot.Close()
	it, err := snapshot.NewIter(kv.IterOptions{})
	if err != nil {
		return err
	}
	defer it.Close()
	enough := s.links.member.group.o.Limits.PartBytes
	chunk := make([]byte, 0, enough+enough/4)
	for it.Next() {
		value, err := it.Value()
		if err != nil {
			return err
		}
		if key := it.Key(); len(chunk) > 0 && len(chunk)+len(key)+len(value) > maxChunkBytes {
			if err := s.sendPart(chunk); err != nil {
				return err
			}
			chunk = chunk[:0]
		}
		if chunk = appendPair(chunk, it.Key(), value); len(chunk) >= enough {
			if err := s.sendPart(chunk); err != nil {
				return err
			}
			chunk = chunk[:0]
		}
	}
	if err := it.Err(); err != nil || len(chunk) == 0 {
		return err
	}
	return s.sendPart(chunk)
}

// sendPart sends a part until the receiver has it, and rests.
func (s *snapshotSender) sendPart(chunk []byte) error {
	wall := s.links.member.group.o.Wall
	letter := s.links.member.newLetter(letterSnapshotPart).Int64("part", s.part).Binary("data", 0, chunk).Doc()
	for begun := clock.Monotonic(wall); ; {
		err := s.send(letter)
		if err == nil {
			break
		}
		_, answered := errors.AsType[*mongoerr.Error](err)
		if answered || s.ctx.Err() != nil || clock.Monotonic(wall)-begun > resumeTime {
			return err
		}
		if err := clock.Wait(s.ctx, wall, resumeEvery); err != nil {
			return context.Cause(s.ctx)
		}
	}
	s.part++
	if !s.pace.Step(s.ctx.Done()) {
		return context.Cause(s.ctx)
	}
	return nil
}

// send sends a letter once.
func (s *snapshotSender) send(letter bson.Doc) (err error) {
	ctx, cancel := clock.WithTimeout(s.ctx, s.links.member.group.o.Wall, partTime)
	defer cancel()
	if s.conn == nil {
		host := s.links.hostOf(s.to)
		if host == "" {
			return errUnknownMember
		}
		if s.conn, err = peer.Dial(ctx, host, s.links.member.group.o.Peers()); err != nil {
			return err
		}
	}
	if _, err = s.conn.Call(ctx, letter); err != nil {
		s.hangUp()
	}
	return err
}

func (s *snapshotSender) hangUp() {
	if s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
}
