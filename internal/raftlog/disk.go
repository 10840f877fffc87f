package raftlog

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/ebbdb/ebb/internal/kv/inspect"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
)

// The keys of a Disk. What a log of another format would hold is refused.
var (
	keyFormat   = []byte("format")
	keyIdentity = []byte("identity") // the member's id, and that of its set
	keyLog      = []byte("log")      // the log's own id, where it has one
	keyHard     = []byte("hard")     // raft's HardState
	keyConf     = []byte("conf")     // the index of the entry that made it, and raft's ConfState
	keyPeers    = []byte("peers")    // the index of the entry, and the Peers
	keyBase     = []byte("base")     // index and term of the entry before the first that the log has
	keyApplied  = []byte("applied")  // up to where the store has everything on stable storage
	keyInstall  = []byte("install")  // a snapshot is to take the place of the store
	keyArrived  = []byte("arrived")  // the number of the last Commit that the store had when it came as a snapshot
	entryPrefix = byte('e')
)

const diskFormat = 1

// tailEntries and tailBytes bound what of the log's end is kept in memory.
const (
	tailEntries = 1 << 14
	tailBytes   = 32 << 20
)

// Disk is what a member keeps. It is a raft.Storage, for one goroutine, which sees what is on stable storage; another one brings it there (Put).
type Disk struct {
	db    *pebble.DB
	files *patientDisk
	guard *pebblekv.Guard

	id    uint64
	setID [12]byte
	logID [12]byte

	hard      *pb.HardState
	conf      *pb.ConfState
	confIndex uint64
	peers     Peers
	peerIndex uint64
	base      raftPosition
	last      uint64
	applied   uint64 // see keyApplied
	install   bool
	arrived   uint64 // see keyArrived; anyNumber where nobody has looked yet
	forgetful bool   // a fault that tests plant: nothing is synced

	// tail is the end of the log, up to last.
	tail      []*pb.Entry
	tailBytes int
	// snapshot says what a snapshot of the store as it is now would be of.
	snapshot func() raftPosition
}

type raftPosition struct{ index, term uint64 }

// OpenDisk opens what a member keeps in dir, or makes it where there is nothing. What is damaged is refused: Pebble takes what it cannot read for never
// written, and what this member has acknowledged would be gone where it was counted on.
func OpenDisk(dir string, fs vfs.FS, log *slog.Logger) (*Disk, error) {
	if log == nil {
		log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	guard, err := pebblekv.NewGuard(dir, fs, log)
	if err != nil {
		return nil, fmt.Errorf("raftlog: open %s: %w%s", dir, err, whatToDo(err))
	}
	files := newPatientDisk(guard.Disk(), log)
	db, err := guard.Open(&pebble.Options{FS: files, Logger: pebbleLog{log}, FormatMajorVersion: pebble.FormatValueSeparation,
		MemTableSize: 16 << 20, MemTableStopWritesThreshold: 4})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("raftlog: open %s: %w", dir, err), guard.Close())
	}
	d := &Disk{db: db, files: files, guard: guard, hard: &pb.HardState{}, conf: &pb.ConfState{}}
	if err := d.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("raftlog: open %s: %w", dir, err), db.Close(), guard.Close())
	}
	files.open.Store(true)
	return d, nil
}

// startAnew says what becomes of a member whose log is not what it was: what it had promised by it counts no more.
const startAnew = "As long as a majority of the others is sound, remove this member from the set, empty its data directory, and add it again; else copy what can be read with 'ebb salvage'"

func whatToDo(err error) string {
	var damaged *inspect.Error
	if errors.As(err, &damaged) {
		return ". " + startAnew
	}
	return ""
}

type pebbleLog struct{ log *slog.Logger }

func (l pebbleLog) Infof(string, ...any)              {}
func (l pebbleLog) Errorf(format string, args ...any) { l.log.Error(fmt.Sprintf(format, args...)) }
func (l pebbleLog) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (d *Disk) load() error {
	switch format, err := d.get(keyFormat); {
	case err != nil:
		return err
	case format == nil:
		return d.beginEmpty()
	case len(format) != 1 || format[0] != diskFormat:
		return fmt.Errorf("the log has format %x, and this Ebb reads %x", format, diskFormat)
	}
	for _, field := range []struct {
		key  []byte
		read func([]byte) error
	}{
		{keyIdentity, func(b []byte) error {
			if len(b) != 8+12 {
				return errors.New("broken")
			}
			d.id = binary.BigEndian.Uint64(b)
			copy(d.setID[:], b[8:])
			return nil
		}},
		{keyLog, func(b []byte) error {
			if len(b) != len(d.logID) {
				return errors.New("broken")
			}
			copy(d.logID[:], b)
			return nil
		}},
		{keyHard, func(b []byte) error { return proto.Unmarshal(b, d.hard) }},
		{keyConf, func(b []byte) error {
			if len(b) < 8 {
				return errors.New("broken")
			}
			d.confIndex = binary.BigEndian.Uint64(b)
			return proto.Unmarshal(b[8:], d.conf)
		}},
		{keyPeers, func(b []byte) (err error) {
			if len(b) < 8 {
				return errors.New("broken")
			}
			d.peerIndex = binary.BigEndian.Uint64(b)
			d.peers, err = decodePeers(b[8:])
			return err
		}},
		{keyBase, func(b []byte) error {
			if len(b) != 16 {
				return errors.New("broken")
			}
			d.base = raftPosition{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
			return nil
		}},
		{keyApplied, func(b []byte) error {
			if len(b) != 8 {
				return errors.New("broken")
			}
			d.applied = binary.BigEndian.Uint64(b)
			return nil
		}},
		{keyInstall, func(b []byte) error { d.install = len(b) > 0; return nil }},
		{keyArrived, func(b []byte) error {
			if len(b) != 8 {
				return errors.New("broken")
			}
			d.arrived = binary.BigEndian.Uint64(b)
			return nil
		}},
	} {
		value, err := d.get(field.key)
		if err == nil && value != nil {
			err = field.read(value)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", field.key, err)
		}
	}
	return d.loadTail()
}

// loadTail reads the end of the log.
func (d *Disk) loadTail() (err error) {
	d.last = d.base.index
	it, err := d.db.NewIter(&pebble.IterOptions{LowerBound: entryKey(d.base.index + 1), UpperBound: []byte{entryPrefix + 1}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if it.Last() {
		d.last = binary.BigEndian.Uint64(it.Key()[1:])
	}
	for ok := it.Valid(); ok; ok = it.Prev() {
		e := &pb.Entry{}
		if err := proto.Unmarshal(it.Value(), e); err != nil {
			return fmt.Errorf("read entry %x: %w", it.Key(), err)
		}
		if d.tailBytes += len(e.GetData()); len(d.tail) >= tailEntries/2 || d.tailBytes > tailBytes/2 {
			break
		}
		d.tail = append(d.tail, e)
	}
	for i, j := 0, len(d.tail)-1; i < j; i, j = i+1, j-1 {
		d.tail[i], d.tail[j] = d.tail[j], d.tail[i]
	}
	return it.Error()
}

// beginEmpty makes a member where there is nothing. A log that has lost what says its format has lost its identity, too, and is no new one.
func (d *Disk) beginEmpty() error {
	it, err := d.db.NewIter(nil)
	if err != nil {
		return err
	}
	some := it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return err
	}
	if some {
		return errors.New("the log has entries, and does not say of which format and whose it is. " + startAnew)
	}
	return d.begin()
}

// begin makes a member that has nothing yet.
func (d *Disk) begin() error {
	var id [8]byte
	_, _ = rand.Read(id[:])
	d.id = binary.BigEndian.Uint64(id[:])&math.MaxInt64 | 1 // not 0, nor what raft uses itself
	b := d.db.NewBatch()
	must(b.Set(keyFormat, []byte{diskFormat}, nil))
	must(b.Set(keyIdentity, append(binary.BigEndian.AppendUint64(nil, d.id), d.setID[:]...), nil))
	return d.commit(b, true)
}

func (d *Disk) get(key []byte) ([]byte, error) {
	value, closer, err := d.db.Get(key)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	value = append([]byte{}, value...)
	return value, closer.Close()
}

func (d *Disk) commit(b *pebble.Batch, sync bool) error {
	done := make(chan error, 1)
	go func() { done <- d.db.Apply(b, d.durability(sync)) }() // which waits for room on a full disk, however long that takes
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("raftlog: write the log: %w", err)
		}
		return b.Close()
	case <-d.files.abandoned:
		return errAbandoned
	}
}

func (d *Disk) durability(sync bool) *pebble.WriteOptions {
	if sync && !d.forgetful {
		return pebble.Sync
	}
	return pebble.NoSync
}

// errAbandoned is what who writes is told where the server ends while the disk is full. Nobody is told of what was to be written.
var errAbandoned = errors.New("raftlog: the disk is full, and nobody waits for room any more")

// IsFull says whether the log cannot be written since the disk is full.
func (d *Disk) IsFull() bool { return d.files.isFull() }

// abandon has nobody wait for room on a full disk any more.
func (d *Disk) abandon() {
	if d.IsFull() {
		close(d.files.abandoned)
	}
}

// must: adding to a batch in memory fails only when the batch is already being committed.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Close closes the files. Where the disk is full nothing more can be done with them, and they are left as they are.
func (d *Disk) Close() error {
	select {
	case <-d.files.abandoned:
		return d.guard.Leave()
	default:
		return errors.Join(d.db.Close(), d.guard.Close())
	}
}

// ID is the member's own; SetID is its set's, zeros as long as it is of none.
func (d *Disk) ID() uint64 { return d.id }

// SetID is that of the set that the member is of.
func (d *Disk) SetID() [12]byte { return d.setID }

// LogID is that of the log itself, which each log draws that begins; zeros where nobody knows. Members of two logs have no entry in common, though they
// be of one set: of one that was restored, or whose majority was lost.
func (d *Disk) LogID() [12]byte { return d.logID }

// IsMember says whether it is of a set.
func (d *Disk) IsMember() bool { return d.setID != [12]byte{} }

// IsEmpty says that nothing of the log has come yet.
func (d *Disk) IsEmpty() bool { return d.last == 0 }

// Peers are the members that the log knows of.
func (d *Disk) Peers() Peers { return d.peers }

// Installs says that a snapshot was about to take the place of the store when the member ended.
func (d *Disk) Installs() bool { return d.install }

// Join has an empty member be of a set from now on: whose log it gets from others.
func (d *Disk) Join(setID, logID [12]byte) error {
	if d.IsMember() {
		return errors.New("raftlog: the member is of a set already")
	}
	d.setID, d.logID = setID, logID
	b := d.db.NewBatch()
	must(b.Set(keyLog, logID[:], nil))
	must(b.Set(keyIdentity, append(binary.BigEndian.AppendUint64(nil, d.id), setID[:]...), nil))
	return d.commit(b, true)
}

// firstIndex is that of the entry that stands for all that a store had before its log began.
const firstIndex = 1

// Begin has an empty member begin the log of a set whose voters are the peers: what its store has is what all of them begin with.
func (d *Disk) Begin(setID, logID [12]byte, peers Peers) error {
	if d.IsMember() {
		return errors.New("raftlog: the member is of a set already")
	}
	d.setID, d.logID, d.peers = setID, logID, peers
	d.base = raftPosition{firstIndex, 1}
	d.last, d.applied = firstIndex, firstIndex
	d.hard = &pb.HardState{Term: proto.Uint64(1), Commit: proto.Uint64(firstIndex)}
	d.conf = &pb.ConfState{}
	for _, p := range peers {
		d.conf.Voters = append(d.conf.Voters, p.ID)
	}
	b := d.db.NewBatch()
	must(b.Set(keyLog, logID[:], nil))
	must(b.Set(keyIdentity, append(binary.BigEndian.AppendUint64(nil, d.id), setID[:]...), nil))
	must(b.Set(keyBase, d.base.encode(), nil))
	must(b.Set(keyHard, marshal(d.hard), nil))
	must(b.Set(keyConf, encodeConf(d.confIndex, d.conf), nil))
	must(b.Set(keyPeers, encodePeers(d.peerIndex, d.peers), nil))
	must(b.Set(keyApplied, binary.BigEndian.AppendUint64(nil, d.applied), nil))
	return d.commit(b, true)
}

func (p raftPosition) encode() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, p.index), p.term)
}

func encodeConf(index uint64, conf *pb.ConfState) []byte {
	return append(binary.BigEndian.AppendUint64(nil, index), marshal(conf)...)
}

func encodePeers(index uint64, p Peers) []byte {
	return p.appendBinary(binary.BigEndian.AppendUint64(nil, index))
}

func marshal(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err) // of what raft has made
	}
	return b
}

const entryKeyBytes = 1 + 8

func entryKey(index uint64) []byte {
	key := make([]byte, entryKeyBytes)
	putEntryKey(key, index)
	return key
}

func putEntryKey(key []byte, index uint64) {
	key[0] = entryPrefix
	binary.BigEndian.PutUint64(key[1:], index)
}

// cutTail removes what the tail has from first on.
func (d *Disk) cutTail(first uint64) {
	for n := len(d.tail); n > 0 && d.tail[n-1].GetIndex() >= first; n-- {
		d.tailBytes -= len(d.tail[n-1].GetData())
		d.tail = d.tail[:n-1]
	}
}

// shortenTail forgets the older half.
func (d *Disk) shortenTail() {
	n := 0
	for n < len(d.tail)-1 && (len(d.tail)-n > tailEntries/2 || d.tailBytes > tailBytes/2) {
		d.tailBytes -= len(d.tail[n].GetData())
		n++
	}
	d.tail = append([]*pb.Entry{}, d.tail[n:]...)
}

// Installed takes note that the snapshot is in the place of the store, which nobody has opened yet.
func (d *Disk) Installed() error {
	d.install, d.arrived = false, anyNumber
	b := d.db.NewBatch()
	must(b.Delete(keyInstall, nil))
	must(b.Set(keyArrived, binary.BigEndian.AppendUint64(nil, d.arrived), nil))
	return d.commit(b, true)
}

// InitialState is raft.Storage's.
func (d *Disk) InitialState() (*pb.HardState, *pb.ConfState, error) { return d.hard, d.conf, nil }

// Entries is raft.Storage's.
func (d *Disk) Entries(low, high, maxSize uint64) (entries []*pb.Entry, err error) {
	if low <= d.base.index {
		return nil, raft.ErrCompacted
	}
	if high > d.last+1 {
		return nil, raft.ErrUnavailable
	}
	size := uint64(0)
	add := func(e *pb.Entry) bool {
		if size += uint64(proto.Size(e)); size > maxSize && len(entries) > 0 {
			return false
		}
		entries = append(entries, e)
		return uint64(len(entries)) < high-low
	}
	if len(d.tail) > 0 && low >= d.tail[0].GetIndex() {
		for _, e := range d.tail[low-d.tail[0].GetIndex():] {
			if !add(e) {
				break
			}
		}
		return entries, nil
	}
	it, err := d.db.NewIter(&pebble.IterOptions{LowerBound: entryKey(low), UpperBound: entryKey(high)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		e := &pb.Entry{}
		if err := proto.Unmarshal(it.Value(), e); err != nil {
			return nil, fmt.Errorf("raftlog: read entry %x: %w", it.Key(), err)
		}
		if e.GetIndex() != low+uint64(len(entries)) {
			return nil, fmt.Errorf("raftlog: entry %d of the log is missing", low+uint64(len(entries)))
		}
		if !add(e) {
			break
		}
	}
	return entries, it.Error()
}

// Term is raft.Storage's.
func (d *Disk) Term(index uint64) (uint64, error) {
	switch {
	case len(d.tail) > 0 && index >= d.tail[0].GetIndex() && index <= d.last:
		return d.tail[index-d.tail[0].GetIndex()].GetTerm(), nil
	case index == d.base.index:
		return d.base.term, nil
	case index < d.base.index:
		return 0, raft.ErrCompacted
	case index > d.last:
		return 0, raft.ErrUnavailable
	}
	entries, err := d.Entries(index, index+1, math.MaxUint64)
	if err != nil {
		return 0, err
	}
	return entries[0].GetTerm(), nil
}

// LastIndex is raft.Storage's.
func (d *Disk) LastIndex() (uint64, error) { return d.last, nil }

// FirstIndex is raft.Storage's.
func (d *Disk) FirstIndex() (uint64, error) { return d.base.index + 1, nil }

// hold has the end of the log in memory have entries behind those before the first of them; what was there from it on goes.
func (d *Disk) hold(entries []*pb.Entry) {
	d.cutTail(entries[0].GetIndex())
	for _, e := range entries {
		d.tail = append(d.tail, e)
		d.tailBytes += len(e.GetData())
	}
	d.last = entries[len(entries)-1].GetIndex()
	if len(d.tail) > tailEntries || d.tailBytes > tailBytes {
		d.shortenTail()
	}
}

// Snapshot is raft.Storage's. It holds none of the store's data, which whoever sends the message has travel beside it: that may be younger than
// the snapshot says, since what a store has already is not applied again.
func (d *Disk) Snapshot() (*pb.Snapshot, error) {
	at := d.snapshot()
	data := binary.BigEndian.AppendUint64(nil, d.confIndex)
	data = binary.BigEndian.AppendUint64(data, d.peerIndex)
	data = d.peers.appendBinary(data)
	return &pb.Snapshot{Data: data, Metadata: &pb.SnapshotMetadata{ConfState: proto.CloneOf(d.conf), Index: proto.Uint64(at.index), Term: proto.Uint64(at.term)}}, nil
}

// readSnapshot is what a snapshot says beside raft's own.
func readSnapshot(data []byte) (confIndex, peerIndex uint64, p Peers, err error) {
	if len(data) < 16 {
		return 0, 0, nil, errBrokenPeers
	}
	p, err = decodePeers(data[16:])
	return binary.BigEndian.Uint64(data), binary.BigEndian.Uint64(data[8:]), p, err
}
