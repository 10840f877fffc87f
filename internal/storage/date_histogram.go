package storage

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/ebbdb/ebb/internal/kv"
)

// dateHistogram is how many records, and bytes of documents, lie how far in a collection's order, in slots of dates. From it a sweep
// knows how much it deletes without looking. It is in memory only: after a start it is counted once.
//
// Writers add to it when they have committed and before they give the collection's lock back, so that who holds the lock
// exclusively sees it agree with the records.
type dateHistogram struct {
	mu    sync.Mutex // guards the rest, and is held for moments only
	known bool
	width int64 // of a slot, in milliseconds
	slots map[slot]amount
	// floors are dates before which no record lies, by span: what sweeps have deleted lies there still, for the engine to walk
	// over. They fall before a record that needs it is committed, and rise after a sweep is.
	floors [onNever]int64
}

// slot is the dates from at*width on, in a span.
type slot struct {
	span byte
	at   int64
}

type amount struct{ documents, bytes int64 }

// histogramChange is a change of a histogram on its way.
type histogramChange struct {
	span             byte
	date             int64
	documents, bytes int64
}

const (
	narrowestSlot = 16 // milliseconds
	maxSlots      = 4096
)

func newDateHistogram(known bool) *dateHistogram {
	t := &dateHistogram{}
	t.reset()
	t.known = known
	return t
}

// lower takes note of a record that is about to be written.
func (t *dateHistogram) lower(span byte, date int64) {
	t.mu.Lock()
	t.floors[span] = min(t.floors[span], date)
	t.mu.Unlock()
}

func (t *dateHistogram) floor(span byte) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.known {
		return math.MinInt64
	}
	return t.floors[span]
}

func (t *dateHistogram) add(changes []histogramChange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range changes {
		t.addTo(slot{c.span, floor(c.date, t.width)}, amount{c.documents, c.bytes})
	}
}

func (t *dateHistogram) addTo(s slot, more amount) {
	a, there := t.slots[s]
	a.documents += more.documents
	a.bytes += more.bytes
	if a == (amount{}) {
		delete(t.slots, s)
		return
	}
	t.slots[s] = a
	if !there && len(t.slots) > maxSlots {
		t.widen()
	}
}

// widen joins slots, two and two, until they are few.
func (t *dateHistogram) widen() {
	for len(t.slots) > maxSlots/2 {
		old := t.slots
		t.width *= 2
		t.slots = make(map[slot]amount, len(old)/2)
		for s, a := range old {
			t.addTo(slot{s.span, floor(s.at, 2)}, a)
		}
	}
}

func floor(n, by int64) int64 {
	if n < 0 {
		return -((-(n + 1)) / by) - 1
	}
	return n / by
}

// upTo is what lies in the slots of a span that end at the date or before, and in the one that the date is in the middle of.
func (t *dateHistogram) upTo(span byte, date int64) (whole, last amount, lastSlot slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	lastSlot = slot{span, floor(date, t.width)}
	if floor(date+1, t.width) != lastSlot.at { // it ends there
		lastSlot.at++
	}
	for s, a := range t.slots {
		switch {
		case s.span != span || s.at > lastSlot.at:
		case s.at == lastSlot.at:
			last = a
		default:
			whole.documents += a.documents
			whole.bytes += a.bytes
		}
	}
	return whole, last, lastSlot
}

// swept takes out what a sweep has deleted, up to a date.
func (t *dateHistogram) swept(last slot, part amount, date int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.floors[last.span] = max(t.floors[last.span], date+1)
	for s := range t.slots {
		if s.span == last.span && s.at < last.at {
			delete(t.slots, s)
		}
	}
	t.addTo(last, amount{-part.documents, -part.bytes})
}

// slotBounds are the dates in a slot, both inclusive.
func (t *dateHistogram) slotBounds(s slot) (first, last int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.at * t.width, s.at*t.width + (t.width - 1)
}

func (t *dateHistogram) isKnown() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known
}

// reset begins a count: from now on writers add what they change.
func (t *dateHistogram) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known, t.width, t.slots = false, narrowestSlot, map[slot]amount{}
	t.floors = [onNever]int64{onDefault: math.MaxInt64, onOverride: math.MaxInt64}
}

func (t *dateHistogram) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = true
}

// histogramStep is how many records are counted before the histogram is told.
const histogramStep = 4096

// histogramSome adds what lies in the order in the view, from a key on, nil for the beginning, and returns where to go on after at most
// so many records; nil when that was all.
func (r *Reader) histogramSome(from []byte, most int) (next []byte, err error) {
	low, high := r.c.orderBounds()
	if from != nil {
		low = from
	}
	var w walk
	if err := w.open(r.view, kv.IterOptions{Lower: low, Upper: high}, false, nil); err != nil {
		return nil, err
	}
	defer w.close()
	var some []histogramChange
	var last byte
	for n := 0; w.next(); n++ {
		if n == most {
			next = slices.Clone(w.it.Key())
			break
		}
		span, date, ok := r.c.order.of(RecordID(w.it.Key()[tableLength:]))
		if !ok { // all that has no deadline lies behind
			break
		}
		if span != last { // the first of a span, or of a slice
			r.c.order.histogram.lower(span, date)
			last = span
		}
		n, err := w.documentBytes()
		if err != nil {
			return nil, err
		}
		if k := len(some); k > 0 && some[k-1].span == span && some[k-1].date == date {
			some[k-1].documents++
			some[k-1].bytes += n
			continue
		}
		if len(some) == histogramStep {
			r.c.order.histogram.add(some)
			some = some[:0]
		}
		some = append(some, histogramChange{span, date, 1, n})
	}
	r.c.order.histogram.add(some)
	return next, w.err()
}

// documentBytes is the length of the document that the walk stands on.
func (w *walk) documentBytes() (int64, error) {
	value, err := w.it.Value()
	if err != nil {
		return 0, fmt.Errorf("storage: read a record: %w", err)
	}
	if len(value) < headerLength {
		return 0, fmt.Errorf("storage: %w: %x", errBrokenRecord, w.it.Key())
	}
	return int64(len(value) - headerLength), nil
}
