package match

import (
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
)

func bitwiseOperators() []Operator {
	return []Operator{
		{Name: "$bitsAllClear", Doc: "Matches values of which all given bits are 0.", Since: "3.2", field: parseBits(BitsAllClear)},
		{Name: "$bitsAllSet", Doc: "Matches values of which all given bits are 1.", Since: "3.2", field: parseBits(BitsAllSet)},
		{Name: "$bitsAnyClear", Doc: "Matches values of which any given bit is 0.", Since: "3.2", field: parseBits(BitsAnyClear)},
		{Name: "$bitsAnySet", Doc: "Matches values of which any given bit is 1.", Since: "3.2", field: parseBits(BitsAnySet)},
	}
}

// BitsOp is what a Bits asks.
type BitsOp uint8

// The questions about bits.
const (
	BitsAllClear BitsOp = iota
	BitsAllSet
	BitsAnyClear
	BitsAnySet
)

// String is the operator's name.
func (op BitsOp) String() string {
	return [...]string{"$bitsAllClear", "$bitsAllSet", "$bitsAnyClear", "$bitsAnySet"}[op]
}

// Bits asks of the bits at Positions of whole numbers and binary data; bit 0 is the least of a number, and the least of the
// first byte. Numbers go on with their sign, binary data with zeros.
type Bits struct {
	Path      fieldpath.Path
	Op        BitsOp
	Positions []uint32

	mask uint64 // the positions below 64
	far  bool   // there are positions beyond
}

func (n *Bits) match(c run, s subject) (bool, error) {
	return matchPath(n, c, n.Path, fieldpath.Traverse, s)
}

func (n *Bits) test(_ run, v bson.Value) (bool, error) {
	switch {
	case v.Type == bson.TypeBinary:
		data := v.Data[5:] // with the second length that subtype 2 has
		return n.testBits(func(at uint32) bool { return int(at>>3) < len(data) && data[at>>3]>>(at&7)&1 != 0 }), nil
	case !v.IsNumber():
		return false, nil
	}
	i, exact := v.AsInt64()
	if !exact {
		return false, nil
	}
	set, clear := n.mask&uint64(i), n.mask&^uint64(i)
	if n.far && i < 0 {
		set |= 1 << 63
	} else if n.far {
		clear |= 1 << 63
	}
	switch n.Op {
	case BitsAllSet:
		return clear == 0, nil
	case BitsAllClear:
		return set == 0, nil
	case BitsAnySet:
		return set != 0, nil
	}
	return clear != 0, nil
}

func (n *Bits) testBits(isSet func(at uint32) bool) bool {
	want := n.Op == BitsAllSet || n.Op == BitsAnySet
	all := n.Op == BitsAllSet || n.Op == BitsAllClear
	for _, at := range n.Positions {
		if (isSet(at) == want) != all {
			return !all
		}
	}
	return all
}

func parseBits(op BitsOp) func(*parsing, fieldpath.Path, bson.Value, bson.Doc) (Node, error) {
	return func(_ *parsing, path fieldpath.Path, arg bson.Value, _ bson.Doc) (Node, error) {
		n := &Bits{Path: path, Op: op}
		switch {
		case arg.Type == bson.TypeArray:
			if err := n.addArray(arg.Doc()); err != nil {
				return nil, err
			}
		case arg.IsNumber():
			mask, err := nonNegative(op.String(), arg)
			if err != nil {
				return nil, failedToParse("%s", err)
			}
			for at := uint32(0); at < 63; at++ {
				if mask>>at&1 != 0 {
					n.add(at)
				}
			}
		case arg.Type == bson.TypeBinary:
			data := arg.Data[5:]
			for at := range uint32(len(data) * 8) {
				if data[at>>3]>>(at&7)&1 != 0 {
					n.add(at)
				}
			}
		default:
			return nil, badValue("%s takes an Array, a number, or a BinData but received: %s: %s", path, op, arg)
		}
		return n, nil
	}
}

func (n *Bits) add(at uint32) {
	n.Positions = append(n.Positions, at)
	if at < 64 {
		n.mask |= 1 << at
	} else {
		n.far = true
	}
}

func (n *Bits) addArray(array bson.Doc) error {
	for it := array.Iter(); it.Next(); {
		at, err := integer(it.Key(), it.Value())
		if err == nil && int64(int32(at)) != at {
			err = fmt.Errorf("Cannot represent in an int: %s: %s", it.Key(), it.Value())
		}
		if err == nil {
			at, err = nonNegative(it.Key(), it.Value())
		}
		if err != nil {
			return badValue("Failed to parse bit position. %s", err)
		}
		n.add(uint32(at))
	}
	return nil
}
