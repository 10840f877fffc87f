package due

import (
	"bytes"
	"container/heap"
	"fmt"
	"math"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// MostLooked is how many records in coarse places one who deletes what is due looks at that lie behind the cut: where more lie at
// one place they are left until its end, and go as a stretch.
const MostLooked = 8192

// coarseSpan is the records of a coarse span that are dated between the two, both inclusive.
func (r *Source) coarseSpan(which byte, from, to int64, after policy.Rule) Span {
	cell := r.Order.CellOf(which)
	last := int64(math.MaxInt64)
	if to < math.MaxInt64-cell {
		last = to + cell - 1
	}
	return Span{
		low:    r.Order.DatedKey(which, max(from, r.State.Floor(which))),
		high:   layout.After(r.Order.DatedKey(which, last)),
		sure:   layout.After(r.Order.DatedKey(which, to)),
		id:     func(key, _ []byte) (layout.RecordID, error) { return key[layout.TableLength:], nil },
		after:  after,
		from:   from,
		to:     to,
		coarse: cell,
	}
}

// Soon makes the spans those of one who deletes what is due, and looks again soon.
func Soon(spans []Span) []Span {
	for i := range spans {
		spans[i].most = MostLooked
	}
	return spans
}

// coarseWalk walks the records of a coarse span.
type coarseWalk struct {
	walk.Keys
	Span
}

func (r *Source) openCoarse(s Span, after []byte) (*coarseWalk, error) {
	c := &coarseWalk{Span: s}
	return c, c.Open(r.Ctx, r.Snapshot, kv.IterOptions{Lower: s.low, Upper: s.high}, false, after)
}

func (c *coarseWalk) id() layout.RecordID { return c.Key()[layout.TableLength:] }

// place is where the record lies.
func (c *coarseWalk) place() int64 { return c.id().Date() }

// before is a date that all records from the place on are dated after.
func (c *coarseWalk) before(place int64) int64 {
	if place < math.MinInt64+c.coarse {
		return math.MinInt64
	}
	return place - c.coarse
}

// dated is the record's date; ok is false when the span is not about it.
func (c *coarseWalk) dated() (date int64, ok bool, err error) {
	rec, err := c.Record()
	if err != nil {
		return 0, false, err
	}
	date = expiryorder.DateOf(rec)
	return date, c.from <= date && date <= c.to, nil
}

// waiting are the records of one place that are due, until it is known how many lie there.
type waiting struct {
	place int64
	keys  [][]byte
}

// pass hands them on; more is false when f has said so.
func (w *waiting) pass(f func(id layout.RecordID, key []byte) bool) (more bool) {
	for _, key := range w.keys {
		if !f(key[layout.TableLength:], key) {
			return false
		}
	}
	w.keys = nil
	return true
}

// walkCoarse is walkSpan for a coarse span.
func (r *Source) walkCoarse(s Span, after []byte, f func(id layout.RecordID, key []byte) bool) (more bool, err error) {
	c, err := r.openCoarse(s, after)
	if err != nil {
		return false, err
	}
	defer c.Close()
	at, looked := waiting{place: math.MinInt64}, 0
	for c.Next() {
		bounded := s.most > 0 && c.place() > s.to
		if bounded && c.place() != at.place {
			if !at.pass(f) {
				return false, nil
			}
			at.place = c.place()
		}
		if bounded && looked == s.most {
			return true, c.Err()
		}
		_, ok, err := c.dated()
		switch {
		case err != nil:
			return false, fmt.Errorf("storage: what is due in %s: %w", r.Collection.NS, err)
		case bounded:
			if looked++; ok {
				at.keys = append(at.keys, bytes.Clone(c.Key()))
			}
		case ok && !f(c.id(), c.Key()):
			return false, nil
		}
	}
	if err := c.Err(); err != nil {
		return false, err
	}
	return at.pass(f), nil
}

// firstCoarse calls f with the earliest date in the span, if there is any; with the place instead where so many lie there that
// they are left until its end.
func (r *Source) firstCoarse(s Span, f func(int64)) error {
	c, err := r.openCoarse(s, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	const none = math.MaxInt64
	first, here, place := int64(none), int64(none), int64(math.MinInt64)
	for looked := 0; c.Next(); looked++ {
		if c.place() != place {
			first, here, place = min(first, here), none, c.place()
			if first != none && c.before(place) >= first {
				break
			}
		}
		if s.most > 0 && looked == s.most {
			here = place
			break
		}
		date, ok, err := c.dated()
		if err != nil {
			return fmt.Errorf("storage: what is due in %s: %w", r.Collection.NS, err)
		}
		if ok {
			here = min(here, date)
		}
	}
	if first = min(first, here); first != none {
		f(first)
	}
	return c.Err()
}

// countCoarse counts the records of a coarse span up to limit.
func (r *Source) countCoarse(s Span, limit int64) (n int64, err error) {
	if s.from == math.MinInt64 && bytes.Compare(s.low, s.sure) < 0 {
		n, err = walk.Count(r.Ctx, r.Snapshot, kv.IterOptions{Lower: s.low, Upper: s.sure}, limit)
		if err != nil || n >= limit {
			return n, err
		}
		s.low = s.sure
	}
	_, err = r.walkCoarse(s, nil, func(layout.RecordID, []byte) bool { n++; return n < limit })
	return n, err
}

// coarseStanding is spanStanding for a coarse span.
func (r *Source) coarseStanding(span Span, s *Standing, keys, limit int64) error {
	c, err := r.openCoarse(span, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	for c.Next() {
		if s.Keys == keys || s.Due == limit {
			s.All = false
			break
		}
		s.Keys++
		date, ok, err := c.dated()
		if err != nil {
			return fmt.Errorf("storage: what is due in %s: %w", r.Collection.NS, err)
		}
		if ok {
			s.meet(span.after.After(date))
		}
	}
	return c.Err()
}

// coarseHead brings the deadlines of a coarse span into their order: it reads as far as an earlier one may come.
type coarseHead struct {
	*coarseWalk
	read  dates // and not told
	place int64 // of the last that was read
	ended bool
	// named keeps the ids with the dates; at is the one that the head stands at, then.
	named bool
	at    layout.RecordID
}

// moveCoarse brings h to the next document.
func (d *deadlines) moveCoarse(h *deadlineHead) error {
	c := h.cells
	h.deadline = policy.Never
	for !c.ended && (len(c.read) == 0 || c.before(c.place) < c.read[0].date) {
		if c.ended = !c.Next(); c.ended {
			break
		}
		if d.Keys == d.limit {
			d.cut = true
			return nil
		}
		d.Keys++
		c.place = c.coarseWalk.place()
		date, ok, err := c.dated()
		if err != nil {
			return err
		}
		if ok {
			found := dated{date: date}
			if c.named {
				found.id = c.id().Clone()
			}
			heap.Push(&c.read, found)
		}
	}
	if len(c.read) > 0 {
		next := heap.Pop(&c.read).(dated)
		h.deadline, c.at = h.after.After(next.date), next.id
	}
	return c.Err()
}

// dated is a record and its date.
type dated struct {
	date int64
	id   layout.RecordID
}

// dates is a heap.Interface, earliest first.
type dates []dated

func (d dates) Len() int { return len(d) }
func (d dates) Less(i, j int) bool {
	if d[i].date != d[j].date {
		return d[i].date < d[j].date
	}
	return bytes.Compare(d[i].id, d[j].id) < 0
}
func (d dates) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *dates) Push(x any)   { *d = append(*d, x.(dated)) }
func (d *dates) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}
