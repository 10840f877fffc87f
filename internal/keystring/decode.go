package keystring

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
)

var (
	errKey      = errors.New("keystring: not a key")
	errTypeBits = errors.New("keystring: not the type bits of this key")
	errTooDeep  = errors.New("keystring: nests too deep")
)

// maxDepth bounds the recursion of reading; valid values do not nest deeper.
const maxDepth = bson.MaxDepth

// Decode appends to dst the n values that key begins with and returns it with the rest of the key. With the key's type
// bits they are the very values the key was made of (but array elements are named by their positions); without, they are
// equal to them. Keys with a collation hold no strings and cannot be decoded to anything of use. The values share memory
// with each other and none with key.
func Decode(dst []bson.Value, key, typeBits []byte, n int) (values []bson.Value, rest []byte, err error) {
	var room []byte
	return DecodeIn(&room, dst, key, typeBits, n)
}

// DecodeIn is Decode for many keys, one after the other: the values of each lie in room, until the next takes their place.
func DecodeIn(room *[]byte, dst []bson.Value, key, typeBits []byte, n int) (values []bson.Value, rest []byte, err error) {
	d := decoder{reader: reader{key: key}, bits: typeBitsReader{rest: typeBits}}
	d.out = slices.Grow((*room)[:0], len(key)+len(typeBits)+8*n)
	defer func() { *room = d.out }()
	for range n {
		start := len(d.out)
		if err := d.field(); err != nil {
			return dst, key, err
		}
		v := bson.Value{Type: d.kind}
		if len(d.out) > start {
			v.Data = d.out[start:len(d.out):len(d.out)]
		}
		dst = append(dst, v)
	}
	return dst, d.key, nil
}

// Skip is the length of the value that key begins with.
func Skip(key []byte) (int, error) {
	r := reader{key: key}
	if err := r.begin(); err != nil {
		return 0, err
	}
	if err := r.skipValue(maxDepth); err != nil {
		return 0, err
	}
	return len(key) - len(r.key), nil
}

// decoder turns a key back into BSON; out takes the bytes of the values.
type decoder struct {
	reader
	bits typeBitsReader
	out  []byte
	kind bson.Type // of the value decoded last
}

// reader takes a key apart; flip is 0xFF where its bytes are inverted.
type reader struct {
	key  []byte
	flip byte
}

// begin finds the direction of the field that the key begins with.
func (r *reader) begin() error {
	if len(r.key) == 0 {
		return errKey
	}
	r.flip = 0
	if r.key[0]&inverted != 0 {
		r.flip = 0xFF
	}
	return nil
}

func (r *reader) byte() (byte, error) {
	if len(r.key) == 0 {
		return 0, errKey
	}
	b := r.key[0] ^ r.flip
	r.key = r.key[1:]
	return b, nil
}

func (r *reader) uint64() (uint64, error) {
	if len(r.key) < 8 {
		return 0, errKey
	}
	u := binary.BigEndian.Uint64(r.key)
	r.key = r.key[8:]
	if r.flip != 0 {
		u = ^u
	}
	return u, nil
}

// appendBytes appends the next n bytes to dst.
func (r *reader) appendBytes(dst []byte, n int) ([]byte, error) {
	if n < 0 || len(r.key) < n {
		return dst, errKey
	}
	start := len(dst)
	dst = append(dst, r.key[:n]...)
	r.key = r.key[n:]
	if r.flip != 0 {
		invert(dst[start:])
	}
	return dst, nil
}

// appendCString appends what stands before the next 00.
func (r *reader) appendCString(dst []byte) ([]byte, error) {
	for {
		b, err := r.byte()
		if err != nil || b == 0 {
			return dst, err
		}
		dst = append(dst, b)
	}
}

// appendString appends a string without its escapes.
func (r *reader) appendString(dst []byte) ([]byte, error) {
	for {
		b, err := r.byte()
		if err != nil {
			return dst, err
		}
		if b == 0 {
			switch b, err = r.byte(); {
			case err != nil:
				return dst, err
			case b == stringEnd:
				return dst, nil
			case b != stringEscape:
				return dst, errKey
			}
			b = 0
		}
		dst = append(dst, b)
	}
}

func (r *reader) length() (int, error) {
	b, err := r.byte()
	if err != nil || b != longLength {
		return int(b), err
	}
	if len(r.key) < 4 {
		return 0, errKey
	}
	n := binary.BigEndian.Uint32(r.key)
	r.key = r.key[4:]
	if r.flip != 0 {
		n = ^n
	}
	return int(n), nil
}

func (d *decoder) field() error {
	if err := d.begin(); err != nil {
		return err
	}
	return d.value(maxDepth)
}

// value reads a value: its type into kind, its bytes onto out.
func (d *decoder) value(depth int) error {
	tag, err := d.byte()
	if err != nil {
		return err
	}
	switch tag {
	case tagUndefined:
		return d.undefined()
	case tagNaN, tagNegative, tagZero, tagPositive:
		return d.number(tag)
	case tagString:
		return d.text()
	case tagObject:
		d.kind = bson.TypeObject
		return d.elements(depth, d.name)
	case tagArray:
		d.kind = bson.TypeArray
		return d.elements(depth, nil)
	default:
		return d.plain(tag, depth)
	}
}

// plain reads the values that are all in the key.
func (d *decoder) plain(tag byte, depth int) (err error) {
	switch tag {
	case tagMinKey:
		d.kind = bson.TypeMinKey
	case tagMaxKey:
		d.kind = bson.TypeMaxKey
	case tagNull:
		d.kind = bson.TypeNull
	case tagFalse, tagTrue:
		d.kind = bson.TypeBool
		d.out = append(d.out, tag-tagFalse)
	case tagBinary:
		return d.binary()
	case tagObjectID:
		d.kind = bson.TypeObjectID
		d.out, err = d.appendBytes(d.out, 12)
	case tagDate:
		return d.fixed(bson.TypeDate, signBit)
	case tagTimestamp:
		return d.fixed(bson.TypeTimestamp, 0)
	case tagRegex:
		return d.regex()
	case tagDBPointer:
		return d.pointer()
	case tagCode:
		d.kind = bson.TypeCode
		return d.stringData()
	case tagCodeWithScope:
		return d.codeWithScope(depth)
	default:
		return errKey
	}
	return err
}

func (d *decoder) undefined() error {
	f, err := d.bits.next()
	switch {
	case err != nil:
		return err
	case f == formDefault:
		d.kind = bson.TypeUndefined
	case f == formMissing:
		d.kind = bson.TypeMissing
	default:
		return errTypeBits
	}
	return nil
}

func (d *decoder) text() error {
	f, err := d.bits.next()
	switch {
	case err != nil:
		return err
	case f == formDefault:
		d.kind = bson.TypeString
	case f == formSymbol:
		d.kind = bson.TypeSymbol
	default:
		return errTypeBits
	}
	return d.stringData()
}

func (d *decoder) stringData() (err error) {
	start := d.open()
	if d.out, err = d.appendString(d.out); err != nil {
		return err
	}
	d.out = append(d.out, 0)
	binary.LittleEndian.PutUint32(d.out[start:], uint32(len(d.out)-start-4))
	return nil
}

// open leaves room for a length.
func (d *decoder) open() int {
	d.out = append(d.out, 0, 0, 0, 0)
	return len(d.out) - 4
}

func (d *decoder) fixed(t bson.Type, flip uint64) error {
	u, err := d.uint64()
	if err != nil {
		return err
	}
	d.kind = t
	d.out = binary.LittleEndian.AppendUint64(d.out, u^flip)
	return nil
}

func (d *decoder) binary() error {
	n, err := d.length()
	if err != nil {
		return err
	}
	d.kind = bson.TypeBinary
	d.out = binary.LittleEndian.AppendUint32(d.out, uint32(n))
	start := len(d.out)
	if d.out, err = d.appendBytes(d.out, n+1); err != nil {
		return err
	}
	if b := d.out[start:]; b[0] == oldBinary && (n < 4 || binary.LittleEndian.Uint32(b[1:]) != uint32(n-4)) {
		return errKey
	}
	return nil
}

// oldBinary is the subtype whose bytes begin with a length of their own.
const oldBinary = 2

func (d *decoder) regex() (err error) {
	d.kind = bson.TypeRegex
	for range 2 {
		if d.out, err = d.appendCString(d.out); err != nil {
			return err
		}
		d.out = append(d.out, 0)
	}
	return nil
}

const objectIDBytes = 12

func (d *decoder) pointer() error {
	n, err := d.length()
	if err != nil {
		return err
	}
	if n <= objectIDBytes {
		return errKey
	}
	d.kind = bson.TypeDBPointer
	d.out = binary.LittleEndian.AppendUint32(d.out, uint32(n-objectIDBytes))
	d.out, err = d.appendBytes(d.out, n)
	if err == nil && d.out[len(d.out)-objectIDBytes-1] != 0 {
		return errKey
	}
	return err
}

func (d *decoder) codeWithScope(depth int) error {
	start := d.open()
	if err := d.stringData(); err != nil {
		return err
	}
	if err := d.elements(depth, d.name); err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(d.out[start:], uint32(len(d.out)-start))
	d.kind = bson.TypeCodeWithScope
	return nil
}

// elements reads an object or array up to its end; name appends an element's name, for arrays it is nil. It leaves kind as
// it was.
func (d *decoder) elements(depth int, name func() error) error {
	if depth == 0 {
		return errTooDeep
	}
	kind := d.kind
	start := d.open()
	for i := 0; ; i++ {
		if len(d.key) == 0 {
			return errKey
		}
		if d.key[0]^d.flip == tagEnd {
			break
		}
		at := len(d.out)
		d.out = append(d.out, 0)
		if name == nil {
			d.out = append(append(d.out, bson.IndexKey(i)...), 0)
		} else if err := name(); err != nil {
			return err
		}
		if err := d.value(depth - 1); err != nil {
			return err
		}
		if d.kind == bson.TypeMissing {
			return errTypeBits
		}
		d.out[at] = byte(d.kind)
	}
	d.key = d.key[1:]
	d.out = append(d.out, 0)
	binary.LittleEndian.PutUint32(d.out[start:], uint32(len(d.out)-start))
	d.kind = kind
	return nil
}

// name reads an element's class, which its value repeats, and name.
func (d *decoder) name() (err error) {
	d.key = d.key[1:]
	if d.out, err = d.appendCString(d.out); err != nil {
		return err
	}
	d.out = append(d.out, 0)
	return nil
}
