package pipeline

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// Out is $out.
type Out struct {
	written
	To namespace.NS
	// TimeSeries are the options of the collection to make, nil for a plain one.
	TimeSeries bson.Doc
}

func parseOut(p *parsing, arg bson.Value) ([]Stage, error) {
	o := &Out{written: written{"$out", arg}, To: namespace.NS{DB: p.NS.DB}}
	switch arg.Type {
	case bson.TypeString:
		o.To.Coll = arg.Str()
	case bson.TypeObject:
		var db, coll, series bson.Value
		err := readStrict("$out", arg.Doc(), want{name: "db", to: &db, types: aString, required: true}, want{name: "coll", to: &coll, types: aString, required: true},
			want{name: "timeseries", to: &series, types: anObject})
		if err != nil {
			return nil, err
		}
		o.To = namespace.NS{DB: db.Str(), Coll: coll.Str()}
		if !series.IsMissing() {
			o.TimeSeries = series.Doc()
			if err := checkTimeSeries(series.Doc()); err != nil {
				return nil, err
			}
		}
	default:
		return nil, mongoerr.New(16990, "$out only supports a string or object argument, but found %s", arg.Type)
	}
	return one(o), o.check()
}

func (o *Out) check() error {
	if o.To.Coll == "" {
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid $out target namespace, %s.", o.To.DB)
	}
	if o.To.IsSystem() {
		return mongoerr.New(17385, "Can't $out to special collection: %s", o.To.Coll)
	}
	switch o.To.DB {
	case "admin", "config", "local":
		return mongoerr.New(31321, "Can't $out to internal database: %s", o.To.DB)
	}
	if err := namespace.CheckDB(o.To.DB); err != nil {
		return err
	}
	if strings.HasPrefix(o.To.Coll, "$") || len(o.To.String()) > namespace.MaxLength {
		return mongoerr.New(mongoerr.IllegalOperation, "Invalid $out target namespace: %s", o.To)
	}
	return o.To.Check()
}

func checkTimeSeries(d bson.Doc) error {
	var timeField, metaField, granularity, span, rounding bson.Value
	err := readStrict("$out.timeseries", d, want{name: "timeField", to: &timeField, types: aString, required: true}, want{name: "metaField", to: &metaField, types: aString},
		want{name: "granularity", to: &granularity, types: aString}, want{name: "bucketMaxSpanSeconds", to: &span, types: aNumber},
		want{name: "bucketRoundingSeconds", to: &rounding, types: aNumber})
	if err != nil {
		return err
	}
	if !granularity.IsMissing() {
		switch granularity.Str() {
		case "seconds", "minutes", "hours":
		default:
			return mongoerr.New(mongoerr.BadValue, "Enumeration value '%s' for field '$out.timeseries.granularity' is not a valid value.", granularity.Str())
		}
	}
	for _, v := range []bson.Value{span, rounding} {
		if n := v.TruncInt64(); !v.IsMissing() && (n < 1 || n > 31536000) {
			return mongoerr.New(mongoerr.BadValue, "BSON field value must be between 1 and 31536000, is %d", n)
		}
	}
	switch {
	case !granularity.IsMissing() && !rounding.IsMissing():
		return mongoerr.New(mongoerr.InvalidOptions, "'bucketRoundingSeconds' cannot be set together with 'granularity'")
	case !span.IsMissing() && !rounding.IsMissing() && span.RoundInt64() != rounding.RoundInt64():
		return mongoerr.New(mongoerr.InvalidOptions, "Timeseries 'bucketRoundingSeconds' needs to be equal to 'bucketMaxSpanSeconds'")
	case span.IsMissing() != rounding.IsMissing() && granularity.IsMissing():
		return mongoerr.New(mongoerr.InvalidOptions, "bucketMaxSpanSeconds and bucketRoundingSeconds must be set together")
	}
	return nil
}

func (o *Out) needs(d *Dependencies) bool { return d.everything() }
