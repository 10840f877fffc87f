package exec

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/changestream"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// parts are the operations of a transaction: those of one entry, or of a chain of entries of which the last tells that it is
// committed. One entry is in memory at a time, and none while the stream is parked: it lies where the cursor stands, or is a copy.
type parts struct {
	on bool
	// chain are the places of the entries, the first one first, and link the one at hand.
	chain []oplog.Timestamp
	link  int
	entry changestream.Entry
	// index is the number of the next operation in all of the chain, and local the one in the entry at hand.
	index, local int
	doc          bson.Doc // the operations of the entry at hand; nil when it has to be read
	ops          bson.Iter
	more         bool
}

// maxChain is how many entries a transaction may have: each but the last has 16 MB.
const maxChain = 1 << 20

// park forgets the entry at hand, which may be large.
func (p *parts) park() { p.doc = nil }

// beginParts begins to read the operations of the transaction that ends with entry, which is the one at s.at.
func (s *Changes) beginParts(entry bson.Doc) error {
	p := &s.parts
	p.on, p.link, p.index, p.local, p.doc = true, 0, 0, 0, nil
	// What a retryable write does to several documents is no transaction.
	p.entry = changestream.EntryOf(entry, entry.Lookup("multiOpType").IsMissing())
	p.entry.Wall, p.entry.Session, p.entry.TxnNumber = p.entry.Wall.Clone(), p.entry.Session.Clone(), p.entry.TxnNumber.Clone()
	p.chain = append(p.chain[:0], s.at)
	if entry.Lookup("o").Doc().Lookup("count").IsMissing() { // the only one, at which the cursor stands
		return s.readParts(entry)
	}
	for at, before := s.at, previous(entry); before == at-1; { // those of a commit follow one another
		rec, err := s.entryAt(before)
		if err != nil {
			return err
		}
		if _, last, several := changestream.ApplyOps(rec.Doc); !several || last {
			break
		}
		if p.chain = append(p.chain, before); len(p.chain) > maxChain {
			return mongoerr.New(mongoerr.ChangeStreamFatalError, "a transaction has more than %d entries", maxChain)
		}
		at, before = before, previous(rec.Doc)
	}
	slices.Reverse(p.chain)
	return nil
}

// previous is the place of the entry before this one in its transaction, 0 where there is none.
func previous(entry bson.Doc) oplog.Timestamp {
	prev := entry.Lookup("prevOpTime")
	if prev.Type != bson.TypeObject {
		return 0
	}
	ts := prev.Doc().Lookup("ts")
	if ts.Type != bson.TypeTimestamp {
		return 0
	}
	return oplog.NewTimestamp(ts.Timestamp())
}

// entryAt is an entry in the view that the stream reads in.
func (s *Changes) entryAt(at oplog.Timestamp) (storage.Record, error) {
	r, err := s.oplog(s.op.callContext(), s.watch.Visible())
	if err != nil {
		return storage.Record{}, err
	}
	rec, ok, err := r.Get(layout.SequenceID(uint64(at)))
	if err == nil && !ok {
		err = historyLost()
	}
	return rec, err
}

// nextPart is the event of the next operation of the transaction; nil where it is of no interest.
func (s *Changes) nextPart(ctx context.Context) (event *changestream.Event, ok bool, err error) {
	p := &s.parts
	if p.doc == nil {
		if err := s.readLink(); err != nil {
			return nil, false, err
		}
	}
	if !p.more {
		p.doc, p.local = nil, 0
		if p.link++; p.link == len(p.chain) {
			p.on = false
		}
		return nil, true, nil
	}
	op := p.ops.Value().Doc()
	index := p.index
	s.entry, s.index = p.chain[p.link], p.local
	p.index, p.local, p.more = p.index+1, p.local+1, p.ops.Next()
	event, err = s.event(&p.entry, op, index)
	return event, true, err
}

// readLink reads the entry at hand again.
func (s *Changes) readLink() error {
	p := &s.parts
	rec, err := s.entryAt(p.chain[p.link])
	if err != nil {
		return err
	}
	return s.readParts(rec.Doc)
}

// readParts reads an entry, up to the operation that is next.
func (s *Changes) readParts(entry bson.Doc) error {
	p := &s.parts
	ops, _, ok := changestream.ApplyOps(entry)
	if !ok {
		return historyLost()
	}
	if err := s.op.carry(s.op.callContext(), len(ops)); err != nil { // which many streams may read at once
		return err
	}
	p.doc = ops
	p.ops = ops.Iter()
	p.more = p.ops.Next()
	for range p.local {
		p.more = p.more && p.ops.Next()
	}
	return nil
}
