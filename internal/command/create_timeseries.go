package command

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// maxBucketSeconds bounds the span of a bucket: a year.
const maxBucketSeconds = 31536000

// timeseriesFields are the fields of timeseries as they were read.
type timeseriesFields struct {
	timeField, metaField, granularity string
	hasMeta                           bool
	span, rounding                    int64
	hasSpan, hasRounding              bool
}

// checkTimeseriesShape looks at the types of the fields of timeseries.
func checkTimeseriesShape(a, ts *Args) {
	ts.Required("timeField")
	for _, key := range [...]string{"timeField", "metaField"} {
		if s, _ := ts.String(key); strings.ContainsRune(s, 0) {
			ts.Fail(mongoerr.New(mongoerr.BadValue, "BSON field '%s.%s' cannot have embedded null bytes", ts.path, key))
		}
	}
	ts.enum("granularity", "seconds", "minutes", "hours")
	ts.IntIn("bucketMaxSpanSeconds", 1, maxBucketSeconds)
	ts.IntIn("bucketRoundingSeconds", 1, maxBucketSeconds)
	if err := ts.Done(); err != nil {
		a.Fail(err)
	}
}

func readTimeseries(ts *Args) (f timeseriesFields) {
	f.timeField, _ = ts.String("timeField")
	f.metaField, f.hasMeta = ts.String("metaField")
	f.readBuckets(ts)
	return f
}

func (f *timeseriesFields) readBuckets(ts *Args) {
	f.granularity, _ = ts.String("granularity")
	f.span, f.hasSpan = ts.Int("bucketMaxSpanSeconds")
	f.rounding, f.hasRounding = ts.Int("bucketRoundingSeconds")
}

// bucketsPrefix is what the names of collections begin with in which MongoDB keeps the buckets of time series.
const bucketsPrefix = "system.buckets."

// checkCreateBuckets takes the options that listCollections shows of a collection of buckets, for who makes a copy of it: those that follow from its
// being one say nothing.
func checkCreateBuckets(r *createRequest) error {
	if r.timeseries == nil || !strings.HasPrefix(r.ns.Coll, bucketsPrefix) {
		return nil
	}
	switch v := r.clustered; {
	case v.IsMissing(), v.Type == bson.TypeBool && v.Bool():
	case v.Type == bson.TypeObject && !v.Doc().IsEmpty():
		return mongoerr.New(5979703, "The 'clusteredIndex' option must be true for collection %s", r.ns)
	case v.Type == bson.TypeObject:
		return mongoerr.New(40414, "BSON field 'create.clusteredIndex.key' is missing but a required field")
	default:
		return invalidOptions("The 'clusteredIndex' option is not supported with 'timeseries'")
	}
	r.clustered, r.validator = bson.Missing, nil
	delete(r.options, "validator")
	for _, f := range validationWords {
		if !r.given(f.name) {
			delete(r.options, f.name)
		}
	}
	given := r.given
	r.given = func(key string) bool { return key != "clusteredIndex" && key != "validator" && given(key) }
	return nil
}

// checkCreateTimeseries applies the rules of time-series collections.
func checkCreateTimeseries(r *createRequest) error {
	if r.timeseries == nil {
		return nil
	}
	for _, key := range [...]string{"capped", "max", "size", "autoIndexId", "idIndex", "validator", "validationLevel", "validationAction",
		"viewOn", "pipeline", "changeStreamPreAndPostImages"} {
		if r.given(key) && (key != "capped" || r.capped) { // a driver may say that it is not capped
			return invalidOptions("%s: 'timeseries' is not allowed with '%s'", r.ns, key)
		}
	}
	f := readTimeseries(r.timeseries)
	if err := f.check(); err != nil {
		return err
	}
	r.options["timeseries"] = f.spec().Doc().Value()
	return nil
}

func (f timeseriesFields) spec() catalog.SeriesSpec {
	return catalog.SeriesSpec{TimeField: f.timeField, MetaField: f.metaField, Granularity: f.granularity, Span: f.span, Rounding: f.rounding}
}

func (f timeseriesFields) check() error {
	switch {
	case strings.Contains(f.timeField, "."):
		return invalidOptions("'timeField' must be a top-level field and not contain a '.'")
	case f.hasMeta && strings.Contains(f.metaField, "."):
		return invalidOptions("'metaField' must be a top-level field and not contain a '.'")
	case f.hasMeta && f.metaField == "_id":
		return invalidOptions("'metaField' cannot be \"_id\"")
	case f.hasMeta && f.metaField == f.timeField:
		return invalidOptions("'metaField' cannot be the same as 'timeField'")
	}
	return f.checkBuckets()
}

func (f timeseriesFields) checkBuckets() error {
	if f.granularity != "" {
		span := catalog.BucketSpan(f.granularity)
		switch {
		case f.hasRounding:
			return invalidOptions("'bucketRoundingSeconds' cannot be set together with 'granularity'")
		case f.hasSpan && f.span != span:
			return invalidOptions("Timeseries 'bucketMaxSpanSeconds' is not configurable to a value other than the default of %d for the provided granularity", span)
		}
		return nil
	}
	switch {
	case f.hasSpan != f.hasRounding:
		return invalidOptions("Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' need to be set alongside each other")
	case f.span != f.rounding:
		return invalidOptions("Timeseries 'bucketRoundingSeconds' needs to be equal to 'bucketMaxSpanSeconds'")
	}
	return nil
}
