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
	if f.granularity == "" && !f.hasSpan && !f.hasRounding {
		return nil
	}
	if err := f.checkGrowth(was); err != nil {
		return err
	}
	next := catalog.SeriesSpec{TimeField: was.TimeField, MetaField: was.MetaField, Granularity: f.granularity, Span: f.span, Rounding: f.rounding}
	o.set("timeseries", next.Doc().Value())
	return nil
}

// checkGrowth says whether buckets that are as was says may become what is asked for.
func (f timeseriesFields) checkGrowth(was catalog.SeriesSpec) error {
	span, rounding := catalog.BucketSpan(f.granularity), catalog.BucketRounding(f.granularity)
	switch {
	case f.granularity == "":
		if err := f.checkBuckets(); err != nil {
			return err
		}
		span, rounding = f.span, f.rounding
	case f.hasSpan && f.span != span:
		return invalidOptions("Timeseries 'bucketMaxSpanSeconds' is not configurable to a value other than the default for the provided granularity")
	case f.hasRounding:
		return invalidOptions("Timeseries 'bucketRoundingSeconds' is not configurable alongside the granularity parameter")
	case was.Granularity != "" && span < was.Span:
		return invalidOptions("Invalid transition for timeseries.granularity. Can only transition from 'seconds' to 'minutes' or 'minutes' to 'hours'.")
	}
	if was.Granularity != "" {
		was.Rounding = catalog.BucketRounding(was.Granularity)
	}
	switch {
	case span < was.Span:
		return invalidOptions("Timeseries 'bucketMaxSpanSeconds' needs to be equal or greater to transition")
	case rounding < was.Rounding:
		return invalidOptions("Timeseries 'bucketRoundingSeconds' needs to be equal or greater to transition")
	}
	return nil
}
