package accumulator

import (
	"encoding/binary"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// MaxArrayBytes is how large the array of one group may grow.
const MaxArrayBytes = 100 << 20

func arrayOperators() []Operator {
	return []Operator{
		{Name: "$push", Since: "2.2", Doc: "An array of all values; missing ones are left out.", Group: one(newPush, grows), Window: foldWindow},
		{Name: "$concatArrays", Since: "8.1", Doc: "The elements of all arrays in one.", Group: one(newConcat, grows), Window: foldWindow},
	}
}

// growing is an array under construction.
type growing struct {
	buf []byte
	n   int
}

func (g *growing) append(op string, v bson.Value) error {
	if len(g.buf)+len(v.Data) > MaxArrayBytes {
		return tooMuchMemory(op)
	}
	g.put(v)
	return nil
}

// clear begins a new array in the same memory.
func (g *growing) clear() { g.n, g.buf = 0, append(g.buf[:0], 0, 0, 0, 0) }

// put appends v, whatever that comes to: what is held elsewhere is bounded already.
func (g *growing) put(v bson.Value) {
	if g.buf == nil {
		g.buf = make([]byte, 4, 64)
	}
	g.buf = append(g.buf, byte(v.Type))
	g.buf = append(append(g.buf, bson.IndexKey(g.n)...), 0)
	g.buf = append(g.buf, v.Data...)
	g.n++
}

func tooMuchMemory(op string) error {
	return mongoerr.New(mongoerr.ExceededMemoryLimit,
		"%s used too much memory and cannot spill to disk. Memory limit: %d bytes", op, MaxArrayBytes)
}

// value closes the array behind the bytes in use, so that more can be appended later.
func (g *growing) value() bson.Value {
	if g.n == 0 {
		return bson.EmptyArr
	}
	whole := append(g.buf, 0)
	binary.LittleEndian.PutUint32(whole, uint32(len(whole)))
	g.buf = whole[:len(whole)-1]
	return bson.Value{Type: bson.TypeArray, Data: whole}
}

func (g *growing) size() int { return cap(g.buf) + 64 }

func (g *growing) appendAll(op string, array bson.Value) error {
	for it := array.Doc().Iter(); it.Next(); {
		if err := g.append(op, it.Value()); err != nil {
			return err
		}
	}
	return nil
}

type push struct{ growing }

func newPush(bson.Value) (Fold, error) { return &push{}, nil }

func (p *push) Add(args []bson.Value) error {
	if args[0].IsMissing() {
		return nil
	}
	return p.append("$push", args[0])
}

func (p *push) Value() (bson.Value, error)     { return p.value(), nil }
func (p *push) Partial() bson.Value            { return p.value() }
func (p *push) Merge(partial bson.Value) error { return p.appendAll("$push", partial) }
func (p *push) Size() int                      { return p.size() }

type concat struct{ growing }

func newConcat(bson.Value) (Fold, error) { return &concat{}, nil }

func (c *concat) Add(args []bson.Value) error {
	switch v := args[0]; v.Type {
	case bson.TypeMissing:
		return nil
	case bson.TypeArray:
		return c.appendAll("$concatArrays", v)
	default:
		return needsArray("$concatArrays", v)
	}
}

func (c *concat) Value() (bson.Value, error)     { return c.value(), nil }
func (c *concat) Partial() bson.Value            { return c.value() }
func (c *concat) Merge(partial bson.Value) error { return c.appendAll("$concatArrays", partial) }
func (c *concat) Size() int                      { return c.size() }

func needsArray(op string, v bson.Value) error {
	return mongoerr.New(mongoerr.TypeMismatch, "%s requires array inputs, but input %s is of type %s", op, v.Computed(), v.Type)
}
