package bson

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// Collator compares strings where a command asks for more than bytes.
type Collator interface {
	CompareString(a, b string) int
}

// Compare orders any two values as MongoDB does: by Class, then by value. Missing and undefined are below null.
func Compare(a, b Value) int { return CompareWith(a, b, nil) }

// CompareWith is Compare with strings (not field names) compared by c, when c is not nil.
func CompareWith(a, b Value, c Collator) int {
	if ca, cb := a.Type.Class(), b.Type.Class(); ca != cb {
		return cmpOrdered(ca, cb)
	}
	switch a.Type {
	case TypeInt32, TypeInt64, TypeDouble, TypeDecimal:
		return CompareNumbers(a, b)
	case TypeString, TypeSymbol:
		if c != nil {
			return c.CompareString(a.Str(), b.Str())
		}
		return strings.Compare(a.Str(), b.Str())
	case TypeObject:
		return CompareDocs(a.Doc(), b.Doc(), c)
	case TypeArray:
		return compareArrays(a.Doc(), b.Doc(), c)
	case TypeBinary:
		return compareBinary(a.Data, b.Data)
	case TypeObjectID, TypeBool:
		return bytes.Compare(a.Data, b.Data)
	case TypeDate:
		return cmpOrdered(a.Millis(), b.Millis())
	case TypeTimestamp:
		return cmpOrdered(binary.LittleEndian.Uint64(a.Data), binary.LittleEndian.Uint64(b.Data))
	case TypeRegex:
		ap, ao := a.Regex()
		bp, bo := b.Regex()
		if d := strings.Compare(ap, bp); d != 0 {
			return d
		}
		return strings.Compare(ao, bo)
	case TypeDBPointer:
		if d := cmpOrdered(len(a.Data), len(b.Data)); d != 0 {
			return d
		}
		return bytes.Compare(a.Data[4:], b.Data[4:])
	case TypeCode:
		return strings.Compare(a.Str(), b.Str())
	case TypeCodeWithScope:
		ac, as := a.CodeWithScope()
		bc, bs := b.CodeWithScope()
		if d := strings.Compare(ac, bc); d != 0 {
			return d
		}
		return CompareDocs(as, bs, c)
	}
	return 0
}

// compareBinary orders binaries by length, then subtype, then bytes.
func compareBinary(a, b []byte) int {
	if d := cmpOrdered(binary.LittleEndian.Uint32(a), binary.LittleEndian.Uint32(b)); d != 0 {
		return d
	}
	return bytes.Compare(a[4:], b[4:])
}

// CompareDocs orders documents element by element: class of type, name, value; a prefix is smaller.
func CompareDocs(a, b Doc, c Collator) int {
	ia, ib := a.Iter(), b.Iter()
	for {
		na, nb := ia.Next(), ib.Next()
		if !na || !nb {
			return boolInt(na) - boolInt(nb)
		}
		va, vb := ia.Value(), ib.Value()
		if d := cmpOrdered(va.Type.Class(), vb.Type.Class()); d != 0 {
			return d
		}
		if d := strings.Compare(ia.Key(), ib.Key()); d != 0 {
			return d
		}
		if d := CompareWith(va, vb, c); d != 0 {
			return d
		}
	}
}

func compareArrays(a, b Doc, c Collator) int {
	ia, ib := a.Iter(), b.Iter()
	for {
		na, nb := ia.Next(), ib.Next()
		if !na || !nb {
			return boolInt(na) - boolInt(nb)
		}
		if d := CompareWith(ia.Value(), ib.Value(), c); d != 0 {
			return d
		}
	}
}

// Equal says whether Compare finds a and b equal.
func Equal(a, b Value) bool { return Compare(a, b) == 0 }
