package bson

import (
	"encoding/binary"
	"math"
)

// Builder appends a document to a buffer. Element methods return the Builder, so that small documents chain:
//
//	doc := bson.Build().Int32("n", 1).Double("ok", 1).Doc()
//
// Nested documents and arrays stand between Object or Array and End; inside an array the names are given as for any
// document (IndexKey), or left to the Item methods of ArrayBuilder.
type Builder struct {
	buf   []byte
	start int
	open  []int
}

// Build starts a document in a new buffer.
func Build() *Builder { return BuildOn(make([]byte, 0, 128)) }

// BuildOn starts a document behind what dst holds; Doc returns the document alone and Bytes the whole.
func BuildOn(dst []byte) *Builder {
	b := &Builder{}
	b.Reset(dst)
	return b
}

// Reset starts anew behind what dst holds.
func (b *Builder) Reset(dst []byte) {
	b.start = len(dst)
	b.buf = append(dst, 0, 0, 0, 0)
	b.open = b.open[:0]
}

// Reopen goes on with the document that Doc has returned last, in place.
func (b *Builder) Reopen() *Builder {
	b.buf = b.buf[:len(b.buf)-1]
	return b
}

// Holds says whether doc, which is not empty, is the document that was built last.
func (b *Builder) Holds(doc Doc) bool {
	return len(b.buf) == b.start+len(doc) && &b.buf[b.start] == &doc[0]
}

func (b *Builder) head(t Type, key string) {
	b.buf = append(b.buf, byte(t))
	b.buf = append(b.buf, key...)
	b.buf = append(b.buf, 0)
}

// Value appends v under key; a missing v is left out.
func (b *Builder) Value(key string, v Value) *Builder {
	if v.Type != TypeMissing {
		b.head(v.Type, key)
		b.buf = append(b.buf, v.Data...)
	}
	return b
}

// Int32 appends an int.
func (b *Builder) Int32(key string, v int32) *Builder {
	b.head(TypeInt32, key)
	b.buf = binary.LittleEndian.AppendUint32(b.buf, uint32(v))
	return b
}

func (b *Builder) bits(t Type, key string, v uint64) *Builder {
	b.head(t, key)
	b.buf = binary.LittleEndian.AppendUint64(b.buf, v)
	return b
}

// Int64 appends a long.
func (b *Builder) Int64(key string, v int64) *Builder { return b.bits(TypeInt64, key, uint64(v)) }

// Number appends v as an int when it fits one, else as a long.
func (b *Builder) Number(key string, v int64) *Builder {
	if v >= math.MinInt32 && v <= math.MaxInt32 {
		return b.Int32(key, int32(v))
	}
	return b.Int64(key, v)
}

// Double appends a double.
func (b *Builder) Double(key string, v float64) *Builder {
	return b.bits(TypeDouble, key, math.Float64bits(v))
}

// Date appends a date of ms milliseconds after the epoch.
func (b *Builder) Date(key string, ms int64) *Builder { return b.bits(TypeDate, key, uint64(ms)) }

// Timestamp appends a timestamp.
func (b *Builder) Timestamp(key string, t, i uint32) *Builder {
	return b.bits(TypeTimestamp, key, uint64(t)<<32|uint64(i))
}

// Bool appends a bool.
func (b *Builder) Bool(key string, v bool) *Builder {
	b.head(TypeBool, key)
	if v {
		b.buf = append(b.buf, 1)
	} else {
		b.buf = append(b.buf, 0)
	}
	return b
}

// String appends a string.
func (b *Builder) String(key, v string) *Builder {
	b.head(TypeString, key)
	b.buf = appendString(b.buf, v)
	return b
}

// Null appends null.
func (b *Builder) Null(key string) *Builder { b.head(TypeNull, key); return b }

// ObjectID appends an ObjectId.
func (b *Builder) ObjectID(key string, id [12]byte) *Builder {
	b.head(TypeObjectID, key)
	b.buf = append(b.buf, id[:]...)
	return b
}

// Binary appends binary data.
func (b *Builder) Binary(key string, subtype byte, data []byte) *Builder {
	b.head(TypeBinary, key)
	b.buf = binary.LittleEndian.AppendUint32(b.buf, uint32(len(data)))
	b.buf = append(b.buf, subtype)
	b.buf = append(b.buf, data...)
	return b
}

// Document appends a whole document.
func (b *Builder) Document(key string, d Doc) *Builder { return b.Value(key, d.Value()) }

// Object opens a nested document.
func (b *Builder) Object(key string) *Builder { return b.nest(TypeObject, key) }

// Array opens a nested array.
func (b *Builder) Array(key string) *Builder { return b.nest(TypeArray, key) }

func (b *Builder) nest(t Type, key string) *Builder {
	b.head(t, key)
	b.open = append(b.open, len(b.buf))
	b.buf = append(b.buf, 0, 0, 0, 0)
	return b
}

// End closes the document or array opened last.
func (b *Builder) End() *Builder {
	at := b.open[len(b.open)-1]
	b.open = b.open[:len(b.open)-1]
	b.buf = append(b.buf, 0)
	binary.LittleEndian.PutUint32(b.buf[at:], uint32(len(b.buf)-at))
	return b
}

// Strings appends an array of strings.
func (b *Builder) Strings(key string, vs []string) *Builder {
	b.Array(key)
	for i, v := range vs {
		b.String(IndexKey(i), v)
	}
	return b.End()
}

// Fields appends all elements of d.
func (b *Builder) Fields(d Doc) *Builder {
	if len(d) > 5 {
		b.buf = append(b.buf, d[4:len(d)-1]...)
	}
	return b
}

// Len is the number of bytes so far.
func (b *Builder) Len() int { return len(b.buf) - b.start }

// Cap is the size of the buffer.
func (b *Builder) Cap() int { return cap(b.buf) }

// Buffer is what the buffer holds so far, and Replace has the builder go on in another one that holds the same.
func (b *Builder) Buffer() []byte { return b.buf }

// Replace is Buffer's.
func (b *Builder) Replace(buf []byte) { b.buf = buf }

// Bytes closes the document and returns the whole buffer.
func (b *Builder) Bytes() []byte {
	if len(b.open) > 0 {
		panic("bson: a nested document was not ended")
	}
	b.buf = append(b.buf, 0)
	binary.LittleEndian.PutUint32(b.buf[b.start:], uint32(len(b.buf)-b.start))
	return b.buf
}

// Doc closes the document and returns it.
func (b *Builder) Doc() Doc { return Doc(b.Bytes()[b.start:]) }

// ArrayOf is an array of values.
func ArrayOf(vs ...Value) Value {
	n := 5
	for _, v := range vs {
		n += len(v.Data) + 6
	}
	b := BuildOn(make([]byte, 0, n))
	for i, v := range vs {
		b.Value(IndexKey(i), v)
	}
	return b.Doc().ArrayValue()
}
