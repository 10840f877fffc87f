package bson

import (
	"encoding/binary"
	"strconv"
	"unsafe"
)

// Doc is a raw document or array: length, elements, a final zero. Methods expect it to be valid (see Validate); on
// bytes that are not they may miss elements but never read outside of it.
type Doc []byte

// EmptyDoc is {}. Do not change it.
var EmptyDoc = Doc{5, 0, 0, 0, 0}

// Iter walks the elements of a document:
//
//	for it := d.Iter(); it.Next(); { use(it.Key(), it.Value()) }
type Iter struct {
	rest  []byte
	key   []byte
	value Value
}

// Iter returns an iterator that stands before the first element.
func (d Doc) Iter() Iter {
	if len(d) < 5 {
		return Iter{}
	}
	return Iter{rest: d[4 : len(d)-1]}
}

// Next moves to the next element and says whether there is one.
func (it *Iter) Next() bool {
	b := it.rest
	if len(b) < 2 {
		return false
	}
	t := Type(b[0])
	i := 1
	for b[i] != 0 {
		i++
		if i == len(b) {
			it.rest = nil
			return false
		}
	}
	n := valueSize(t, b[i+1:])
	if n < 0 {
		it.rest = nil
		return false
	}
	it.key = b[1:i]
	it.value = Value{t, b[i+1 : i+1+n : i+1+n]}
	it.rest = b[i+1+n:]
	return true
}

// Key is the current element's name; it shares the document's bytes.
func (it *Iter) Key() string { return str(it.key) }

// Value is the current element's value; it shares the document's bytes.
func (it *Iter) Value() Value { return it.value }

// Lookup is the value of the first element named key, or a missing Value.
func (d Doc) Lookup(key string) Value {
	if len(d) < 5 {
		return Value{}
	}
	b := []byte(d[4 : len(d)-1])
	for len(b) >= 2 {
		t := Type(b[0])
		i := 1
		for b[i] != 0 {
			i++
			if i == len(b) {
				return Value{}
			}
		}
		n := valueSize(t, b[i+1:])
		if n < 0 {
			return Value{}
		}
		if i-1 == len(key) && string(b[1:i]) == key {
			return Value{t, b[i+1 : i+1+n : i+1+n]}
		}
		b = b[i+1+n:]
	}
	return Value{}
}

// Index is the value at position i of an array, or a missing Value.
func (d Doc) Index(i int) Value {
	it := d.Iter()
	for ; it.Next(); i-- {
		if i == 0 {
			return it.Value()
		}
	}
	return Value{}
}

// Count is the number of elements.
func (d Doc) Count() int {
	n := 0
	for it := d.Iter(); it.Next(); {
		n++
	}
	return n
}

// leastLevelBytes is what an object inside another takes at least: its type, an empty name and itself.
const leastLevelBytes = 7

// NestsDeeper says whether d has more levels of objects and arrays than so many, itself the first. What is too small for
// that is not looked at.
func (d Doc) NestsDeeper(levels int) bool {
	if len(d) < len(EmptyDoc)+levels*leastLevelBytes {
		return false
	}
	if levels == 0 {
		return true
	}
	for it := d.Iter(); it.Next(); {
		if v := it.Value(); (v.Type == TypeObject || v.Type == TypeArray) && v.Doc().NestsDeeper(levels-1) {
			return true
		}
	}
	return false
}

// IsEmpty says whether there is no element.
func (d Doc) IsEmpty() bool { return len(d) <= 5 }

// FirstKey is the name of the first element, or "".
func (d Doc) FirstKey() string {
	if it := d.Iter(); it.Next() {
		return it.Key()
	}
	return ""
}

// Values appends the values of an array to dst.
func (d Doc) Values(dst []Value) []Value {
	for it := d.Iter(); it.Next(); {
		dst = append(dst, it.Value())
	}
	return dst
}

// Clone is a copy with bytes of its own.
func (d Doc) Clone() Doc { return append(Doc(nil), d...) }

// Value is the document as a value.
func (d Doc) Value() Value { return Value{TypeObject, d} }

// ArrayValue is the document as an array value.
func (d Doc) ArrayValue() Value { return Value{TypeArray, d} }

// valueSize is the number of bytes that a value of type t takes at the start of b, or -1 when b does not hold one.
func valueSize(t Type, b []byte) int {
	n := 0
	switch t {
	case TypeInt32:
		n = 4
	case TypeDouble, TypeInt64, TypeDate, TypeTimestamp:
		n = 8
	case TypeString, TypeCode, TypeSymbol:
		if len(b) < 4 {
			return -1
		}
		l := int(binary.LittleEndian.Uint32(b))
		if l < 1 || l > len(b)-4 {
			return -1
		}
		return 4 + l
	case TypeObject, TypeArray, TypeCodeWithScope:
		if len(b) < 4 {
			return -1
		}
		n = int(binary.LittleEndian.Uint32(b))
		if n < 5 {
			return -1
		}
	case TypeBinary:
		if len(b) < 5 {
			return -1
		}
		l := int(binary.LittleEndian.Uint32(b))
		if l > len(b)-5 {
			return -1
		}
		return 5 + l
	case TypeObjectID:
		n = 12
	case TypeBool:
		n = 1
	case TypeDecimal:
		n = 16
	case TypeNull, TypeUndefined, TypeMinKey, TypeMaxKey:
		return 0
	case TypeRegex:
		p := cstring(b)
		if p < 0 {
			return -1
		}
		o := cstring(b[p+1:])
		if o < 0 {
			return -1
		}
		return p + o + 2
	case TypeDBPointer:
		if len(b) < 4 {
			return -1
		}
		l := int(binary.LittleEndian.Uint32(b))
		if l < 1 || l > len(b)-16 {
			return -1
		}
		return 16 + l
	default:
		return -1
	}
	if n > len(b) {
		return -1
	}
	return n
}

// cstring is the length of the zero-terminated string at the start of b without its zero, or -1.
func cstring(b []byte) int {
	for i, c := range b {
		if c == 0 {
			return i
		}
	}
	return -1
}

func str(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

var indexKeys = func() (k [1000]string) {
	for i := range k {
		k[i] = strconv.Itoa(i)
	}
	return
}()

// IndexKey is the element name of position i of an array.
func IndexKey(i int) string {
	if i < len(indexKeys) {
		return indexKeys[i]
	}
	return strconv.Itoa(i)
}
