package command

import (
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/ttl"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

const (
	// maxForecastBuckets is how many buckets a forecast may have.
	maxForecastBuckets = 1000
	// forecastBuckets and forecastSpan are what a forecast is about when nothing is asked for.
	forecastBuckets = 24
	forecastSpan    = 24 * time.Hour
)

// horizon reads "forecast"; nil when it is not there.
func (op *Op) horizon(a *Args) *ttl.Horizon {
	asked := a.sub("forecast")
	if asked == nil {
		return nil
	}
	h := &ttl.Horizon{Now: op.Now, Until: op.Now + forecastSpan.Milliseconds(), Buckets: forecastBuckets, Keys: ttl.MaxForecastKeys}
	if n, ok := asked.IntIn("buckets", 1, maxForecastBuckets); ok {
		h.Buckets = int(n)
	}
	if until, ok := asked.typed("until", bson.TypeDate); ok {
		if h.Until = until.Millis(); h.Until <= op.Now {
			asked.Fail(mongoerr.New(mongoerr.BadValue, "BSON field '%s.until' must be a date to come, actual value '%s'", asked.path, until))
		}
	}
	if err := asked.Done(); err != nil {
		a.Fail(err)
	}
	return h
}

func (op *Op) forecastExpiry(r *storage.Reader, h ttl.Horizon) (bson.Doc, error) {
	documents, all, err := ttl.Forecasts(r, h, op.flag("ttlHideExpired"))
	if err != nil {
		return nil, err
	}
	b := bson.Build().String("ns", r.Catalog().NS.String()).Date("now", h.Now).Date("until", h.Until)
	op.appendHeld(b)
	b.Int64("documents", documents).Int64("docsExamined", 0).Array("indexes")
	for i := range all {
		b.Object(bson.IndexKey(i))
		appendForecast(b, &all[i], h.Now)
		b.End()
	}
	return b.End().Doc(), nil
}

func appendForecast(b *bson.Builder, f *ttl.Forecast, now int64) {
	appendRule(b, f.Index, f.Field, f.Seconds, f.Hides)
	if f.Inert != "" {
		b.String("inert", f.Inert)
		return
	}
	b.Bool("exact", f.Walked.All)
	appendDeadline(b, "countedTo", f.CountedTo)
	appendDeadline(b, "oldestDeadline", f.First)
	appendDeadline(b, "newestDeadline", f.Last)
	b.Int64("backlog", f.Backlog).Array("buckets")
	from := now
	for i, to := range f.Ends {
		b.Object(bson.IndexKey(i)).Date("from", from).Date("to", to).Int64("count", f.Counts[i]).End()
		from = to
	}
	b.End().Int64("later", f.Later)
	if f.Walked.All {
		b.Int64("never", f.Never)
	}
	b.Int64("keysExamined", f.Walked.Keys)
}

func appendDeadline(b *bson.Builder, key string, deadline int64) {
	if deadline != policy.Never {
		b.Date(key, deadline)
	}
}
