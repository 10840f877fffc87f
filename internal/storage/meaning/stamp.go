package meaning

import (
	"encoding/binary"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// What a commit tells of itself, entries of the oplog and documents beside them, it has as stamped writes: their timestamps are filled in
// when it is ordered.

// Target is a collection that commits write to of themselves.
type Target struct {
	ID uint32
	// DocumentsKey and BytesKey are the keys of its counters.
	DocumentsKey, BytesKey []byte
	// AppendID appends the record id that a document with the _id has.
	AppendID func(dst []byte, id bson.Value) []byte
}

// Add adds to what the collection counts.
func (to *Target) Add(t kv.Txn, documents, bytes int64) {
	if documents != 0 {
		t.Add(to.DocumentsKey, documents)
	}
	if bytes != 0 {
		t.Add(to.BytesKey, bytes)
	}
}

// StampEntries adds the entries of what a log has collected.
func (m *Meaning) StampEntries(t kv.Txn, to *Target, log *oplog.Log, c oplog.Circumstances) {
	var room [layout.HeaderLength]byte
	m.Term, m.Entries = c.Term, log.Entries(m.told.entry[:0], c, layout.AppendRecord(room[:0], c.Wall, nil))
	bytes := int64(0)
	for i, e := range m.Entries {
		key := m.told.key[:]
		if i > 0 {
			key = make([]byte, len(key))
		}
		layout.RecordKey(key[:0], to.ID, nil)
		m.stamp(t, kv.Op{Key: key, Value: e.Stored})
		bytes += int64(len(e.Stored) - layout.HeaderLength)
	}
	to.Add(t, int64(len(m.Entries)), bytes)
	change := &m.told.change
	*change = NewChange(to.ID)
	change.Inserted, change.Listed = true, true
	m.Add(change)
}

// stamp hands over one write, which the transaction copies.
func (m *Meaning) stamp(t kv.Txn, write kv.Op) {
	m.told.write[0] = write
	t.Stamp(m.told.write[:]...)
}

// Stamp adds a write beside the entries, which are there, into which r has their timestamps written.
func (m *Meaning) Stamp(t kv.Txn, write kv.Op, r oplog.Reference) {
	r.Stamped = len(m.Entries) + len(m.References)
	if m.References == nil {
		m.References = m.told.references[:0]
	}
	m.References = append(m.References, r)
	m.stamp(t, write)
}

// Fill gives what is stamped its timestamps, in a commit that was made here and is being ordered.
func (m *Meaning) Fill(c *kv.Commit, clock *oplog.Clock) {
	if len(m.Entries) == 0 {
		return
	}
	first := clock.Take(c.Time, len(m.Entries))
	previous := m.Before
	for i := range m.Entries {
		own, op := first+oplog.Timestamp(i), c.Stamped[i]
		binary.BigEndian.PutUint64(op.Key[len(op.Key)-layout.SequenceLength:], uint64(own))
		m.Entries[i].Fill(op.Value, own, previous)
		previous = oplog.OpTime{Timestamp: own, Term: m.Term}
	}
	for _, r := range m.References {
		at := previous.Timestamp
		if r.Entry > 0 {
			at = first + oplog.Timestamp(r.Entry-1)
		}
		r.Fill(c.Stamped[r.Stamped].Key, c.Stamped[r.Stamped].Value, at)
	}
	m.Timestamp, m.Entries, m.References = previous.Timestamp, nil, nil
}
