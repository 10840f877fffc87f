package update

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// fieldOperators are the operators on any field.
func fieldOperators() []Operator {
	return []Operator{
		{Name: "$set", Doc: "Sets the value of a field.", Since: "1.0", Creates: true, WholeValue: true, parse: parseSet},
		{Name: "$unset", Doc: "Removes a field; in an array it leaves null.", Since: "1.0", AnyPath: true, parse: parseUnset},
		{Name: "$setOnInsert", Doc: "Sets the value of a field when an upsert inserts.", Since: "2.4",
			Creates: true, WholeValue: true, InsertOnly: true, parse: parseSet},
		{Name: "$inc", Doc: "Adds to a number.", Since: "1.0", Creates: true, parse: parseInc},
		{Name: "$mul", Doc: "Multiplies a number.", Since: "2.6", Creates: true, parse: parseMul},
		{Name: "$min", Doc: "Sets a field when the given value is less.", Since: "2.6", Creates: true, WholeValue: true, parse: parseMin},
		{Name: "$max", Doc: "Sets a field when the given value is greater.", Since: "2.6", Creates: true, WholeValue: true, parse: parseMax},
		{Name: "$currentDate", Doc: "Sets a field to now, as a date or a timestamp.", Since: "2.6", Creates: true, parse: parseCurrentDate},
		{Name: "$rename", Doc: "Renames a field.", Since: "1.7.2", Creates: true, AnyPath: true, parse: parseRename},
	}
}

// put appends v's bytes as a replacement.
func put(dst []byte, v bson.Value) ([]byte, bson.Type, effect, error) {
	return append(dst, v.Data...), v.Type, replaced, nil
}

// keep leaves the value as it is.
func keep(dst []byte) ([]byte, bson.Type, effect, error) { return dst, 0, unchanged, nil }

type setValue struct{ v bson.Value }

func parseSet(_ *parser, _ string, v bson.Value) (modifier, error) { return setValue{v}, nil }

func (m setValue) apply(_ *applier, dst []byte, old bson.Value) ([]byte, bson.Type, effect, error) {
	if old.Type == m.v.Type && bytes.Equal(old.Data, m.v.Data) {
		return keep(dst)
	}
	return put(dst, m.v)
}

type unset struct{}

func parseUnset(*parser, string, bson.Value) (modifier, error) { return unset{}, nil }

func (unset) apply(_ *applier, dst []byte, _ bson.Value) ([]byte, bson.Type, effect, error) {
	return dst, 0, removed, nil
}

// arithmetic is $inc and $mul.
type arithmetic struct {
	name    string
	operand bson.Value
	compute func(a, b bson.Value) (bson.Value, bool)
}

func parseInc(_ *parser, path string, v bson.Value) (modifier, error) {
	if !v.IsNumber() {
		return nil, mongoerr.New(mongoerr.TypeMismatch, "Cannot increment with non-numeric argument: {%s}", element(path, v))
	}
	return arithmetic{"$inc", v, bson.Add}, nil
}

func parseMul(_ *parser, path string, v bson.Value) (modifier, error) {
	if !v.IsNumber() {
		return nil, mongoerr.New(mongoerr.TypeMismatch, "Cannot multiply with non-numeric argument: {%s}", element(path, v))
	}
	return arithmetic{"$mul", v, bson.Mul}, nil
}

func (m arithmetic) apply(a *applier, dst []byte, old bson.Value) ([]byte, bson.Type, effect, error) {
	switch {
	case old.IsMissing() && m.name == "$inc":
		return put(dst, m.operand)
	case old.IsMissing():
		zero, _ := bson.Mul(zeroInt, m.operand)
		return put(dst, zero)
	case !old.IsNumber():
		return dst, 0, unchanged, mongoerr.New(mongoerr.TypeMismatch,
			"Cannot apply %s to a value of non-numeric type. {%s} has the field '%s' of non-numeric type %s",
			m.name, a.idText(), a.path[len(a.path)-1], old.Type)
	case old.Type == bson.TypeInt32 && m.operand.Type == bson.TypeInt32:
		return m.ints(dst, int64(old.Int32()), int64(m.operand.Int32()))
	}
	v, ok := m.compute(old, m.operand)
	if !ok {
		return dst, 0, unchanged, mongoerr.New(mongoerr.BadValue, "Failed to apply %s operations to current value (%s) for document {%s}",
			m.name, typedNumber(old), a.idText())
	}
	if sameNumber(old, v) {
		return keep(dst)
	}
	return put(dst, v)
}

// ints computes with two ints, the common case, without allocating.
func (m arithmetic) ints(dst []byte, x, y int64) ([]byte, bson.Type, effect, error) {
	n := x + y
	if m.name == "$mul" {
		n = x * y
	}
	if n == x {
		return keep(dst)
	}
	dst, t := bson.AppendNumber(dst, n)
	return dst, t, replaced, nil
}

// sameNumber says whether two numbers are of one type and equal; a zero's sign does not count.
func sameNumber(a, b bson.Value) bool {
	if a.Type != b.Type {
		return false
	}
	switch a.Type {
	case bson.TypeDouble:
		return a.Double() == b.Double()
	case bson.TypeDecimal:
		return !a.IsNaN() && bson.CompareNumbers(a, b) == 0
	}
	return bytes.Equal(a.Data, b.Data)
}

var zeroInt = bson.Int32(0)

// limit is $min and $max.
type limit struct {
	v        bson.Value
	sign     int // of compare(old, v) that lets v win
	collator bson.Collator
}

func parseMin(p *parser, _ string, v bson.Value) (modifier, error) {
	return limit{v, 1, p.collator}, nil
}

func parseMax(p *parser, _ string, v bson.Value) (modifier, error) {
	return limit{v, -1, p.collator}, nil
}

func (m limit) apply(_ *applier, dst []byte, old bson.Value) ([]byte, bson.Type, effect, error) {
	if old.IsMissing() || bson.CompareWith(old, m.v, m.collator)*m.sign > 0 {
		return put(dst, m.v)
	}
	return keep(dst)
}

type currentDate struct{ timestamp bool }

func parseCurrentDate(_ *parser, _ string, v bson.Value) (modifier, error) {
	switch v.Type {
	case bson.TypeBool:
		return currentDate{}, nil
	case bson.TypeObject:
		return parseCurrentDateType(v.Doc())
	}
	return nil, mongoerr.New(mongoerr.BadValue, "%s is not valid type for $currentDate. Please use a boolean ('true')"+
		" or a $type expression ({$type: 'timestamp/date'}).", v.Type)
}

func parseCurrentDateType(d bson.Doc) (modifier, error) {
	var m modifier
	for it := d.Iter(); it.Next(); {
		if it.Key() != "$type" {
			return nil, mongoerr.New(mongoerr.BadValue, "Unrecognized $currentDate option: %s", it.Key())
		}
		if v := it.Value(); v.Type == bson.TypeString && (v.Str() == "date" || v.Str() == "timestamp") {
			m = currentDate{v.Str() == "timestamp"}
		} else {
			m = nil
			break
		}
	}
	if m == nil {
		return nil, mongoerr.New(mongoerr.BadValue,
			"The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}")
	}
	return m, nil
}

func (m currentDate) apply(a *applier, dst []byte, _ bson.Value) ([]byte, bson.Type, effect, error) {
	if m.timestamp {
		return binary.LittleEndian.AppendUint64(dst, a.args.Timestamp), bson.TypeTimestamp, replaced, nil
	}
	return binary.LittleEndian.AppendUint64(dst, uint64(a.args.Now)), bson.TypeDate, replaced, nil
}

// renaming is one $rename.
type renaming struct {
	from, to string
	parts    []string // of from
}

// parseRename stands for the check of the target alone; parser.rename hangs both ends into the tree.
func parseRename(p *parser, from string, v bson.Value) (modifier, error) {
	to := v.Str()
	switch {
	case strings.ContainsRune(to, 0):
		return nil, mongoerr.New(9867600, "The 'to' field for $rename cannot contain an embedded null byte")
	case from == to:
		return nil, mongoerr.New(mongoerr.BadValue, "The source and target field for $rename must differ: %s", element(from, v))
	case strings.HasPrefix(to, from+".") || strings.HasPrefix(from, to+"."):
		return nil, mongoerr.New(mongoerr.BadValue, "The source and target field for $rename must not be on the same path: %s", element(from, v))
	case isDynamic(from):
		return nil, mongoerr.New(mongoerr.BadValue, "The source field for $rename may not be dynamic: %s", from)
	case isDynamic(to):
		return nil, mongoerr.New(mongoerr.BadValue, "The destination field for $rename may not be dynamic: %s", to)
	}
	p.renames = append(p.renames, renaming{from, to, strings.Split(from, ".")})
	return renameTo(len(p.renames) - 1), nil
}

func isDynamic(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "."), func(part string) bool { return part == "$" || isIdentifier(part) })
}

// renameTo puts the value of a.renames there.
type renameTo int

func (m renameTo) apply(a *applier, dst []byte, _ bson.Value) ([]byte, bson.Type, effect, error) {
	if a.arrays > 0 {
		return dst, 0, unchanged, mongoerr.New(mongoerr.BadValue,
			"The destination field cannot be an array element, '%s' in doc with %s has an array field called '%s'",
			a.dotted(), a.idText(), a.innermostArray())
	}
	return put(dst, a.renames[m])
}

// typedNumber is a number with the name of its type, as the message of an overflow has it.
func typedNumber(v bson.Value) string {
	if v.Type == bson.TypeInt32 {
		return "(NumberInt)" + strconv.Itoa(int(v.Int32()))
	}
	return "(NumberLong)" + strconv.FormatInt(v.Int64(), 10)
}

// innermostArray is the name of the last array on the path to where a stands.
func (a *applier) innermostArray() string {
	v, name := a.root.Value(), ""
	for _, part := range a.path {
		if v.Type != bson.TypeObject && v.Type != bson.TypeArray {
			break
		}
		if v = v.Doc().Lookup(part); v.Type == bson.TypeArray {
			name = part
		}
	}
	return name
}

// source is the value that r moves, or a missing one.
func (r *renaming) source(a *applier) (bson.Value, error) {
	v, array := a.root.Value(), -1
	for i, part := range r.parts {
		at := v
		switch n := position(part); {
		case v.Type == bson.TypeObject:
			v = v.Doc().Lookup(part)
		case v.Type == bson.TypeArray && n >= 0:
			v, array = v.Doc().Index(n), i-1
		default:
			return bson.Missing, mongoerr.New(mongoerr.PathNotViable, "Cannot use the part (%s) of (%s) to traverse the element ({%s})",
				part, r.from, element(r.parts[i-1], at))
		}
		if v.IsMissing() {
			return v, nil
		}
	}
	if array >= 0 {
		return bson.Missing, mongoerr.New(mongoerr.BadValue,
			"The source field cannot be an array element, '%s' in doc with %s has an array field called '%s'", r.from, a.idText(), r.parts[array])
	}
	return v, nil
}
