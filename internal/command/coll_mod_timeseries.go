package command

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
)

// refusedOnSeries are the options of collMod that a time series does not have.
var refusedOnSeries = [...]string{"viewOn", "pipeline", "validator", "validationLevel", "validationAction", "changeStreamPreAndPostImages"}

// modifiedSeries is the time series c as r asks for it. The bounds of capped collections are ignored, as MongoDB does here.
func (op *Op) modifiedSeries(c *catalog.Collection, r *collModRequest, reply *bson.Builder) (*catalog.Collection, error) {
	for _, name := range refusedOnSeries {
		if v := op.Args.Value(name); !v.IsNullish() {
			return nil, invalidOptions("option not supported on a time-series collection: %s", name)
		}
	}
	if r.index != nil && (r.index.has("unique") || r.index.has("prepareUnique")) {
		return nil, invalidOptions("option not supported on a time-series collection: unique")
	}
	if r.index != nil && r.index.has("expireAfterSeconds") {
		return nil, invalidOptions("TTL indexes are not supported for time-series collections. Please refer to the documentation and use the top-level 'expireAfterSeconds' option instead")
	}
	o := readOptions(c.Options.Doc)
	if err := op.setExpire(c, o, r.expire); err != nil {
		return nil, err
	}
	if r.timeseries != nil {
		if err := setBuckets(o, *r.timeseries); err != nil {
			return nil, err
		}
	}
	setPaused(o, r.pause, reply)
	setExpirationEvents(o, r.events, reply)
	next := c.WithOptions(catalog.ReadOptions(o.doc()))
	if r.index == nil {
		return next, nil
	}
	return op.withIndexChange(next, r.index, reply)
}

// setBuckets changes how measurements are parted: in larger stretches only.
func setBuckets(o options, f timeseriesFields) error {
	was := catalog.ReadSeriesSpec(o["timeseries"].Doc())
	next := catalog.SeriesSpec{TimeField: was.TimeField, MetaField: was.MetaField, Granularity: f.granularity}
	switch {
	case f.granularity == "" && !f.hasSpan && !f.hasRounding:
		return nil
	case f.granularity != "":
		if f.hasRounding || f.hasSpan && f.span != catalog.BucketSpan(f.granularity) {
			return invalidOptions("Cannot set 'granularity' together with 'bucketRoundingSeconds', or with a 'bucketMaxSpanSeconds' that is not its own")
		}
		next.Span = catalog.BucketSpan(f.granularity)
	case f.hasSpan != f.hasRounding:
		return invalidOptions("Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' need to be set alongside each other")
	case f.span != f.rounding:
		return invalidOptions("Timeseries 'bucketRoundingSeconds' needs to be equal to 'bucketMaxSpanSeconds'")
	default:
		next.Span, next.Rounding = f.span, f.rounding
	}
	if next.Span < was.Span {
		return invalidOptions("Invalid transition for timeseries options: buckets may grow from %d seconds, and not shrink to %d", was.Span, next.Span)
	}
	o.set("timeseries", next.Doc().Value())
	return nil
}
