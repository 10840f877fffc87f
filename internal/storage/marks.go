package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/kv"
)

// mark says that a sweep has deleted all records of an order and span that were dated up to date and had got their sequence
// by then. So an index entry tells by itself whether its record is gone: it is dead exactly if a mark covers its id. A
// record that comes later with an old date has a later sequence, and another TTL does not matter.
type mark struct {
	order    uint32
	span     byte
	date     int64
	sequence uint64
}

const markLength = 4 + 1 + 8 + 8

// maxMarks is with how many marks a collection is not swept at once any more until it has been cleaned: each came from a TTL
// that was lengthened, or a clock turned back.
const maxMarks = 32

// covers says whether the sweep has deleted id, which is an ordered one.
func (m mark) covers(id RecordID) bool {
	return m.order == id.order() && m.span == id.span() && id.date() <= m.date && id.sequence() <= m.sequence
}

// marks are those of one collection: few, because a later sweep mostly covers all that an earlier one did.
type marks []mark

func (ms marks) cover(id RecordID) bool {
	for _, m := range ms {
		if m.covers(id) {
			return true
		}
	}
	return false
}

// with is ms and m, without those that m makes needless.
func (ms marks) with(m mark) marks {
	out := slices.DeleteFunc(slices.Clone(ms), func(o mark) bool {
		return o.order == m.order && o.span == m.span && o.date <= m.date && o.sequence <= m.sequence
	})
	return append(out, m)
}

// ofOthers says whether there are any from under another order.
func (ms marks) ofOthers(order uint32) bool {
	return slices.ContainsFunc(ms, func(m mark) bool { return m.order != order })
}

// marked tells in which views there may be marks: in those that began when there had been fewer sweeps, of all collections, than
// it says. It rises before a sweep that sets marks is committed, while the collection's lock is held exclusively; and it falls
// after the marks' deletion is, while the lock is held so that none can be set.
type marked struct{ before atomic.Uint64 }

func (m *marked) set() { m.before.Store(math.MaxUint64) }

// deleted counts as a sweep, so that views that begin from now on are told from those that may still see the marks.
func (m *marked) deleted(sweeps *atomic.Uint64) { m.before.Store(sweeps.Add(1)) }

// isSet says whether there may be marks in a view that begins now.
func (m *marked) isSet() bool { return m.before.Load() == math.MaxUint64 }

// mayBeMarked says whether there may be marks in r's view.
func (r *Reader) mayBeMarked() bool { return r.c.state.marked.before.Load() > r.view.swept }

func (ms marks) encode() []byte {
	out := make([]byte, 0, len(ms)*markLength)
	for _, m := range ms {
		out = append(binary.BigEndian.AppendUint32(out, m.order), m.span)
		out = binary.BigEndian.AppendUint64(appendMillis(out, m.date), m.sequence)
	}
	return out
}

func marksKey(collection uint32) []byte { return numbered([]byte{metaPrefix}, metaMarks, collection) }

func readMarks(r kv.Reader, collection uint32) (marks, error) {
	value, err := r.Get(marksKey(collection))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("storage: read what was swept: %w", err)
	case len(value)%markLength != 0:
		return nil, fmt.Errorf("storage: the marks of collection %d have %d bytes", collection, len(value))
	}
	var ms marks
	for ; len(value) > 0; value = value[markLength:] {
		ms = append(ms, mark{binary.BigEndian.Uint32(value), value[4], readMillis(value[5:]), binary.BigEndian.Uint64(value[13:])})
	}
	return ms, nil
}

// swept are the marks as r's view has them.
func (r *Reader) swept() (marks, error) {
	if r.marksRead || !r.mayBeMarked() {
		return r.marks, nil
	}
	var err error
	r.marks, err = readMarks(r.view.reader, r.c.ID)
	r.marksRead = err == nil
	return r.marks, err
}

// isDead says whether the record with the id has been swept, so that an entry with it means nothing.
func (r *Reader) isDead(id RecordID) (bool, error) {
	if !id.isOrdered() {
		return false, nil
	}
	ms, err := r.swept()
	return err == nil && ms.cover(id), err
}
