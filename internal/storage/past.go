package storage

import "math"

// past is up to which dates records are hidden, by span of the collection's order; the least there is where none are.
type past [onNever]int64

// past is what o's rule hides at now.
func (o *order) past(now int64) (p past) {
	p[onDefault], p[onOverride] = math.MinInt64, math.MinInt64
	for _, cut := range o.cuts(o.rule, now) {
		p[cut.span] = cut.date
	}
	return p
}

// isPast says whether the record with the id is hidden because the rule that orders says so.
func (r *Reader) isPast(id RecordID) bool {
	if r.past == (past{}) {
		return false
	}
	span, date, ok := r.c.order.of(id)
	return ok && date <= r.past[span]
}
