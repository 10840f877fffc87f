package expr

import (
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func convertOperators() []Operator {
	return []Operator{
		{Name: "$convert", Since: "4.0", Doc: "A value converted to a type.", Shape: special(parseConvert)},
		{Name: "$toBool", Since: "4.0", Doc: "A value converted to a bool.", Shape: conversionTo(bson.TypeBool)},
		{Name: "$toDate", Since: "4.0", Doc: "A value converted to a date.", Shape: conversionTo(bson.TypeDate)},
		{Name: "$toDecimal", Since: "4.0", Doc: "A value converted to a decimal.", Shape: conversionTo(bson.TypeDecimal)},
		{Name: "$toDouble", Since: "4.0", Doc: "A value converted to a double.", Shape: conversionTo(bson.TypeDouble)},
		{Name: "$toInt", Since: "4.0", Doc: "A value converted to an int.", Shape: conversionTo(bson.TypeInt32)},
		{Name: "$toLong", Since: "4.0", Doc: "A value converted to a long.", Shape: conversionTo(bson.TypeInt64)},
		{Name: "$toObjectId", Since: "4.0", Doc: "A value converted to an ObjectId.", Shape: conversionTo(bson.TypeObjectID)},
		{Name: "$toString", Since: "4.0", Doc: "A value converted to a string.", Shape: conversion(target{kind: bson.TypeString, format: "auto"})},
		{Name: "$toUUID", Since: "8.0", Doc: "A string converted to a UUID.",
			Shape: conversion(target{kind: bson.TypeBinary, subtype: uuidSubtype, format: "uuid"})},
	}
}

const uuidSubtype = 4

// target is what a value is converted to.
type target struct {
	kind      bson.Type
	subtype   byte   // of binary data
	format    string // of binary data as text, "" when none was given
	bigEndian bool   // of numbers as binary data
}

// errConversion is a conversion that fails; onError catches it and nothing else.
func errConversion(format string, args ...any) error {
	return mongoerr.New(mongoerr.ConversionFailure, format, args...)
}

func unsupported(from, to bson.Type) error {
	return errConversion("Unsupported conversion from %s to %s in $convert with no onError value", from, to)
}

func conversionTo(t bson.Type) special { return conversion(target{kind: t}) }

// conversion is the shape of $toInt and its like.
func conversion(to target) special {
	return func(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
		args, err := p.parseAll(arg, scope)
		if err != nil {
			return nil, err
		}
		if len(args) != 1 {
			return nil, mongoerr.New(50723, "%s requires a single argument, got %d", op.Name, len(args))
		}
		return &call{op: op, args: args, eval: func(env *Env, c *call) (bson.Value, error) {
			v, err := c.args[0].Eval(env)
			if err != nil {
				return v, err
			}
			if v.IsNullish() {
				return bson.Null, nil
			}
			return convert(env, v, to)
		}}, nil
	}
}

// The arguments of $convert, as its call has them.
const (
	convertInput = iota
	convertTo
	convertSubtype
	convertFormat
	convertByteOrder
	convertOnError
	convertOnNull
	convertArguments
)

func convertNames() []string {
	return []string{"input", "to", "subtype", "format", "byteOrder", "onError", "onNull"}
}

func parseConvert(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(mongoerr.FailedToParse, "$convert expects an object of named arguments but found: %s", arg.Type)
	}
	c := &call{op: op, names: convertNames(), args: make([]Expr, convertArguments), eval: evalConvert, print: printConvert}
	for it := arg.Doc().Iter(); it.Next(); {
		i := slices.Index(c.names, it.Key())
		if i < 0 || i == convertSubtype {
			return nil, mongoerr.New(mongoerr.FailedToParse, "$convert found an unknown argument: %s", it.Key())
		}
		if i == convertTo && it.Value().Type == bson.TypeObject && !isOperatorObject(it.Value().Doc()) {
			if err := c.parseTarget(p, it.Value().Doc(), scope); err != nil {
				return nil, err
			}
			continue
		}
		e, err := p.parse(it.Value(), scope)
		if err != nil {
			return nil, err
		}
		c.args[i] = e
	}
	for _, i := range []int{convertInput, convertTo} {
		if c.args[i] == nil {
			return nil, mongoerr.New(mongoerr.FailedToParse, "Missing '%s' parameter to $convert", c.names[i])
		}
	}
	return c, nil
}

func printConvert(c *call) bson.Value {
	b := bson.Build().Object(c.op.Name)
	for i, e := range c.args {
		switch {
		case e == nil || i == convertSubtype:
		case i == convertTo && c.args[convertSubtype] != nil:
			b.Object("to").Value("type", e.Value()).Value("subtype", c.args[convertSubtype].Value()).End()
		default:
			b.Value(c.names[i], e.Value())
		}
	}
	return b.End().Doc().Value()
}

func isOperatorObject(d bson.Doc) bool {
	name := d.FirstKey()
	return name != "" && name[0] == '$'
}

// parseTarget reads to: {type, subtype}.
func (c *call) parseTarget(p *Parser, to bson.Doc, scope *Scope) error {
	for it := to.Iter(); it.Next(); {
		if it.Key() != "type" && it.Key() != "subtype" {
			continue
		}
		e, err := p.parse(it.Value(), scope)
		if err != nil {
			return err
		}
		if it.Key() == "type" {
			c.args[convertTo] = e
			if v, ok := Constant(e); ok && v.IsNullish() {
				return errTargetType(v)
			}
		} else {
			c.args[convertSubtype] = e
		}
	}
	if c.args[convertTo] == nil {
		return mongoerr.New(mongoerr.FailedToParse, "Missing 'type' parameter to $convert")
	}
	return nil
}

func evalConvert(env *Env, c *call) (bson.Value, error) {
	args, mark, err := env.evalAll(c.args[:convertOnError])
	if err != nil {
		return bson.Missing, err
	}
	defer env.cut(mark)
	input := args[convertInput]
	if input.IsNullish() || args[convertTo].IsNullish() {
		if input.IsNullish() && !args[convertTo].IsNullish() {
			if _, err := targetType(args[convertTo]); err != nil {
				return input, err
			}
		}
		if c.args[convertOnNull] != nil && input.IsNullish() {
			return c.args[convertOnNull].Eval(env)
		}
		return bson.Null, nil
	}
	to, err := c.target(args)
	if err != nil {
		return input, err
	}
	v, err := convert(env, input, to)
	if c.args[convertOnError] != nil && mongoerr.Is(err, mongoerr.ConversionFailure) {
		return c.args[convertOnError].Eval(env)
	}
	return v, err
}

func (c *call) target(args []bson.Value) (target, error) {
	var to target
	var err error
	if to.kind, err = targetType(args[convertTo]); err != nil {
		return to, err
	}
	if c.args[convertSubtype] != nil {
		if to.subtype, err = targetSubtype(args[convertSubtype]); err != nil {
			return to, err
		}
	}
	if v := args[convertFormat]; !v.IsNullish() {
		if v.Type != bson.TypeString {
			return to, mongoerr.New(4341114, "$convert requires that 'format' be a string, found: %s with value %s", v.Type, v.Computed())
		}
		if to.format = v.Str(); !slices.Contains([]string{"auto", "base64", "base64url", "utf8", "hex", "uuid"}, to.format) {
			return to, mongoerr.New(4341125, "Invalid 'format' argument for $convert: %s", to.format)
		}
	}
	if v := args[convertByteOrder]; !v.IsNullish() {
		if v.Type != bson.TypeString {
			return to, mongoerr.New(9130001, "$convert requires that 'byteOrder' be a string, found: %s with value %s", v.Type, v.Computed())
		}
		if v.Str() != "little" && v.Str() != "big" {
			return to, mongoerr.New(9130002, "Invalid 'byteOrder' argument for $convert: %s", v.Str())
		}
		to.bigEndian = v.Str() == "big"
	}
	return to, nil
}

func errTargetType(v bson.Value) error {
	return mongoerr.New(mongoerr.FailedToParse, "$convert's 'to' argument must be a string or number, but is %s", v.Type)
}

// targetType reads a type by name or number.
func targetType(v bson.Value) (bson.Type, error) {
	if v.Type == bson.TypeString {
		t, ok := bson.TypeNamed(v.Str())
		if v.Str() == "missing" {
			return bson.TypeMissing, nil
		}
		if !ok {
			return 0, mongoerr.New(mongoerr.BadValue, "Unknown type name: %s", v.Str())
		}
		return t, nil
	}
	if !v.IsNumber() {
		return 0, errTargetType(v)
	}
	n, exact := v.AsInt64()
	switch {
	case !exact:
		return 0, mongoerr.New(mongoerr.FailedToParse, "In $convert, numeric 'to' argument is not an integer")
	case n == -1:
		return bson.TypeMinKey, nil
	case n < 0 || n > math.MaxInt8 || n != 0 && !bson.Type(n).Known():
		return 0, mongoerr.New(mongoerr.FailedToParse, "In $convert, numeric value for 'to' does not correspond to a BSON type: %d", n)
	}
	return bson.Type(n), nil
}

func targetSubtype(v bson.Value) (byte, error) {
	if !v.IsNumber() {
		return 0, mongoerr.New(4341108, "$convert's 'subtype' argument must be a number, but is %s", v.Type)
	}
	n, exact := v.AsInt64()
	if !exact {
		return 0, mongoerr.New(4341106, "In $convert, numeric 'subtype' argument is not an integer")
	}
	if n < 0 || n > 255 || n > 9 && n < 128 {
		return 0, mongoerr.New(4341107, "In $convert, numeric value for 'subtype' does not correspond to a BinData type: %d", n)
	}
	return byte(n), nil
}

// convert is v, which is not null, as to says.
func convert(env *Env, v bson.Value, to target) (bson.Value, error) {
	switch to.kind {
	case bson.TypeBool:
		return bson.Bool(v.Truthy()), nil
	case bson.TypeInt32, bson.TypeInt64:
		return toInteger(env, v, to)
	case bson.TypeDouble:
		return toDouble(env, v, to)
	case bson.TypeDecimal:
		return toDecimal(env, v)
	case bson.TypeString:
		return toText(env, v, to)
	case bson.TypeDate:
		return toDate(env, v)
	case bson.TypeObjectID:
		return toObjectID(v)
	case bson.TypeBinary:
		return toBinary(env, v, to)
	}
	return v, unsupported(v.Type, to.kind)
}
