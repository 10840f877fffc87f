package bson

import (
	"encoding/binary"
	"math"
	"time"
)

// Value is one BSON value: its type and the bytes that stand for it in a document. The zero Value is a missing one.
// Accessors expect the type they are named for and a valid value.
type Value struct {
	Type Type
	Data []byte
}

// Values without bytes.
var (
	Missing   = Value{}
	Null      = Value{Type: TypeNull}
	Undefined = Value{Type: TypeUndefined}
	MinKey    = Value{Type: TypeMinKey}
	MaxKey    = Value{Type: TypeMaxKey}
	True      = Value{TypeBool, []byte{1}}
	False     = Value{TypeBool, []byte{0}}
	EmptyStr  = Value{TypeString, []byte{1, 0, 0, 0, 0}}
	EmptyArr  = Value{TypeArray, EmptyDoc}
)

// Int32 is v as a value.
func Int32(v int32) Value {
	return Value{TypeInt32, binary.LittleEndian.AppendUint32(make([]byte, 0, 4), uint32(v))}
}

// Int64 is v as a value.
func Int64(v int64) Value { return value64(TypeInt64, uint64(v)) }

// Double is v as a value.
func Double(v float64) Value { return value64(TypeDouble, math.Float64bits(v)) }

// Date is the date ms milliseconds after the epoch.
func Date(ms int64) Value { return value64(TypeDate, uint64(ms)) }

// Timestamp is the timestamp of seconds t and increment i.
func Timestamp(t, i uint32) Value { return value64(TypeTimestamp, uint64(t)<<32|uint64(i)) }

// Bool is v as a value.
func Bool(v bool) Value {
	if v {
		return True
	}
	return False
}

// String is s as a value.
func String(s string) Value { return Value{TypeString, appendString(make([]byte, 0, len(s)+5), s)} }

// Symbol is s as a symbol.
func Symbol(s string) Value { return Value{TypeSymbol, appendString(make([]byte, 0, len(s)+5), s)} }

// Code is JavaScript code.
func Code(s string) Value { return Value{TypeCode, appendString(make([]byte, 0, len(s)+5), s)} }

// ObjectID is id as a value.
func ObjectID(id [12]byte) Value { return Value{TypeObjectID, append([]byte(nil), id[:]...)} }

// Binary is data of the given subtype.
func Binary(subtype byte, data []byte) Value {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, len(data)+5), uint32(len(data)))
	b = append(b, subtype)
	return Value{TypeBinary, append(b, data...)}
}

// Regex is a regular expression; neither part may hold a zero byte.
func Regex(pattern, options string) Value {
	b := append(make([]byte, 0, len(pattern)+len(options)+2), pattern...)
	b = append(b, 0)
	b = append(b, options...)
	return Value{TypeRegex, append(b, 0)}
}

func value64(t Type, v uint64) Value {
	return Value{t, binary.LittleEndian.AppendUint64(make([]byte, 0, 8), v)}
}

func appendString(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s)+1))
	b = append(b, s...)
	return append(b, 0)
}

// IsMissing says whether there is no value.
func (v Value) IsMissing() bool { return v.Type == TypeMissing }

// IsNullish says whether v is null, undefined or missing.
func (v Value) IsNullish() bool {
	return v.Type == TypeNull || v.Type == TypeMissing || v.Type == TypeUndefined
}

// IsNumber says whether v is of a numeric type.
func (v Value) IsNumber() bool { return v.Type.IsNumber() }

// Int32 is the value of an int.
func (v Value) Int32() int32 { return int32(binary.LittleEndian.Uint32(v.Data)) }

// Int64 is the value of a long.
func (v Value) Int64() int64 { return int64(binary.LittleEndian.Uint64(v.Data)) }

// Double is the value of a double.
func (v Value) Double() float64 { return math.Float64frombits(binary.LittleEndian.Uint64(v.Data)) }

// Bool is the value of a bool.
func (v Value) Bool() bool { return v.Data[0] != 0 }

// Millis is a date's milliseconds since the epoch.
func (v Value) Millis() int64 { return int64(binary.LittleEndian.Uint64(v.Data)) }

// Time is a date as a UTC time.
func (v Value) Time() time.Time { return time.UnixMilli(v.Millis()).UTC() }

// Timestamp is a timestamp's seconds and increment.
func (v Value) Timestamp() (t, i uint32) {
	u := binary.LittleEndian.Uint64(v.Data)
	return uint32(u >> 32), uint32(u)
}

// Str is the text of a string, symbol or code; it shares the value's bytes.
func (v Value) Str() string { return str(v.Data[4 : len(v.Data)-1]) }

// Doc is the document of an object or array.
func (v Value) Doc() Doc { return Doc(v.Data) }

// ObjectID is the value of an ObjectId.
func (v Value) ObjectID() [12]byte { return [12]byte(v.Data) }

// Binary is a binary's subtype and bytes. The old subtype 2 carries a second length, which is left out.
func (v Value) Binary() (subtype byte, data []byte) {
	subtype, data = v.Data[4], v.Data[5:]
	if subtype == 2 && len(data) >= 4 && int(binary.LittleEndian.Uint32(data)) == len(data)-4 {
		data = data[4:]
	}
	return subtype, data
}

// Regex is a regular expression's pattern and options.
func (v Value) Regex() (pattern, options string) {
	p := cstring(v.Data)
	return str(v.Data[:p]), str(v.Data[p+1 : len(v.Data)-1])
}

// DBPointer is a DBPointer's namespace and id.
func (v Value) DBPointer() (ns string, id [12]byte) {
	n := len(v.Data) - 12
	return str(v.Data[4 : n-1]), [12]byte(v.Data[n:])
}

// CodeWithScope is the code and scope.
func (v Value) CodeWithScope() (code string, scope Doc) {
	n := int(binary.LittleEndian.Uint32(v.Data[4:]))
	return str(v.Data[8 : 8+n-1]), Doc(v.Data[8+n:])
}

// Clone is v with bytes of its own.
func (v Value) Clone() Value {
	if v.Data == nil {
		return v
	}
	return Value{v.Type, append([]byte(nil), v.Data...)}
}

// Truthy is MongoDB's reading of v as a boolean: false, null, undefined, missing and numeric zero are false.
func (v Value) Truthy() bool {
	switch v.Type {
	case TypeBool:
		return v.Bool()
	case TypeInt32:
		return v.Int32() != 0
	case TypeInt64:
		return v.Int64() != 0
	case TypeDouble:
		return v.Double() != 0
	case TypeDecimal:
		return !v.Decimal().IsZero()
	case TypeNull, TypeMissing, TypeUndefined:
		return false
	}
	return true
}

// Identical says whether a and b are of one type and the same bytes.
func Identical(a, b Value) bool { return a.Type == b.Type && string(a.Data) == string(b.Data) }
