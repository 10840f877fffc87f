package storage

import (
	"math"
)

// isBehindBounds says whether the record with the id is hidden because the rule that orders says so.
func (r *Reader) isBehindBounds(id RecordID) bool { return r.c.order.IsBehind(&r.bounds, id) }

// floor is a date before which no record of a span lies in the order, as the view sees it: a walk that begins there need not
// step over what was swept. A sweep since the view began may have raised it too far; that is looked at afterwards, because
// sweeps are counted before floors rise.
func (r *Reader) floor(span byte) int64 {
	floor := r.c.order.Histogram.Floor(span)
	if r.c.state.lastSweep.Load() > r.view.swept {
		return math.MinInt64
	}
	if r.view.txn == nil {
		return floor
	}
	for _, w := range r.view.txn.writers { // what they wrote comes when they commit
		if w.c == r.c {
			floor = min(floor, w.lowest[span])
		}
	}
	return floor
}
