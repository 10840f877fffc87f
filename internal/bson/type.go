// Package bson is raw BSON: documents and values as bytes, looked up, compared, computed with, printed and built without
// unmarshalling. It knows nothing of queries, paths over arrays, storage or the wire.
package bson

// Type is a BSON type byte. The zero Type is that of a missing value.
type Type byte

// The BSON types.
const (
	TypeMissing       Type = 0x00
	TypeDouble        Type = 0x01
	TypeString        Type = 0x02
	TypeObject        Type = 0x03
	TypeArray         Type = 0x04
	TypeBinary        Type = 0x05
	TypeUndefined     Type = 0x06
	TypeObjectID      Type = 0x07
	TypeBool          Type = 0x08
	TypeDate          Type = 0x09
	TypeNull          Type = 0x0A
	TypeRegex         Type = 0x0B
	TypeDBPointer     Type = 0x0C
	TypeCode          Type = 0x0D
	TypeSymbol        Type = 0x0E
	TypeCodeWithScope Type = 0x0F
	TypeInt32         Type = 0x10
	TypeTimestamp     Type = 0x11
	TypeInt64         Type = 0x12
	TypeDecimal       Type = 0x13
	TypeMinKey        Type = 0xFF
	TypeMaxKey        Type = 0x7F
)

// String is MongoDB's name of the type, as $type and error messages use it.
func (t Type) String() string {
	switch t {
	case TypeMissing:
		return "missing"
	case TypeDouble:
		return "double"
	case TypeString:
		return "string"
	case TypeObject:
		return "object"
	case TypeArray:
		return "array"
	case TypeBinary:
		return "binData"
	case TypeUndefined:
		return "undefined"
	case TypeObjectID:
		return "objectId"
	case TypeBool:
		return "bool"
	case TypeDate:
		return "date"
	case TypeNull:
		return "null"
	case TypeRegex:
		return "regex"
	case TypeDBPointer:
		return "dbPointer"
	case TypeCode:
		return "javascript"
	case TypeSymbol:
		return "symbol"
	case TypeCodeWithScope:
		return "javascriptWithScope"
	case TypeInt32:
		return "int"
	case TypeTimestamp:
		return "timestamp"
	case TypeInt64:
		return "long"
	case TypeDecimal:
		return "decimal"
	case TypeMinKey:
		return "minKey"
	case TypeMaxKey:
		return "maxKey"
	}
	return "unknown"
}

// TypeNamed is the type with MongoDB's name (not the alias "number").
func TypeNamed(name string) (Type, bool) {
	for t := 1; t < 256; t++ {
		if Type(t).Known() && Type(t).String() == name {
			return Type(t), true
		}
	}
	return 0, false
}

// Known says whether t is a BSON type.
func (t Type) Known() bool {
	return t >= TypeDouble && t <= TypeDecimal || t == TypeMinKey || t == TypeMaxKey
}

// IsNumber says whether t is one of the four numeric types.
func (t Type) IsNumber() bool {
	return t == TypeInt32 || t == TypeDouble || t == TypeInt64 || t == TypeDecimal
}

// Class is the place of t in MongoDB's comparison order: types of one class compare by value.
func (t Type) Class() int {
	switch t {
	case TypeMinKey:
		return -1
	case TypeMissing, TypeUndefined:
		return 0
	case TypeNull:
		return 5
	case TypeDouble, TypeInt32, TypeInt64, TypeDecimal:
		return 10
	case TypeString, TypeSymbol:
		return 15
	case TypeObject:
		return 20
	case TypeArray:
		return 25
	case TypeBinary:
		return 30
	case TypeObjectID:
		return 35
	case TypeBool:
		return 40
	case TypeDate:
		return 45
	case TypeTimestamp:
		return 47
	case TypeRegex:
		return 50
	case TypeDBPointer:
		return 55
	case TypeCode:
		return 60
	case TypeCodeWithScope:
		return 65
	}
	return 127
}
