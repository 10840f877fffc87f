package expiryorder

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ebbdb/ebb/internal/storage/layout"
)

// Tombstone says that a sweep has deleted all records of an order and span that were dated up to Date and had got their sequence
// by then. So an index entry tells by itself whether its record is gone: it is dead exactly if a tombstone covers its id. A
// record that comes later with an old date has a later sequence, and another TTL does not matter.
type Tombstone struct {
	Order    uint32
	Span     byte
	Date     int64
	Sequence uint64
}

const tombstoneLength = 4 + 1 + 8 + 8

// MaxTombstones is with how many tombstones a collection is not swept at once any more until it has been vacuumed: each came
// from a TTL that was lengthened, or a clock turned back.
const MaxTombstones = 32

// covers says whether the sweep has deleted id, which is an ordered one.
func (t Tombstone) covers(id layout.RecordID) bool {
	return t.Order == id.Order() && t.Span == id.Span() && id.Date() <= t.Date && id.Number() <= t.Sequence
}

// Tombstones are those of one collection: few, because a later sweep mostly covers all that an earlier one did.
type Tombstones []Tombstone

// Cover says whether the record with the id was swept, so that an entry with it is dead.
func (ts Tombstones) Cover(id layout.RecordID) bool {
	if len(ts) == 0 || !id.IsOrdered() {
		return false
	}
	for _, t := range ts {
		if t.covers(id) {
			return true
		}
	}
	return false
}

// With is ts and t, without those that t makes needless.
func (ts Tombstones) With(t Tombstone) Tombstones {
	out := slices.DeleteFunc(slices.Clone(ts), func(o Tombstone) bool {
		return o.Order == t.Order && o.Span == t.Span && o.Date <= t.Date && o.Sequence <= t.Sequence
	})
	return append(out, t)
}

// OfOthers says whether there are any from under another order.
func (ts Tombstones) OfOthers(order uint32) bool {
	return slices.ContainsFunc(ts, func(t Tombstone) bool { return t.Order != order })
}

// Encode is how they are stored.
func (ts Tombstones) Encode() []byte {
	out := make([]byte, 0, len(ts)*tombstoneLength)
	for _, t := range ts {
		out = append(binary.BigEndian.AppendUint32(out, t.Order), t.Span)
		out = binary.BigEndian.AppendUint64(layout.AppendMillis(out, t.Date), t.Sequence)
	}
	return out
}

// DecodeTombstones reads what Encode has written.
func DecodeTombstones(value []byte) (ts Tombstones, err error) {
	if len(value)%tombstoneLength != 0 {
		return nil, fmt.Errorf("tombstones have %d bytes", len(value))
	}
	for ; len(value) > 0; value = value[tombstoneLength:] {
		ts = append(ts, Tombstone{binary.BigEndian.Uint32(value), value[4], layout.ReadMillis(value[5:]), binary.BigEndian.Uint64(value[13:])})
	}
	return ts, nil
}
