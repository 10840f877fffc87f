package member

import (
	"context"
	"encoding/binary"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/peer"
	"github.com/ebbdb/ebb/internal/raftlog"
)

// Letters are what members of a replica set say to one another: commands called ebbMember, over the same port as any client's. Where clients log
// in members show that they are such, and nobody else is heard. They go around the database, which may be about to give way to another
// just because of what they say.

// IsLetter says whether a command is one.
func IsLetter(body bson.Doc) bool { return body.FirstKey() == letterName }

// Caller is what a Group keeps of a connection.
type Caller struct {
	// admitted says that it has shown to be another member of the replica set.
	admitted bool
	// letter is a message between members that has not come as a whole.
	letter []byte
	// link is the member whose link it is; 0: it is none. process is who speaks as that.
	link    uint64
	process int64
}

// maxLettersBytes is how large what has not come as a whole may be on all connections together.
const maxLettersBytes = 2 * maxLetterBytes

// grow makes room for so many bytes more of a letter.
func (g *Group) grow(k *Caller, data []byte) error {
	if len(k.letter)+len(data) > maxLetterBytes {
		return mongoerr.New(mongoerr.ExceededMemoryLimit, "the letter is larger than %d bytes", maxLetterBytes)
	}
	if g.letters.Add(int64(len(data))) > maxLettersBytes {
		g.letters.Add(-int64(len(data)))
		return mongoerr.New(mongoerr.ExceededMemoryLimit, "the letters that have not come as a whole are larger than %d bytes together", maxLettersBytes)
	}
	k.letter = append(k.letter, data...)
	return nil
}

// drop gives back what a letter holds.
func (g *Group) drop(k *Caller) {
	g.letters.Add(-int64(len(k.letter)))
	k.letter = nil
}

// Forget is called when a connection ends.
func (g *Group) Forget(k *Caller) {
	g.drop(k)
	if m := g.running(); m != nil && k.link != 0 {
		m.twins.leave(k.link, k.process)
		m.suspect(k.link)
	}
}

// Hear answers a letter. admit refuses who has not shown to be a member; once let in a Caller may stay.
func (g *Group) Hear(ctx context.Context, k *Caller, letter bson.Doc, admit func() error) (bson.Doc, error) {
	reply, err := g.read(ctx, k, letter, admit)
	if err != nil {
		g.drop(k)
	}
	return reply, err
}

func (g *Group) read(ctx context.Context, k *Caller, letter bson.Doc, admit func() error) (bson.Doc, error) {
	if !k.admitted {
		if err := admit(); err != nil {
			return nil, err
		}
		k.admitted = true
	}
	kind, set, from, host := letter.Lookup(letterName), letter.Lookup("set"), letter.Lookup("from"), letter.Lookup("host")
	if kind.Type != bson.TypeString || set.Type != bson.TypeObjectID || from.Type != bson.TypeInt64 || host.Type != bson.TypeString || len(host.Str()) > 1<<10 {
		return nil, mongoerr.New(mongoerr.FailedToParse, "the letter is broken")
	}
	if v := letter.Lookup("version"); !v.IsNumber() || v.TruncInt64() < oldestLetters || v.TruncInt64() > letterVersion {
		return nil, mongoerr.New(mongoerr.IncompatibleServerVersion, "the member at %s speaks version %s of what members say to one another, and this one versions %d to %d: a set is "+
			"upgraded member by member, one version at a time", host.Str(), v, oldestLetters, letterVersion)
	}
	switch kind.Str() {
	case letterCheck, letterReserve, letterJoin:
		v, err := readInvitation(kind.Str(), set.ObjectID(), letter)
		if err != nil {
			return nil, err
		}
		return g.join(ctx, v)
	}
	m := g.running()
	if m == nil || m.disk.SetID() != set.ObjectID() {
		return nil, g.notOf(set.ObjectID())
	}
	id, process := uint64(from.Int64()), int64(0)
	if v := letter.Lookup("process"); v.Type == bson.TypeInt64 {
		process = v.Int64()
	}
	if err := m.hearAs(k, id, process, host.Str(), kind.Str() == letterMessages); err != nil {
		return nil, err
	}
	data := letter.Lookup("data")
	var bytes []byte
	if data.Type == bson.TypeBinary {
		_, bytes = data.Binary()
	}
	switch kind.Str() {
	case letterMessages:
		m.links.meet(id, string([]byte(host.Str())))
		k.link = id
		return bson.EmptyDoc, m.receive(k, bytes, letter)
	case letterSnapshotBegin:
		return bson.EmptyDoc, m.beginSnapshot(id)
	case letterSnapshotPart:
		part, err := partNumber(letter)
		if err != nil {
			return nil, err
		}
		return bson.EmptyDoc, m.addToSnapshot(ctx, id, part, append([]byte{}, bytes...))
	case letterSnapshotEnd:
		message := &pb.Message{}
		if err := proto.Unmarshal(bytes, message); err != nil || message.GetType() != pb.MsgSnap {
			return nil, errBrokenLetter
		}
		return bson.EmptyDoc, m.endSnapshot(id, message)
	case letterPosition:
		return m.position(id), nil
	case letterStepUp:
		return bson.EmptyDoc, m.handOver(ctx, transferTime, false, func(p raftlog.Peer) bool { return p.ID == id })
	}
	return nil, mongoerr.New(mongoerr.CommandNotFound, "no such letter: '%s'", kind.Str())
}

// notOf is what a member of a set is told by a server that is none: which set that is of, where it is of one.
func (g *Group) notOf(set [12]byte) error {
	own := noID
	if d := g.o.Server.TryEnter(); d != nil {
		if v := d.View(); v.Config != nil {
			own = v.Config.Settings.ReplicaSetID
		}
		d.Leave()
	}
	if own == noID || own == set {
		return errNoMember
	}
	return mongoerr.New(errNoMember.Code, "replica set IDs do not match, ours: %x; remote node's: %x", set, own)
}

var errNoMember = mongoerr.New(mongoerr.InvalidReplicaSetConfig, "this server is no member of that replica set")

var errBrokenLetter = mongoerr.New(mongoerr.FailedToParse, "the letter is broken")

// receive takes messages of the log, and the primary's time.
func (m *member) receive(k *Caller, data []byte, body bson.Doc) error {
	whole, more := data, body.Lookup("more").Truthy()
	if more || len(k.letter) > 0 {
		if err := m.group.grow(k, data); err != nil {
			return err
		}
		if more {
			return nil
		}
		defer m.group.drop(k)
		whole = k.letter
	}
	for len(whole) > 0 {
		n, length := binary.Uvarint(whole)
		if length <= 0 || n > uint64(len(whole)-length) {
			return errBrokenLetter
		}
		message := &pb.Message{}
		if err := proto.Unmarshal(whole[length:length+int(n)], message); err != nil { // which copies: the log has its own of it
			return errBrokenLetter
		}
		whole = whole[length+int(n):]
		if message.GetType() == pb.MsgSnap { // which comes with its data
			return errBrokenLetter
		}
		m.log.Receive(message)
	}
	if number, at := body.Lookup("number"), body.Lookup("time"); number.Type == bson.TypeInt64 && at.Type == bson.TypeInt64 {
		m.time.hear(uint64(number.Int64()), at.Int64())
		m.HeardPrimary()
	}
	return nil
}

// position is how far the member is, for the one with an id.
func (m *member) position(asker uint64) bson.Doc {
	role := m.log.Role()
	b := bson.Build().Int64("id", int64(m.disk.ID())).Int64("term", int64(role.Term)).Bool("leads", role.Leads).Int64("leader", int64(role.Leader))
	number, millis := m.Engine().Last()
	b.Int64("number", int64(number)).Int64("time", millis).Int64("now", m.time.now()).
		Bool("unfit", m.rests()).Int64("stalled", m.group.o.Disk.Stalled().Milliseconds())
	if d := m.TryEnter(); d != nil {
		defer d.Leave()
		b.Int64("logged", int64(d.LastLogged()))
		if v := d.View(); v.Config != nil {
			b.Int64("version", v.Config.Version).Int32("state", int32(v.State)).Int64("electedAt", v.ElectedAt)
		}
	}
	_, known := m.log.Status().Peers.ByID(asker) // of the version, or a later one
	b.Bool("known", known)
	return b.Doc()
}

// callTime is how long a member may take to answer.
const callTime = 5 * time.Second

// call asks another server something, once.
func (g *Group) call(ctx context.Context, host string, letter bson.Doc) (bson.Doc, error) {
	reply, _, err := g.timed(ctx, host, letter)
	return reply, err
}

// timed does what call does, and tells how long the answer took once there was a connection.
func (g *Group) timed(ctx context.Context, host string, letter bson.Doc) (reply bson.Doc, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	conn, err := peer.Dial(ctx, host, g.o.Peers())
	if err != nil {
		return nil, 0, err
	}
	defer conn.Close()
	began := clock.Monotonic(g.o.Wall)
	reply, err = conn.Call(ctx, letter)
	return reply, clock.Monotonic(g.o.Wall) - began, err
}
