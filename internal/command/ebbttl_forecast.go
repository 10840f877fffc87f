package command

import (
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
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

// horizon reads "forecast"; nil when it is not there. supposed is its "asIf", where a forecast may have one.
func (op *Op) horizon(a *Args, supposed **supposedTTL) *ttl.Horizon {
	asked := a.sub("forecast")
	if asked == nil {
		return nil
	}
	if supposed != nil {
		*supposed = readSupposed(asked)
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
	readEnds(asked, h)
	if err := asked.Done(); err != nil {
		a.Fail(err)
	}
	return h
}

// readEnds reads "ends", which says where each bucket ends: near ones can be short, and far ones long.
func readEnds(asked *Args, h *ttl.Horizon) {
	ends := asked.Array("ends")
	if ends == nil {
		return
	}
	if !asked.Value("buckets").IsNullish() || !asked.Value("until").IsNullish() {
		asked.Fail(mongoerr.New(mongoerr.BadValue, "'%s.ends' says what 'buckets' and 'until' would: give it alone", asked.path))
	}
	h.Until = h.Now
	for it := ends.Iter(); it.Next() && len(h.Ends) <= maxForecastBuckets; {
		v := it.Value()
		if v.Type != bson.TypeDate || v.Millis() <= h.Until {
			asked.Fail(mongoerr.New(mongoerr.BadValue, "BSON field '%s.ends' must be dates to come, each after the one before, actual value '%s'", asked.path, v))
			return
		}
		h.Until = v.Millis()
		h.Ends = append(h.Ends, h.Until)
	}
	if n := len(h.Ends); n < 1 || n > maxForecastBuckets {
		asked.Fail(mongoerr.New(mongoerr.BadValue, "BSON field '%s.ends' must have 1 to %d dates", asked.path, maxForecastBuckets))
	}
}

// forecastExpiry answers for one collection.
func (op *Op) forecastExpiry(r *storage.Reader, h ttl.Horizon) (bson.Doc, error) {
	b := bson.Build().String("ns", r.Catalog().NS.String())
	op.appendHorizon(b, h)
	b.Int64("docsExamined", 0)
	_, _, err := op.appendForecasts(b, r, h)
	return b.Doc(), err
}

// forecastSupposed answers for one collection as if it had another TTL.
func (op *Op) forecastSupposed(r *storage.Reader, h ttl.Horizon, supposed *supposedTTL) (bson.Doc, error) {
	now := r.Catalog()
	next, err := op.suppose(now, supposed)
	if err != nil {
		return nil, err
	}
	documents, after, err := ttl.ForecastsAs(r, next, h, op.flag("ttlHideExpired"))
	if err != nil {
		return nil, err
	}
	read := int64(0)
	for i := range after {
		read = max(read, after[i].Documents)
	}
	b := bson.Build().String("ns", now.NS.String())
	op.appendHorizon(b, h)
	b.Int64("docsExamined", read).Int64("documents", documents).Array("indexes")
	for i := range after {
		f := &after[i]
		b.Object(bson.IndexKey(i))
		appendForecast(b, f, h.Now)
		if supposed.isAbout(f) {
			b.Bool("asIf", true)
		}
		b.End()
	}
	b.End()
	_, before, err := ttl.Forecasts(r, h, op.flag("ttlHideExpired"))
	for i := range before {
		if supposed.isAbout(&before[i]) {
			b.Object("before")
			appendForecast(b, &before[i], h.Now)
			b.End()
		}
	}
	return b.Doc(), err
}

// forecastAll answers for all collections with a TTL that pick chooses. They share the keys that may be walked.
func (op *Op) forecastAll(view *storage.View, pick func(namespace.NS) bool, h ttl.Horizon) (bson.Doc, error) {
	b := bson.Build()
	op.appendHorizon(b, h)
	b.Int64("docsExamined", 0).Array("collections")
	n, cut := 0, false
	for _, coll := range view.Catalog().All() {
		if cut || !coll.Options.HasTTL && !hasTTL(coll) || !pick(coll.NS) {
			continue
		}
		r, ok := view.CollectionByID(coll.ID)
		if !ok {
			continue
		}
		b.Object(bson.IndexKey(n)).String("ns", coll.NS.String())
		walked, shown, err := op.appendForecasts(b, r, h)
		if err != nil {
			return nil, err
		}
		b.End()
		n, cut, h.Keys = n+1, !shown, h.Keys-walked
	}
	b.End()
	if cut {
		b.Bool("truncated", true)
	}
	return b.Doc(), nil
}

func (op *Op) appendHorizon(b *bson.Builder, h ttl.Horizon) {
	b.Date("now", h.Now).Date("until", h.Until)
	op.appendHeld(b)
}

// appendForecasts appends those of a collection and says how many keys were walked, and whether all found room.
func (op *Op) appendForecasts(b *bson.Builder, r *storage.Reader, h ttl.Horizon) (walked int64, all bool, err error) {
	documents, forecasts, err := ttl.Forecasts(r, h, op.flag("ttlHideExpired"))
	if err != nil {
		return 0, false, err
	}
	b.Int64("documents", documents).Array("indexes")
	defer b.End()
	for i := range forecasts {
		if b.Len() > maxStatusBytes {
			return walked, false, nil
		}
		b.Object(bson.IndexKey(i))
		appendForecast(b, &forecasts[i], h.Now)
		b.End()
		walked += forecasts[i].Walked.Keys
	}
	return walked, true, nil
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
	b.Array("reasons")
	for i := range f.Reasons {
		r := &f.Reasons[i]
		b.Object(bson.IndexKey(i)).String("reason", r.Basis).Int64("backlog", r.Backlog).Array("counts")
		for j, n := range r.Counts {
			b.Int64(bson.IndexKey(j), n)
		}
		b.End().Int64("later", r.Later).End()
	}
	b.End().Int64("keysExamined", f.Walked.Keys)
}

func appendDeadline(b *bson.Builder, key string, deadline int64) {
	if deadline != policy.Never {
		b.Date(key, deadline)
	}
}
