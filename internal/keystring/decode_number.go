package keystring

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"

	"github.com/ebbdb/ebb/internal/bson"
)

// magnitude is what the key tells of a number: a double, and when that is not all of it the digits.
type magnitude struct {
	negative bool
	double   float64 // ≥ 0
	inexact  bool
	digits   digits
}

func (d *decoder) number(tag byte) error {
	var m magnitude
	var err error
	switch tag {
	case tagNaN:
		m.double = math.Float64frombits(plainNaN)
	case tagPositive:
		err = d.magnitude(&m)
	case tagNegative:
		d.flip ^= 0xFF
		m.negative = true
		err = d.magnitude(&m)
		d.flip ^= 0xFF
	}
	if err != nil {
		return err
	}
	f, err := d.bits.next()
	if err != nil {
		return err
	}
	return d.form(f, &m)
}

func (r *reader) magnitude(m *magnitude) error {
	var u uint64
	for i := range doubleBytes {
		b, err := r.byte()
		if err != nil {
			return err
		}
		u |= uint64(b>>1) << (56 - 7*i)
		m.inexact = b&1 != 0
		if !m.inexact {
			break
		}
	}
	m.double = math.Float64frombits(u)
	if m.double != m.double {
		return errKey
	}
	if !m.inexact {
		return nil
	}
	return r.digits(&m.digits)
}

func (r *reader) digits(d *digits) error {
	var head [2]byte
	exponent, err := r.appendBytes(head[:0], 2)
	if err != nil {
		return err
	}
	d.exponent = int(binary.BigEndian.Uint16(exponent)) - exponentBias
	for {
		b, err := r.byte()
		if err != nil {
			return err
		}
		if b == 0 {
			break
		}
		if b > 100 || d.n+2 > maxDigits {
			return errKey
		}
		d.text[d.n], d.text[d.n+1] = '0'+(b-1)/10, '0'+(b-1)%10
		d.n += 2
	}
	if d.trim(); d.n == 0 || d.text[0] == '0' {
		return errKey
	}
	return nil
}

// form appends the number in the form that the type bits tell.
func (d *decoder) form(f form, m *magnitude) error {
	switch f {
	case formDefault:
		return d.byDefault(m)
	case formLong:
		return d.long(m)
	case formDouble:
		return d.double(m)
	case formDecimal:
		zeros, err := d.bits.varint()
		if err != nil || zeros > maxDigits {
			return errTypeBits
		}
		return d.decimal(m, int(zeros))
	case formRawDouble:
		b, err := d.bits.bytes(8)
		if err != nil {
			return err
		}
		d.kind = bson.TypeDouble
		d.out = binary.LittleEndian.AppendUint64(d.out, binary.BigEndian.Uint64(b))
		return nil
	case formRawDecimal:
		b, err := d.bits.bytes(16)
		if err != nil {
			return err
		}
		d.kind = bson.TypeDecimal
		d.out = binary.LittleEndian.AppendUint64(d.out, binary.BigEndian.Uint64(b[8:]))
		d.out = binary.LittleEndian.AppendUint64(d.out, binary.BigEndian.Uint64(b))
		return nil
	default:
		return errTypeBits
	}
}

func (d *decoder) byDefault(m *magnitude) error {
	if m.inexact {
		if _, ok := m.int64(); ok {
			return d.long(m)
		}
		return d.decimal(m, 0)
	}
	f := m.double
	if m.negative {
		f = -f
	}
	switch defaultForm(f) {
	case bson.TypeInt32:
		d.kind = bson.TypeInt32
		d.out = binary.LittleEndian.AppendUint32(d.out, uint32(int32(f)))
		return nil
	case bson.TypeInt64:
		return d.long(m)
	default:
		return d.double(m)
	}
}

func (d *decoder) double(m *magnitude) error {
	if m.inexact {
		return errTypeBits
	}
	u := math.Float64bits(m.double)
	if m.negative {
		u |= signBit
	}
	d.kind = bson.TypeDouble
	d.out = binary.LittleEndian.AppendUint64(d.out, u)
	return nil
}

func (d *decoder) long(m *magnitude) error {
	n, ok := m.int64()
	if !ok {
		return errTypeBits
	}
	d.kind = bson.TypeInt64
	d.out = binary.LittleEndian.AppendUint64(d.out, uint64(n))
	return nil
}

// int64 is the number as a long, if it is one.
func (m *magnitude) int64() (int64, bool) {
	var n uint64
	if m.inexact {
		hi, lo, ok := m.digits.coefficient(m.digits.exponent + 1)
		if !ok || hi != 0 || m.digits.exponent+1 < m.digits.n {
			return 0, false
		}
		n = lo
	} else {
		if m.double >= 1<<64 || m.double != math.Trunc(m.double) {
			return 0, false
		}
		n = uint64(m.double)
	}
	if m.negative {
		return int64(-n), n <= signBit
	}
	return int64(n), n < signBit
}

// coefficient is the digits, filled up with zeros to count of them, as an integer of at most 34 digits.
func (d *digits) coefficient(count int) (hi, lo uint64, ok bool) {
	if count > maxDigits || count < 0 {
		return 0, 0, false
	}
	for i := range count {
		digit := uint64(0)
		if i < d.n {
			digit = uint64(d.text[i] - '0')
		}
		over, low := bits.Mul64(lo, 10)
		hi, lo = hi*10+over, low
		var carry uint64
		lo, carry = bits.Add64(lo, digit, 0)
		hi += carry
	}
	return hi, lo, true
}

// decimal appends the number as a decimal whose coefficient ends in so many zeros.
func (d *decoder) decimal(m *magnitude, zeros int) error {
	if !m.inexact && !m.digits.setDouble(m.double) {
		return errTypeBits
	}
	count := m.digits.n + zeros
	hi, lo, ok := m.digits.coefficient(count)
	exp := m.digits.exponent - count + 1
	if !ok || exp < -6176 || exp > 6111 {
		return errTypeBits
	}
	v := bson.DecimalFromParts(m.negative, hi, lo, exp)
	d.kind = bson.TypeDecimal
	d.out = binary.LittleEndian.AppendUint64(d.out, v.Low)
	d.out = binary.LittleEndian.AppendUint64(d.out, v.High)
	return nil
}

// setDouble sets the digits of a finite f > 0 that has at most 34 of them.
func (d *digits) setDouble(f float64) bool {
	if f == 0 || math.IsInf(f, 0) || f != f {
		return false
	}
	var buf [maxDigits + 10]byte
	text := strconv.AppendFloat(buf[:0], f, 'e', maxDigits-1, 64) // d.ddd…e±dd
	d.text[0] = text[0]
	d.n = 1 + copy(d.text[1:], text[2:maxDigits+1])
	exponent, err := strconv.Atoi(string(text[maxDigits+2:]))
	d.exponent = exponent
	d.trim()
	return err == nil
}
