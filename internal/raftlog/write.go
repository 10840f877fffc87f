package raftlog

import (
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Write is what is to be brought to a member's disk: Disk.Put does, in the order in which a Core has given them out, and Core.Written is told then. So
// who speaks with the other members waits for no disk. A member whose disk takes long is slow, and not gone.
type Write struct {
	removed [][2][]byte // from the first key of each to before the second
	set     [][2][]byte
	entries []*pb.Entry
	sync    bool

	hard     *pb.HardState // what raft has then; nil: as before
	snapshot *pb.Snapshot  // whose place the log begins at; nil most often
	answers  []*pb.Message // what may be said then, to others and to this member itself
}

// bytes are those of its entries.
func (w *Write) bytes() (n int) {
	for _, e := range w.entries {
		n += len(e.GetData())
	}
	return n
}

// Put brings writes to the disk, in one piece; where one of them has to be, all are on stable storage when it returns. It may be called beside
// whatever else uses the Disk, by one goroutine. It does not return any more where the disk is full and was abandoned.
func (d *Disk) Put(writes []*Write) error {
	b := d.db.NewBatch()
	sync := false
	for _, w := range writes {
		for _, r := range w.removed {
			must(b.DeleteRange(r[0], r[1], nil))
		}
		for _, s := range w.set {
			must(b.Set(s[0], s[1], nil))
		}
		for _, e := range w.entries {
			must(putEntry(b, e))
		}
		sync = sync || w.sync
	}
	if err := d.db.Apply(b, d.durability(sync)); err != nil { // which waits for room on a full disk, however long that takes
		return fmt.Errorf("raftlog: write the log: %w", err)
	}
	return b.Close()
}

func putEntry(b *pebble.Batch, e *pb.Entry) error {
	size := proto.Size(e)
	o := b.SetDeferred(entryKeyBytes, size)
	putEntryKey(o.Key, e.GetIndex())
	value, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(o.Value[:0], e)
	if err != nil || len(value) != size {
		return fmt.Errorf("raftlog: encode entry %d: %d bytes of %d (%w)", e.GetIndex(), len(value), size, err)
	}
	return o.Finish()
}

// Writing is how many writes have been given out that are not on the disk yet, and how many bytes their entries have.
func (c *Core) Writing() (writes, bytes int) { return c.writing, c.writingBytes }

// Writes are those to do next.
func (c *Core) Writes() []*Write {
	writes := c.writes
	c.writes = nil
	return writes
}

func (c *Core) giveOut(w *Write) {
	c.writing++
	c.writingBytes += w.bytes()
	c.writes = append(c.writes, w)
}

// append gives out what raft says is to be kept, or does without where that can wait. What may be said at once is returned.
func (c *Core) append(m *pb.Message) (said []*pb.Message, err error) {
	w := &Write{entries: m.GetEntries(), snapshot: m.GetSnapshot(), answers: m.GetResponses(), sync: len(m.GetEntries()) > 0}
	if m.Term != nil {
		w.hard = &pb.HardState{Term: m.Term, Vote: m.Vote, Commit: m.Commit}
		w.sync = w.sync || w.hard.GetTerm() != c.hard.GetTerm() || w.hard.GetVote() != c.hard.GetVote()
		c.hard, c.isHardLate = w.hard, true
	}
	if !w.sync && w.snapshot == nil && c.writing == 0 {
		return c.note(w), nil // how far the log is committed is kept together with what comes next
	}
	if w.snapshot != nil {
		err = c.reset(w)
	}
	if len(w.entries) > 0 {
		if first := w.entries[0].GetIndex(); first <= c.end {
			w.removed = append(w.removed, [2][]byte{entryKey(first), entryKey(c.end + 1)})
		}
		c.end = w.entries[len(w.entries)-1].GetIndex()
	}
	c.keepHard(w)
	c.giveOut(w)
	return nil, err
}

// keepHard has a write keep what raft has, where that is younger than what is on its way to the disk.
func (c *Core) keepHard(w *Write) {
	if c.isHardLate {
		w.set = append(w.set, [2][]byte{keyHard, marshal(c.hard)})
		c.isHardLate = false
	}
}

// reset has the log begin behind a snapshot, which is about to take the place of the store.
func (c *Core) reset(w *Write) error {
	m := w.snapshot.GetMetadata()
	confIndex, peerIndex, peers, err := readSnapshot(w.snapshot.GetData())
	if err != nil {
		return err
	}
	if w.hard == nil {
		w.hard = proto.CloneOf(c.hard)
	}
	if w.hard.GetCommit() < m.GetIndex() {
		w.hard.Commit = proto.Uint64(m.GetIndex())
	}
	c.hard, c.isHardLate = w.hard, true
	c.resets++
	c.end = m.GetIndex()
	w.sync = true
	w.removed = append(w.removed, [2][]byte{{entryPrefix}, {entryPrefix + 1}})
	w.set = append(w.set,
		[2][]byte{keyBase, raftPosition{m.GetIndex(), m.GetTerm()}.encode()},
		[2][]byte{keyConf, encodeConf(confIndex, m.GetConfState())},
		[2][]byte{keyPeers, encodePeers(peerIndex, peers)},
		[2][]byte{keyApplied, binary.BigEndian.AppendUint64(nil, m.GetIndex())},
		[2][]byte{keyInstall, {1}})
	return nil
}

// Written takes note that a write is on the disk. It returns what may be said to other members now.
func (c *Core) Written(w *Write) (said []*pb.Message, err error) {
	c.writing--
	c.writingBytes -= w.bytes()
	c.stalled = 0
	said = c.note(w)
	if c.resigns && c.writing == 0 {
		err = c.start()
	}
	return said, err
}

func (c *Core) note(w *Write) (said []*pb.Message) {
	d := c.disk
	if w.hard != nil {
		d.hard = w.hard
	}
	if s := w.snapshot; s != nil {
		c.resets--
		m := s.GetMetadata()
		d.confIndex, d.peerIndex, d.peers, _ = readSnapshot(s.GetData()) // which was read before
		d.base = raftPosition{m.GetIndex(), m.GetTerm()}
		d.last, d.applied, d.tail, d.tailBytes = d.base.index, d.base.index, nil, 0
		d.conf, d.install = proto.CloneOf(m.GetConfState()), true
		c.applied, c.committed = d.base, max(c.committed, d.base.index)
	}
	if len(w.entries) > 0 {
		d.hold(w.entries)
	}
	for _, m := range w.answers {
		if m.GetTo() == d.id {
			_ = c.node.Step(m)
		} else {
			said = append(said, m)
		}
	}
	return said
}

// saveConf keeps the ConfState that the entry at index has made.
func (c *Core) saveConf(index uint64, conf *pb.ConfState) {
	c.disk.conf, c.disk.confIndex = conf, index
	c.giveOut(&Write{set: [][2][]byte{{keyConf, encodeConf(index, conf)}}, sync: true})
}

// savePeers keeps the Peers that the entry at index has brought.
func (c *Core) savePeers(index uint64, p Peers) {
	c.disk.peers, c.disk.peerIndex = p, index
	c.giveOut(&Write{set: [][2][]byte{{keyPeers, encodePeers(index, p)}}, sync: true})
}

// Installs says whether the log begins, or is about to begin, behind a snapshot that is not in the place of the store yet.
func (c *Core) Installs() bool { return c.disk.install || c.resets > 0 }

// Installed takes note that the snapshot that the log begins behind is in the place of the store, which has the Commit with that number, unless another
// one has come.
func (c *Core) Installed(index, number uint64) {
	if c.disk.base.index != index || c.resets > 0 {
		return
	}
	c.disk.install, c.disk.arrived = false, number
	c.giveOut(&Write{set: [][2][]byte{{keyArrived, binary.BigEndian.AppendUint64(nil, number)}}, removed: [][2][]byte{{keyInstall, append(keyInstall[:len(keyInstall):len(keyInstall)], 0)}}})
}

// saveApplied takes note of up to where the store has everything on stable storage, and cuts the log before keep.
func (c *Core) saveApplied(applied, keep uint64) error {
	d := c.disk
	if c.resets > 0 {
		return nil // another store comes
	}
	w := &Write{}
	d.applied = max(d.applied, applied)
	w.set = append(w.set, [2][]byte{keyApplied, binary.BigEndian.AppendUint64(nil, d.applied)})
	c.isHardLate = c.isHardLate || !raft.IsEmptyHardState(c.hard)
	c.keepHard(w) // nothing is applied on the disk that is not committed there
	if cut := min(keep, d.applied); cut > d.base.index+1 {
		term, err := d.Term(cut - 1)
		if err != nil {
			return err
		}
		w.removed = append(w.removed, [2][]byte{entryKey(d.base.index + 1), entryKey(cut)})
		d.base = raftPosition{cut - 1, term}
		w.set = append(w.set, [2][]byte{keyBase, d.base.encode()})
		n := 0
		for n < len(d.tail) && d.tail[n].GetIndex() < cut {
			d.tailBytes -= len(d.tail[n].GetData())
			n++
		}
		d.tail = append([]*pb.Entry{}, d.tail[n:]...)
	}
	c.giveOut(w)
	return nil
}
