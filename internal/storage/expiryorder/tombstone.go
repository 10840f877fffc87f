package expiryorder

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ebbdb/ebb/internal/storage/layout"
)

// Tombstone says that a sweep has deleted all records of an order and span that were dated up to Date and had got their sequence
// by then. So an index entry tells by itself whether its record is gone: it is dead exactly if a tombstone covers its id. A
// record that comes later with an old date has a later sequence, and another TTL does not matter. Records that open transactions had
// written are spared, by their sequences: no other record has those, and they had no dead entries when the sweep came.
type Tombstone struct {
	Order    uint32
	Span     byte
	Date     int64
	Sequence uint64
	Spared   Sequences
}

const tombstoneLength = 4 + 1 + 8 + 8

// sparesSome is set in the span of a tombstone, as it is stored, that those follow that it spares.
const sparesSome = 0x80

// MaxTombstones is with how many tombstones a collection is not swept at once any more until it has been vacuumed: each came
// from a TTL that was lengthened, or a clock turned back.
const MaxTombstones = 32

// covers says whether the sweep has deleted id, which is an ordered one.
func (t *Tombstone) covers(id layout.RecordID) bool {
	return t.Order == id.Order() && t.Span == id.Span() && id.Date() <= t.Date && id.Number() <= t.Sequence && !t.Spared.Has(id.Number())
}

// Tombstones are those of one collection: few, because a later sweep mostly covers all that an earlier one did.
type Tombstones []Tombstone

// Cover says whether the record with the id was swept, so that an entry with it is dead.
func (ts Tombstones) Cover(id layout.RecordID) bool {
	if len(ts) == 0 || !id.IsOrdered() {
		return false
	}
	for i := range ts {
		if ts[i].covers(id) {
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
		span := t.Span
		if len(t.Spared) > 0 {
			span |= sparesSome
		}
		out = append(binary.BigEndian.AppendUint32(out, t.Order), span)
		out = binary.BigEndian.AppendUint64(layout.AppendMillis(out, t.Date), t.Sequence)
		if len(t.Spared) > 0 {
			out = t.Spared.append(out)
		}
	}
	return out
}

// DecodeTombstones reads what Encode has written.
func DecodeTombstones(value []byte) (ts Tombstones, err error) {
	for rest := value; len(rest) > 0; {
		if len(rest) < tombstoneLength {
			return nil, fmt.Errorf("tombstones have %d bytes", len(value))
		}
		t := Tombstone{binary.BigEndian.Uint32(rest), rest[4] &^ sparesSome, layout.ReadMillis(rest[5:]), binary.BigEndian.Uint64(rest[13:]), nil}
		spares := rest[4]&sparesSome != 0
		if rest = rest[tombstoneLength:]; spares {
			var ok bool
			if t.Spared, rest, ok = readSequences(rest); !ok {
				return nil, fmt.Errorf("what tombstones of %d bytes spare is broken", len(value))
			}
		}
		ts = append(ts, t)
	}
	return ts, nil
}
