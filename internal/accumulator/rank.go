package accumulator

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func rankOperators() []Operator {
	return []Operator{
		{Name: "$rank", Since: "5.0", Doc: "The place of the document; equal ones share a place and leave gaps.", Window: rankWindow(gapped), alone: true},
		{Name: "$denseRank", Since: "5.0", Doc: "The place of the document; equal ones share a place without gaps.", Window: rankWindow(dense), alone: true},
		{Name: "$documentNumber", Since: "5.0", Doc: "The position of the document, from 1.", Window: rankWindow(numbered), alone: true},
	}
}

type rankKind uint8

const (
	gapped rankKind = iota
	dense
	numbered
)

func rankWindow(kind rankKind) parseWindow {
	return func(_ *Parser, w *WindowSpec, arg bson.Value, in windowInput) error {
		switch {
		case in.bounds:
			return mongoerr.New(5371601, "Rank style window functions take no other arguments")
		case arg.Type != bson.TypeObject || !arg.Doc().IsEmpty():
			return mongoerr.New(5371603, "%s must be specified with '{}' as the value", w.Op.Name)
		case in.Sort == nil || len(in.Sort.Parts) != 1:
			return mongoerr.New(5371602, "%s must be specified with a top level sortBy expression with exactly one element", w.Op.Name)
		}
		w.make = func() (Window, error) { return &ranks{kind: kind}, nil }
		return nil
	}
}

type ranks struct {
	kind rankKind
	rank int64
}

func (r *ranks) Next(rows Rows, f Frame) (bson.Value, error) {
	same := false
	if f.At > 0 && r.kind != numbered {
		var err error
		if same, err = rows.SameSort(f.At-1, f.At); err != nil {
			return bson.Missing, err
		}
	}
	switch {
	case same:
	case r.kind == dense:
		r.rank++
	default:
		r.rank = int64(f.At) + 1
	}
	return whole(r.rank), nil
}

// whole is n as an int, or a long when it does not fit.
func whole(n int64) bson.Value {
	data, t := bson.AppendNumber(make([]byte, 0, 8), n)
	return bson.Value{Type: t, Data: data}
}
