package column

import (
	"encoding/binary"
	"math"

	"github.com/ebbdb/ebb/internal/bson"
)

// stream is the values of one field: a literal, and what differs from it.
type stream struct {
	last    bson.Value // the value before; missing where there is none
	literal bool       // it is the next to give
	blocks  blocks

	value wide  // the number that last is
	step  int64 // by how much it differed from the one before, where it is that what blocks tell of
	scale int   // of doubles: an index of scales
}

// scales are what doubles are multiplied by to be whole numbers.
var scales = [...]float64{1, 10, 100, 1e4, 1e8}

// asBits is the scale of doubles whose bits are taken for a number, and of all that are no doubles.
const asBits = len(scales)

// maxWhole is up to where each whole number is a double.
const maxWhole = 1 << 53

// scaleOf is the scale that a control byte tells.
func scaleOf(control byte) (int, bool) {
	switch high := control >> 4; {
	case high == 8:
		return asBits, true
	case high >= 9 && high <= 13:
		return int(high) - 9, true
	}
	return 0, false
}

// begin is a stream behind a literal.
func begin(v bson.Value) stream {
	s := stream{last: v, scale: asBits}
	switch v.Type {
	case bson.TypeObjectID:
		s.value.lo = numberOfID(v.Data)
	case bson.TypeDate, bson.TypeTimestamp, bson.TypeInt64:
		s.value.lo = le64(v.Data)
	case bson.TypeInt32:
		s.value.lo = uint64(v.Int32())
	case bson.TypeBool:
		s.value.lo = uint64(v.Data[0])
	case bson.TypeDecimal:
		s.value = wide{le64(v.Data), le64(v.Data[8:])}
	case bson.TypeString, bson.TypeCode:
		s.value = numberOfString(v.Data[4 : len(v.Data)-1])
	case bson.TypeBinary:
		s.value = numberOfBytes(v.Data[5:])
	}
	return s
}

// goOn gives the stream, which has given all that it had, blocks with their control byte.
func (s *stream) goOn(control byte, words []byte) error {
	scale, ok := scaleOf(control)
	if !ok || scale != asBits && s.last.Type != bson.TypeDouble {
		return invalid("the control byte %#x", control)
	}
	s.blocks.words = words
	if s.scale = scale; s.last.Type == bson.TypeDouble {
		n, ok := numberOfDouble(s.last.Double(), scale)
		if !ok {
			return invalid("%v has no scale %d", s.last.Double(), scale)
		}
		s.value.lo = uint64(n)
	}
	return nil
}

// next is the next value, if there is one: it may be one that is missing.
func (s *stream) next() (v bson.Value, ok bool, err error) {
	if s.literal {
		s.literal = false
		return s.last, true, nil
	}
	d, ok, err := s.blocks.next()
	if !ok || err != nil || d.missing || s.last.IsMissing() {
		return bson.Missing, ok, err
	}
	steps := s.last.Type == bson.TypeObjectID || s.last.Type == bson.TypeDate || s.last.Type == bson.TypeTimestamp
	if !steps && d.by == (wide{}) {
		return s.last, true, nil
	}
	by := d.by.signed()
	switch {
	case !isWide(s.last.Type) && d.by.hi != 0:
		return bson.Missing, false, invalid("a difference is out of range")
	case steps:
		s.step += int64(by.lo)
		s.value.lo += uint64(s.step)
	default:
		s.value = s.value.plus(by)
	}
	if s.last, err = s.made(); err != nil {
		return bson.Missing, false, err
	}
	return s.last, true, nil
}

func isWide(t bson.Type) bool {
	return t == bson.TypeString || t == bson.TypeCode || t == bson.TypeBinary || t == bson.TypeDecimal
}

// made is the value of the stream's type and number.
func (s *stream) made() (bson.Value, error) {
	data := make([]byte, 0, 24)
	switch s.last.Type {
	case bson.TypeDouble:
		if s.scale == asBits {
			return bson.Double(math.Float64frombits(s.value.lo)), nil
		}
		return bson.Double(float64(int64(s.value.lo)) / scales[s.scale]), nil
	case bson.TypeDate, bson.TypeTimestamp, bson.TypeInt64:
		data = binary.LittleEndian.AppendUint64(data, s.value.lo)
	case bson.TypeInt32:
		data = binary.LittleEndian.AppendUint32(data, uint32(s.value.lo))
	case bson.TypeBool:
		return bson.Bool(s.value.lo != 0), nil
	case bson.TypeObjectID:
		data = appendID(data, s.value.lo, s.last.Data)
	case bson.TypeDecimal:
		data = s.value.append(data)
	case bson.TypeString, bson.TypeCode:
		text := stringOf(s.value)
		data = binary.LittleEndian.AppendUint32(data, uint32(len(text)+1))
		data = append(append(data, text...), 0)
	case bson.TypeBinary:
		return s.madeBinary(data)
	default:
		return bson.Missing, invalid("values of type %s differ by a number", s.last.Type)
	}
	return bson.Value{Type: s.last.Type, Data: data}, nil
}

// madeBinary is as long as the value before.
func (s *stream) madeBinary(data []byte) (bson.Value, error) {
	n := len(s.last.Data) - 5
	if n > 16 {
		return bson.Missing, invalid("binary data of %d bytes differs by a number", n)
	}
	data = append(data, s.last.Data[:5]...)
	data = s.value.append(data)[:5+n]
	v, _, err := bson.ReadValue(bson.TypeBinary, data, 1)
	if err != nil {
		return bson.Missing, invalid("%v", err)
	}
	return v, nil
}

func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

func (w wide) append(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, w.lo), w.hi)
}

// numberOfBytes is that of up to 16 bytes, and zero for more, which differ by nothing.
func numberOfBytes(b []byte) wide {
	if len(b) > 16 {
		return wide{}
	}
	var all [16]byte
	copy(all[:], b)
	return wide{le64(all[:]), le64(all[8:])}
}

// numberOfString has the end of the string, where most of them differ, be its lowest bits.
func numberOfString(s []byte) wide {
	if len(s) > 16 || len(s) > 0 && s[0] == 0 { // which stringOf would lose
		return wide{}
	}
	var turned [16]byte
	for i, c := range s {
		turned[len(s)-1-i] = c
	}
	return numberOfBytes(turned[:])
}

func stringOf(w wide) []byte {
	b := w.append(nil)
	n := len(b)
	for n > 0 && b[n-1] == 0 {
		n--
	}
	out := make([]byte, n)
	for i := range out {
		out[i] = b[n-1-i]
	}
	return out
}

// idPlaces are which bytes of an ObjectID its number has, the lowest first: seconds and counter, without what tells processes apart.
var idPlaces = [...]int{11, 3, 10, 2, 9, 1, 0}

func numberOfID(id []byte) (n uint64) {
	for i, at := range idPlaces {
		n |= uint64(id[at]) << (8 * i)
	}
	return n
}

func appendID(b []byte, n uint64, like []byte) []byte {
	b = append(b, like...)
	id := b[len(b)-len(like):]
	for i, at := range idPlaces {
		id[at] = byte(n >> (8 * i))
	}
	return b
}

// numberOfDouble is the whole number that a double is by a scale, if it is one that gives the double again.
func numberOfDouble(f float64, scale int) (int64, bool) {
	if scale == asBits {
		return int64(math.Float64bits(f)), true
	}
	scaled := f * scales[scale]
	if !(math.Abs(scaled) <= maxWhole) {
		return 0, false
	}
	n := int64(math.Round(scaled))
	return n, math.Float64bits(float64(n)/scales[scale]) == math.Float64bits(f)
}
