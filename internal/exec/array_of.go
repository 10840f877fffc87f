package exec

import (
	"encoding/binary"

	"github.com/ebbdb/ebb/internal/bson"
)

// arrayOf is an array under construction in memory that is used again.
type arrayOf struct {
	buf []byte
	n   int
}

func (a *arrayOf) reset() {
	a.buf = append(a.buf[:0], 0, 0, 0, 0)
	a.n = 0
}

func (a *arrayOf) add(v bson.Value) {
	a.buf = appendElement(a.buf, bson.IndexKey(a.n), v)
	a.n++
}

// value closes the array; it is good until the next reset.
func (a *arrayOf) value() bson.Value {
	a.buf = append(a.buf, 0)
	binary.LittleEndian.PutUint32(a.buf, uint32(len(a.buf)))
	return bson.Value{Type: bson.TypeArray, Data: a.buf}
}
