package accumulator

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// BoundsKind says what bounds count.
type BoundsKind uint8

// The kinds.
const (
	DocumentBounds BoundsKind = iota // positions
	RangeBounds                      // values of the sort key
)

// Bound is one end of a window.
type Bound struct {
	Unbounded bool
	// Current is the document at hand, and with RangeBounds all that sort like it.
	Current bool
	// Offset is a position or a distance of values.
	Offset bson.Value
}

// Bounds are both ends of a window.
type Bounds struct {
	Kind         BoundsKind
	Lower, Upper Bound
	// Unit is what RangeBounds of dates count in; TimeBounds says that it is given.
	Unit       expr.DateUnit
	TimeBounds bool
}

func wholePartition() Bounds {
	return Bounds{Lower: Bound{Unbounded: true}, Upper: Bound{Unbounded: true}}
}

// IsWhole says whether the window always is the whole partition.
func (b Bounds) IsWhole() bool { return b.Lower.Unbounded && b.Upper.Unbounded }

func parseBounds(d bson.Doc, in WindowScope) (Bounds, error) {
	documents, ranges, unit := bson.Missing, bson.Missing, bson.Missing
	for it := d.Iter(); it.Next(); {
		switch it.Key() {
		case "documents":
			documents = it.Value()
		case "range":
			ranges = it.Value()
		case "unit":
			unit = it.Value()
		default:
			return Bounds{}, mongoerr.New(mongoerr.FailedToParse,
				"'window' field can only contain 'documents' as the only argument or 'range' with an optional 'unit' field")
		}
	}
	switch {
	case !documents.IsMissing() && (!ranges.IsMissing() || !unit.IsMissing()):
		return Bounds{}, mongoerr.New(mongoerr.FailedToParse,
			"'window' field can only contain 'documents' as the only argument or 'range' with an optional 'unit' field")
	case !documents.IsMissing():
		return parseDocumentBounds(documents, in)
	case !ranges.IsMissing():
		return parseRangeBounds(ranges, unit, in)
	case !unit.IsMissing():
		return Bounds{}, mongoerr.New(mongoerr.FailedToParse, "Window bounds can only specify 'unit' with range-based bounds.")
	}
	return wholePartition(), nil
}

// parsePair reads an array of two bounds.
func parsePair(v bson.Value, offset func(bson.Value) error) (lower, upper Bound, err error) {
	if v.Type != bson.TypeArray || v.Doc().Count() != 2 {
		return lower, upper, mongoerr.New(mongoerr.FailedToParse, "Window bounds must be a 2-element array: %s", v)
	}
	if lower, err = parseBound(v.Doc().Index(0), offset); err != nil {
		return lower, upper, err
	}
	upper, err = parseBound(v.Doc().Index(1), offset)
	return lower, upper, err
}

func parseBound(v bson.Value, offset func(bson.Value) error) (Bound, error) {
	if v.Type == bson.TypeString {
		switch v.Str() {
		case "unbounded":
			return Bound{Unbounded: true}, nil
		case "current":
			return Bound{Current: true}, nil
		}
		return Bound{}, mongoerr.New(mongoerr.FailedToParse, "Window bounds expect either 'current', 'unbounded' or a number: %s", v)
	}
	return Bound{Offset: v.Clone()}, offset(v)
}

func parseDocumentBounds(v bson.Value, in WindowScope) (Bounds, error) {
	b := Bounds{Kind: DocumentBounds}
	var err error
	b.Lower, b.Upper, err = parsePair(v, func(v bson.Value) error {
		if _, exact := v.AsInt64(); !v.IsNumber() || !exact {
			return mongoerr.New(mongoerr.FailedToParse, "Numeric document-based bounds must be an integer: %s", v)
		}
		return nil
	})
	if err != nil {
		return b, err
	}
	if !b.IsWhole() && !in.Sorted {
		return b, mongoerr.New(5339901, "Document-based bounds require a sortBy")
	}
	return b, b.checkOrder(v)
}

// checkOrder refuses a lower bound above the upper one.
func (b Bounds) checkOrder(v bson.Value) error {
	at := func(x Bound) bson.Value {
		if x.Current {
			return bson.Int32(0)
		}
		return x.Offset
	}
	if b.Lower.Unbounded || b.Upper.Unbounded || bson.Compare(at(b.Lower), at(b.Upper)) <= 0 {
		return nil
	}
	return mongoerr.New(5339900, "Lower bound must not exceed upper bound: %s", v)
}

func parseRangeBounds(v, unit bson.Value, in WindowScope) (Bounds, error) {
	b := Bounds{Kind: RangeBounds, TimeBounds: !unit.IsMissing()}
	if b.TimeBounds {
		if unit.Type != bson.TypeString {
			return b, mongoerr.New(mongoerr.FailedToParse, "'unit' must be a string")
		}
		var known bool
		if b.Unit, known = expr.DateUnitNamed(unit.Str()); !known {
			return b, mongoerr.New(mongoerr.FailedToParse, "unknown time unit value: %s", unit.Str())
		}
	}
	var err error
	b.Lower, b.Upper, err = parsePair(v, func(v bson.Value) error {
		if !v.IsNumber() {
			return mongoerr.New(mongoerr.FailedToParse, "Range-based bounds expression must be a number: %s", v)
		}
		if _, exact := v.AsInt64(); b.TimeBounds && !exact {
			return mongoerr.New(mongoerr.FailedToParse, "With 'unit', range-based bounds must be an integer: %s", v)
		}
		return nil
	})
	if err != nil {
		return b, err
	}
	if in.Sort == nil || len(in.Sort.Parts) != 1 {
		return b, mongoerr.New(5339902, "Range-based bounds require sortBy a single field")
	}
	if in.Sort.Parts[0].Meta != "" {
		return b, mongoerr.New(8947400, "Range-based bounds require a non-expression sortBy")
	}
	if in.Sort.Parts[0].Desc {
		return b, mongoerr.New(8947401, "Range-based bounds require an ascending sortBy")
	}
	return b, b.checkOrder(v)
}
