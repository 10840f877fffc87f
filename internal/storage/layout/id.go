package layout

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/ebbdb/ebb/internal/bson"
)

// RecordID names a record within its collection; records are scanned in the order of its bytes. What the bytes mean is
// the collection's affair: an id may change when its document does, so writers use the id that an update returns.
//
// A plain collection's id is a number of eight bytes that grows with each insert. Where records lie in the order in which they
// expire it is
//
//	0x80 | number of the order, 4 | span, 1 | date, 8 | number, 8
//
// The number is that of the insert, with its highest bit set. A record whose date changes moves, and keeps its number. Ids of
// eight bytes are below 0x80 and lie before all others; but for those of the oplog, timestamps, from 2038 on: there are no others there.
type RecordID []byte

const (
	// SequenceLength is the length of a plain collection's ids.
	SequenceLength = 8
	// OrderedMark is the first byte of an id in an order of expiry, and OrderedLength its length.
	OrderedMark   = 0x80
	OrderedLength = 1 + 4 + 1 + 8 + SequenceLength
	// PlaceLength is the length of what stands before the number.
	PlaceLength = OrderedLength - SequenceLength
	// SpanLength is the length of what stands before the date.
	SpanLength = 1 + 4 + 1
	// tailLength is what an index entry with the number in its key keeps of the id in its value: all else but the mark.
	tailLength = PlaceLength - 1
	// orderedBit is set in the number of an ordered id.
	orderedBit = 1 << 63
)

// The spans of an order of expiry, and of a TTL index on _ts.
const (
	OnDefault  = 1
	OnOverride = 2
	// OnNever is the span of records that do not expire; a TTL index on _ts has no entries of them.
	OnNever = 3
	// CoarseDefault and CoarseOverride are the spans of records whose documents were changed, under a TTL index on _ts: their date is
	// not before the one that the TTL counts from, and the record's header has that. They are only in record ids.
	CoarseDefault  = OnDefault + coarser
	CoarseOverride = OnOverride + coarser
	// Spans is more than any span.
	Spans = CoarseOverride + 1
	// coarser is how far the coarse span of a span is from it.
	coarser = 3
)

// Coarse is the coarse span of OnDefault or OnOverride.
func Coarse(span byte) byte { return span + coarser }

// SequenceID is the id of a plain collection's record.
func SequenceID(n uint64) RecordID {
	return binary.BigEndian.AppendUint64(make(RecordID, 0, SequenceLength), n)
}

// OrderedID is the id with a number at a place, which AppendPlace made.
func OrderedID(place []byte, n uint64) RecordID {
	id := append(make(RecordID, 0, OrderedLength), place...)
	return binary.BigEndian.AppendUint64(id, n|orderedBit)
}

// AppendOrder appends what all ids of an order begin with.
func AppendOrder(dst []byte, number uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, OrderedMark), number)
}

// AppendPlace appends an ordered id without its number.
func AppendPlace(dst []byte, order uint32, span byte, date int64) []byte {
	return AppendMillis(append(AppendOrder(dst, order), span), date)
}

// Clone is id with bytes of its own.
func (id RecordID) Clone() RecordID { return append(RecordID(nil), id...) }

// Compare is how ids are ordered, as records lie.
func (id RecordID) Compare(o RecordID) int { return bytes.Compare(id, o) }

// Value is id as $recordId shows it: a long for plain collections, which stays when the record moves; binary data otherwise.
func (id RecordID) Value() bson.Value {
	if n, ok := id.Sequence(); ok {
		return bson.Int64(int64(n))
	}
	return bson.Binary(0, id)
}

func (id RecordID) String() string {
	if n, ok := id.Sequence(); ok {
		return strconv.FormatUint(n, 10)
	}
	return hex.EncodeToString(id)
}

// IsOrdered says whether id is one in an order of expiry. No other id begins so: a number is smaller, and so are the tags of key
// strings.
func (id RecordID) IsOrdered() bool { return len(id) == OrderedLength && id[0] == OrderedMark }

// Sequence is the number of a record, which it keeps when it moves. ok is false for ids of collections whose records do not.
func (id RecordID) Sequence() (n uint64, ok bool) {
	if !id.IsOrdered() && len(id) != SequenceLength {
		return 0, false
	}
	return id.Number(), true
}

// Number is the number of a plain or ordered id. That of a plain one may have the bit that is set in ordered ones: in the oplog it is a timestamp, which
// has it from 2038 on.
func (id RecordID) Number() uint64 {
	n := binary.BigEndian.Uint64(id[len(id)-SequenceLength:])
	if id.IsOrdered() {
		n &^= orderedBit
	}
	return n
}

// Place is an ordered id without its number.
func (id RecordID) Place() []byte { return id[:PlaceLength] }

// Order is the number of an ordered id's order.
func (id RecordID) Order() uint32 { return binary.BigEndian.Uint32(id[1:]) }

// Span is the span that an ordered id lies in.
func (id RecordID) Span() byte { return id[5] }

// IsCoarse says whether an ordered id lies in a coarse span.
func (id RecordID) IsCoarse() bool { return id.Span() > OnNever }

// Date is the date of an ordered id, in milliseconds since the epoch.
func (id RecordID) Date() int64 { return ReadMillis(id[6:]) }

// Identity is what stays the same of an id when its record moves, as bytes; of other ids it is the id.
func (id RecordID) Identity() []byte {
	if !id.IsOrdered() {
		return id
	}
	return binary.BigEndian.AppendUint64(nil, id.Number())
}

// IsSame says whether two ids are those of one record, now and before it moved.
func (id RecordID) IsSame(o RecordID) bool {
	return string(id) == string(o) || string(id.Identity()) == string(o.Identity())
}

// LastSequence stands behind all records with the same key in an index, where those of the collection may move.
func LastSequence() RecordID { return bytes.Repeat([]byte{0xFF}, SequenceLength+1) }
