package pipeline

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Densify is $densify.
type Densify struct {
	written
	Field      fieldpath.Path
	Partitions []fieldpath.Path
	// Step is a number, of Units when Timed.
	Step  bson.Value
	Timed bool
	Unit  expr.DateUnit
	// Low and High are explicit bounds; without them Full says whether all partitions share theirs.
	Low, High bson.Value
	Full      bool
}

func parseDensify(_ *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(5733409, "The $densify stage specification must be an object, found %s", arg.Type)
	}
	var field, partitions, ranges bson.Value
	err := readStrict("$densify", arg.Doc(), want{name: "field", to: &field, types: aString, required: true},
		want{name: "partitionByFields", to: &partitions, types: anArray}, want{name: "range", to: &ranges, types: anObject, required: true})
	if err != nil {
		return nil, err
	}
	d := &Densify{written: written{"$densify", arg}}
	if d.Field, err = fieldpath.New(field.Str()); err != nil {
		return nil, err
	}
	if err := d.readPartitions(partitions); err != nil {
		return nil, err
	}
	return one(d), d.readRange(ranges.Doc())
}

func (d *Densify) readPartitions(v bson.Value) error {
	if v.IsMissing() {
		return nil
	}
	for it := v.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeString {
			return mongoerr.New(mongoerr.TypeMismatch, "BSON field '$densify.partitionByFields.%s' is the wrong type '%s', expected type 'string'", it.Key(), it.Value().Type)
		}
		name := it.Value().Str()
		if strings.HasPrefix(name, "$") {
			return mongoerr.New(8993000, "partitionByFields may not start with '$': %s", name)
		}
		path, err := fieldpath.New(name)
		if err != nil {
			return err
		}
		if fieldpath.Overlaps(name, d.Field.String()) {
			return mongoerr.New(8993001, "BSON field '$densify.partitionByFields' contains a field that is a prefix of the field being densified, or the other way round: %s", name)
		}
		d.Partitions = append(d.Partitions, path)
	}
	return nil
}

func (d *Densify) readRange(spec bson.Doc) error {
	var step, unit, bounds bson.Value
	err := readStrict("$densify.range", spec, want{name: "step", to: &step, types: aNumber, required: true},
		want{name: "unit", to: &unit, types: aString}, want{name: "bounds", to: &bounds, types: []bson.Type{bson.TypeString, bson.TypeArray}, required: true})
	if err != nil {
		return err
	}
	if step.IsNaN() || bson.Compare(step, bson.Int32(0)) <= 0 {
		return mongoerr.New(5733401, "The step parameter in a range statement must be a strictly positive numeric value")
	}
	d.Step = step.Clone()
	if !unit.IsMissing() {
		var known bool
		if d.Unit, known = expr.DateUnitNamed(unit.Str()); !known {
			return mongoerr.New(mongoerr.FailedToParse, "unknown time unit value: %s", unit.Str())
		}
		if !step.IsIntegral() {
			return mongoerr.New(6586400, "The step parameter in a range statement must be a whole number when densifying a date range")
		}
		d.Timed = true
	}
	if bounds.Type == bson.TypeArray {
		return d.readBounds(bounds.Doc())
	}
	switch bounds.Str() {
	case "full":
		d.Full = true
	case "partition":
		if len(d.Partitions) == 0 {
			return mongoerr.New(5733408, "one may not specify the bounds as 'partition' without specifying a non-empty array of partitionByFields. You may have meant to specify 'full' bounds.")
		}
	default:
		return mongoerr.New(5946802, "Bounds string must either be 'full' or 'partition'")
	}
	return nil
}

func (d *Densify) readBounds(a bson.Doc) error {
	low, high := a.Index(0), a.Index(1)
	if a.Count() != 2 {
		return mongoerr.New(5733403, "a bounding array in a range statement must have exactly two elements")
	}
	dates := low.Type == bson.TypeDate && high.Type == bson.TypeDate
	if !dates && !(low.IsNumber() && high.IsNumber()) || bson.Compare(low, high) > 0 {
		return mongoerr.New(5733402, "a bounding array in a range statement must be an ascending array of either two dates or two numbers")
	}
	if dates != d.Timed {
		if dates {
			return mongoerr.New(5733501, "A bounding array must contain either both dates or both numeric types: 'unit' is missing")
		}
		return mongoerr.New(5733501, "A bounding array of numbers may not have a 'unit'")
	}
	d.Low, d.High = low.Clone(), high.Clone()
	return nil
}

func (d *Densify) needs(on *Dependencies) bool {
	on.paths(d.Field.String())
	for _, p := range d.Partitions {
		on.paths(p.String())
	}
	return true
}
