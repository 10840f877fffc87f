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

// tombstone says that a sweep has deleted all records of an order and span that were dated up to date and had got their sequence
// by then. So an index entry tells by itself whether its record is gone: it is dead exactly if a tombstone covers its id. A
// record that comes later with an old date has a later sequence, and another TTL does not matter.
type tombstone struct {
	order    uint32
	span     byte
	date     int64
	sequence uint64
}

const tombstoneLength = 4 + 1 + 8 + 8

// maxTombstones is with how many tombstones a collection is not swept at once any more until it has been cleaned: each came from a TTL
// that was lengthened, or a clock turned back.
const maxTombstones = 32

// covers says whether the sweep has deleted id, which is an ordered one.
func (m tombstone) covers(id RecordID) bool {
	return m.order == id.order() && m.span == id.span() && id.date() <= m.date && id.sequence() <= m.sequence
}

// tombstones are those of one collection: few, because a later sweep mostly covers all that an earlier one did.
type tombstones []tombstone

func (ms tombstones) cover(id RecordID) bool {
	for _, m := range ms {
		if m.covers(id) {
			return true
		}
	}
	return false
}

// with is ms and m, without those that m makes needless.
func (ms tombstones) with(m tombstone) tombstones {
	out := slices.DeleteFunc(slices.Clone(ms), func(o tombstone) bool {
		return o.order == m.order && o.span == m.span && o.date <= m.date && o.sequence <= m.sequence
	})
	return append(out, m)
}

// ofOthers says whether there are any from under another order.
func (ms tombstones) ofOthers(order uint32) bool {
	return slices.ContainsFunc(ms, func(m tombstone) bool { return m.order != order })
}

// marked tells in which views there may be tombstones: in those that began when there had been fewer sweeps, of all collections, than
// it says. It rises before a sweep that sets tombstones is committed, while the collection's lock is held exclusively; and it falls
// after the tombstones' deletion is, while the lock is held so that none can be set.
type marked struct{ before atomic.Uint64 }

func (m *marked) set() { m.before.Store(math.MaxUint64) }

// deleted counts as a sweep, so that views that begin from now on are told from those that may still see the tombstones.
func (m *marked) deleted(sweeps *atomic.Uint64) { m.before.Store(sweeps.Add(1)) }

// isSet says whether there may be tombstones in a view that begins now.
func (m *marked) isSet() bool { return m.before.Load() == math.MaxUint64 }

// mayHaveTombstones says whether there may be tombstones in r's view.
func (r *Reader) mayHaveTombstones() bool { return r.c.state.marked.before.Load() > r.view.swept }

func (ms tombstones) encode() []byte {
	out := make([]byte, 0, len(ms)*tombstoneLength)
	for _, m := range ms {
		out = append(binary.BigEndian.AppendUint32(out, m.order), m.span)
		out = binary.BigEndian.AppendUint64(appendMillis(out, m.date), m.sequence)
	}
	return out
}

func tombstonesKey(collection uint32) []byte {
	return numbered([]byte{metaPrefix}, metaTombstones, collection)
}

func readTombstones(r kv.Reader, collection uint32) (tombstones, error) {
	value, err := r.Get(tombstonesKey(collection))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("storage: read what was swept: %w", err)
	case len(value)%tombstoneLength != 0:
		return nil, fmt.Errorf("storage: the tombstones of collection %d have %d bytes", collection, len(value))
	}
	var ms tombstones
	for ; len(value) > 0; value = value[tombstoneLength:] {
		ms = append(ms, tombstone{binary.BigEndian.Uint32(value), value[4], readMillis(value[5:]), binary.BigEndian.Uint64(value[13:])})
	}
	return ms, nil
}

// swept are the tombstones as r's view has them.
func (r *Reader) swept() (tombstones, error) {
	if r.tombstonesRead || !r.mayHaveTombstones() {
		return r.tombstones, nil
	}
	var err error
	r.tombstones, err = readTombstones(r.view.reader, r.c.ID)
	r.tombstonesRead = err == nil
	return r.tombstones, err
}

// isDead says whether the record with the id has been swept, so that an entry with it means nothing.
func (r *Reader) isDead(id RecordID) (bool, error) {
	if !id.isOrdered() {
		return false, nil
	}
	ms, err := r.swept()
	return err == nil && ms.cover(id), err
}
