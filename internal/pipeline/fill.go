package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// parseFill makes a $setWindowFields of the methods and an $addFields of the values.
func parseFill(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(6050200, "The $fill stage specification must be an object, found %s", arg.Type)
	}
	var by, byFields, sort, output bson.Value
	err := readStrict("$fill", arg.Doc(), want{name: "partitionBy", to: &by, types: []bson.Type{bson.TypeString, bson.TypeObject}},
		want{name: "partitionByFields", to: &byFields, types: anArray}, want{name: "sortBy", to: &sort, types: anObject},
		want{name: "output", to: &output, types: anObject, required: true})
	if err != nil {
		return nil, err
	}
	if !by.IsMissing() && !byFields.IsMissing() {
		return nil, mongoerr.New(6050204, "Maximum one of 'partitionBy' and 'partitionByFields' can be specified in '$fill'")
	}
	if !byFields.IsMissing() {
		if by, err = partitionOfFields(byFields); err != nil {
			return nil, err
		}
	}
	windows, values := bson.Build(), bson.Build()
	for it := output.Doc().Iter(); it.Next(); {
		if err := fillField(windows, values, it.Key(), it.Value()); err != nil {
			return nil, err
		}
	}
	if output.Doc().IsEmpty() {
		return nil, mongoerr.New(6050203, "The output field of '$fill' must contain an object with at least one element")
	}
	var stages []Stage
	if w := windows.Doc(); !w.IsEmpty() {
		spec := bson.Build().Value("partitionBy", by).Value("sortBy", sort).Document("output", w).Doc()
		s, err := parseSetWindowFields(p, spec.Value())
		if err != nil {
			return nil, err
		}
		stages = append(stages, s...)
	}
	if v := values.Doc(); !v.IsEmpty() {
		p.name = "$addFields"
		s, err := parseAddFields(p, v.Value())
		if err != nil {
			return nil, err
		}
		stages = append(stages, s...)
	}
	return stages, nil
}

// partitionOfFields is {a: "$a", b: "$b"}, with dots in names made harmless.
func partitionOfFields(fields bson.Value) (bson.Value, error) {
	b := bson.Build()
	for it := fields.Doc().Iter(); it.Next(); {
		v := it.Value()
		if v.Type != bson.TypeString {
			return v, mongoerr.New(mongoerr.TypeMismatch, "BSON field '$fill.partitionByFields.%s' is the wrong type '%s', expected type 'string'", it.Key(), v.Type)
		}
		if _, err := fieldpath.New(v.Str()); err != nil {
			return v, err
		}
		b.String("f"+it.Key(), "$"+v.Str())
	}
	return b.Doc().Value(), nil
}

func fillField(windows, values *bson.Builder, name string, v bson.Value) error {
	if v.Type != bson.TypeObject {
		return mongoerr.New(mongoerr.FailedToParse, "Each fill output specification must be an object, found %s", v.Type)
	}
	var method, value bson.Value
	if err := readStrict("$fill.output."+name, v.Doc(), want{name: "method", to: &method, types: aString}, want{name: "value", to: &value}); err != nil {
		return err
	}
	if method.IsMissing() == value.IsMissing() {
		return mongoerr.New(6050205, "Each fill output must specify exactly one of 'method' and 'value'")
	}
	path := bson.String("$" + name)
	switch {
	case method.IsMissing():
		values.Object(name).Array("$ifNull").Value("0", path).Value("1", value).End().End()
	case method.Str() == "linear":
		windows.Object(name).Value("$linearFill", path).End()
	case method.Str() == "locf":
		windows.Object(name).Value("$locf", path).End()
	default:
		return mongoerr.New(6050202, "Method must be either locf or linear")
	}
	return nil
}
