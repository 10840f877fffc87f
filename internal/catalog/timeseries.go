package catalog

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
)

// TimeSeries is what makes a collection one of measurements.
type TimeSeries struct {
	// TimeField is the field with a measurement's time; MetaField the one that says whose it is, "" when there is none.
	TimeField, MetaField string
	// SpanSeconds is how long a stretch of time is that expires at once.
	SpanSeconds int64
}

// defaultSpanSeconds is the span where none is kept: that of measurements seconds apart.
const defaultSpanSeconds = 3600

func readTimeSeries(v bson.Value) *TimeSeries {
	if v.Type != bson.TypeObject || text(v.Doc(), "timeField") == "" {
		return nil
	}
	t := &TimeSeries{text(v.Doc(), "timeField"), text(v.Doc(), "metaField"), whole(v.Doc(), "bucketMaxSpanSeconds")}
	if t.SpanSeconds <= 0 {
		t.SpanSeconds = defaultSpanSeconds
	}
	return t
}

// IsTimeSeries says whether coll keeps measurements, in the order of what they measure and when.
func (coll *Collection) IsTimeSeries() bool { return coll.Options.TimeSeries != nil }

// bucketsPrefix begins the names under which MongoDB keeps the buckets of time-series collections.
const bucketsPrefix = "system.buckets."

// BucketsName is the name of the collection of buckets that belongs to ns in MongoDB.
func BucketsName(ns namespace.NS) namespace.NS {
	return namespace.NS{DB: ns.DB, Coll: bucketsPrefix + ns.Coll}
}

// BehindBuckets is the time-series collection whose buckets ns would hold in MongoDB; nil when there is none.
func (c *Catalog) BehindBuckets(ns namespace.NS) *Collection {
	name, ok := strings.CutPrefix(ns.Coll, bucketsPrefix)
	if !ok {
		return nil
	}
	coll := c.Collection(namespace.NS{DB: ns.DB, Coll: name})
	if coll == nil || !coll.IsTimeSeries() {
		return nil
	}
	return coll
}

// HasOwnMeta says whether there is a meta field that is a field of its own.
func (t *TimeSeries) HasOwnMeta() bool { return t.MetaField != "" && t.MetaField != t.TimeField }

// SeriesSpec is what a time series is asked to be; its zero fields were not given.
type SeriesSpec struct {
	TimeField, MetaField, Granularity string
	Span, Rounding                    int64
}

// BucketSpan is how long buckets are with a granularity, in seconds; 0 for a word that is none.
func BucketSpan(granularity string) int64 {
	switch granularity {
	case "seconds":
		return defaultSpanSeconds
	case "minutes":
		return 24 * 3600
	case "hours":
		return 30 * 24 * 3600
	}
	return 0
}

// BucketRounding is by how much the beginnings of MongoDB's buckets differ at least with a granularity, in seconds; 0 for a word that is none.
func BucketRounding(granularity string) int64 {
	switch granularity {
	case "seconds":
		return 60
	case "minutes":
		return 3600
	case "hours":
		return 24 * 3600
	}
	return 0
}

// Doc is the option timeseries that s makes, with what follows from it filled in.
func (s SeriesSpec) Doc() bson.Doc {
	b := bson.Build().String("timeField", s.TimeField)
	if s.MetaField != "" {
		b.String("metaField", s.MetaField)
	}
	if s.Granularity == "" && s.Span != 0 {
		return b.Int32("bucketRoundingSeconds", int32(s.Rounding)).Int32("bucketMaxSpanSeconds", int32(s.Span)).Doc()
	}
	if s.Granularity == "" {
		s.Granularity = "seconds"
	}
	return b.String("granularity", s.Granularity).Int32("bucketMaxSpanSeconds", int32(BucketSpan(s.Granularity))).Doc()
}

func rounded(d bson.Doc, key string) int64 {
	if v := d.Lookup(key); v.IsNumber() {
		return v.RoundInt64()
	}
	return 0
}

// ReadSeriesSpec reads what Doc made, or a document of that shape that was checked.
func ReadSeriesSpec(d bson.Doc) SeriesSpec {
	return SeriesSpec{text(d, "timeField"), text(d, "metaField"), text(d, "granularity"), rounded(d, "bucketMaxSpanSeconds"), rounded(d, "bucketRoundingSeconds")}
}
