package storage

import (
	"math"

	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// hiddenBounds is up to which dates records are hidden, by span of the collection's order; the least there is where none are.
type hiddenBounds [onNever]int64

// hiddenBounds is what o's rule hides at now.
func (o *expiryOrder) hiddenBounds(now int64) (b hiddenBounds) {
	b[onDefault], b[onOverride] = math.MinInt64, math.MinInt64
	for _, cut := range o.cuts(o.rule, now) {
		b[cut.span] = cut.date
	}
	return b
}

// isBehindBounds says whether the record with the id is hidden because the rule that orders says so.
func (r *Reader) isBehindBounds(id RecordID) bool {
	if r.bounds == (hiddenBounds{}) {
		return false
	}
	span, date, ok := r.c.order.of(id)
	return ok && date <= r.bounds[span]
}

// floor is a date before which no record of a span lies in the order, as the view sees it: a walk that begins there need not
// step over what was swept. A sweep since the view began may have raised it too far; that is looked at afterwards, because
// sweeps are counted before floors rise.
func (r *Reader) floor(span byte) int64 {
	floor := r.c.order.histogram.floor(span)
	if r.c.state.lastSweep.Load() > r.view.swept {
		return math.MinInt64
	}
	return floor
}

// floorOf is where the dates in the index of the rule begin: it has as many as there are records, one each, if it is the one
// that orders them.
func (r *Reader) floorOf(rule *policy.Rule) int64 {
	if !r.c.relocates() || r.c.order.rule.Index.ID != rule.Index.ID || r.c.state.inOrder.Load() != r.c.order.number || !r.onceEach(rule) {
		return math.MinInt64
	}
	return r.floor(onDefault)
}
