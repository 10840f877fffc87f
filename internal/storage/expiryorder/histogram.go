package expiryorder

import (
	"fmt"
	"maps"
	"math"
	"sync"

	"github.com/ebbdb/ebb/internal/storage/layout"
)

// Histogram is how many records, and bytes of documents, lie how far in a collection's order, in slots of dates. From it a sweep
// knows how much it deletes without looking. It is in memory only: after a start it is counted once.
//
// What a commit changes is added with the commit, while its writer holds the collection's lock. So who holds the lock exclusively
// sees it agree with the records.
type Histogram struct {
	mu     sync.Mutex // guards the rest, and is held for moments only
	known  bool
	spoilt bool  // something was swept while it was counted
	width  int64 // of a slot, in milliseconds
	slots  map[Slot]Amount
	// floors are dates before which no record lies, by span: what sweeps have deleted lies there still, for the engine to walk
	// over. They fall before a record that needs it is committed, and rise after a sweep is.
	floors Floors
	// trails are how many records were removed one by one since a sweep, by span: where they lay, behind the floor, the engine may have to walk over
	// what is left of them.
	trails [layout.Spans]int64
}

// Floors are dates by span.
type Floors [layout.Spans]int64

// NoFloors are those of where nothing lies.
func NoFloors() Floors {
	return Floors{layout.OnDefault: math.MaxInt64, layout.OnOverride: math.MaxInt64, layout.CoarseDefault: math.MaxInt64,
		layout.CoarseOverride: math.MaxInt64}
}

// Lower takes account of a date.
func (f *Floors) Lower(span byte, date int64) { f[span] = min(f[span], date) }

// Slot is the dates from At*width on, in a span.
type Slot struct {
	Span byte
	At   int64
}

// Amount is how many records, and bytes of documents.
type Amount struct{ Documents, Bytes int64 }

// Change is a change of a histogram on its way.
type Change struct {
	Span             byte
	Date             int64
	Documents, Bytes int64
}

const (
	// NarrowestSlot is how many milliseconds of dates a slot has at first. Where there would be more slots than maxSlots, all
	// get twice as wide.
	NarrowestSlot = 16
	maxSlots      = 4096
)

// NewHistogram is one of an order under which nothing is yet, when known; otherwise it has to be counted first.
func NewHistogram(known bool) *Histogram {
	h := &Histogram{}
	h.Reset()
	h.known = known
	return h
}

// Floor is a date before which no record of a span lies; the least there is while the histogram is not known.
func (h *Histogram) Floor(span byte) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.known {
		return math.MinInt64
	}
	return h.floors[span]
}

// Trail is how many records a span has lost one by one since a sweep raised its floor.
func (h *Histogram) Trail(span byte) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.trails[span]
}

// Add takes over what was counted.
func (h *Histogram) Add(changes []Change) {
	h.AddEach(func(add func(Change)) {
		for _, c := range changes {
			add(c)
		}
	})
}

// AddEach takes over what changes adds, at once.
func (h *Histogram) AddEach(changes func(add func(Change))) {
	h.mu.Lock()
	defer h.mu.Unlock()
	changes(func(c Change) {
		if c.Documents > 0 {
			h.floors.Lower(c.Span, c.Date)
		} else {
			h.trails[c.Span] -= c.Documents
		}
		h.addTo(Slot{c.Span, floor(c.Date, h.width)}, Amount{c.Documents, c.Bytes})
	})
}

func (h *Histogram) addTo(s Slot, more Amount) {
	a, there := h.slots[s]
	a.Documents += more.Documents
	a.Bytes += more.Bytes
	if a == (Amount{}) {
		delete(h.slots, s)
		return
	}
	h.slots[s] = a
	if !there && len(h.slots) > maxSlots {
		h.widen()
	}
}

// widen joins slots, two and two, until they are few.
func (h *Histogram) widen() {
	for len(h.slots) > maxSlots/2 {
		h.double()
	}
}

// double joins slots two and two.
func (h *Histogram) double() {
	old := h.slots
	h.width *= 2
	h.slots = make(map[Slot]Amount, len(old)/2)
	for s, a := range old {
		h.addTo(Slot{s.Span, floor(s.At, 2)}, a)
	}
}

func floor(n, by int64) int64 {
	if n < 0 {
		return -((-(n + 1)) / by) - 1
	}
	return n / by
}

// UpTo is what lies in the slots of a span that end at the date or before, and in the one that the date is in the middle of.
func (h *Histogram) UpTo(span byte, date int64) (whole, last Amount, lastSlot Slot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	lastSlot = h.slotAt(span, date)
	for s, a := range h.slots {
		switch {
		case s.Span != span || s.At > lastSlot.At:
		case s.At == lastSlot.At:
			last = a
		default:
			whole.Documents += a.Documents
			whole.Bytes += a.Bytes
		}
	}
	return whole, last, lastSlot
}

// Swept takes out what a sweep has deleted of a span: all up to a date, but for what it has spared, which all counts as well. While the count
// goes on nobody knows how much of that was counted, so it has to be counted again.
func (h *Histogram) Swept(span byte, date int64, all Amount, spared []Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.spoilt = h.spoilt || !h.known; h.spoilt {
		return
	}
	h.floors[span], h.trails[span] = max(h.floors[span], date+1), 0
	last := h.slotAt(span, date)
	for s, a := range h.slots {
		if s.Span == span && s.At < last.At {
			all.Documents -= a.Documents
			all.Bytes -= a.Bytes
			delete(h.slots, s)
		}
	}
	h.addTo(last, Amount{-all.Documents, -all.Bytes})
	for _, c := range spared {
		h.floors.Lower(c.Span, c.Date)
		h.addTo(Slot{c.Span, floor(c.Date, h.width)}, Amount{c.Documents, c.Bytes})
	}
}

// slotAt is the slot that a date is in the middle of, or the next one where a slot ends with the date.
func (h *Histogram) slotAt(span byte, date int64) Slot {
	s := Slot{span, floor(date, h.width)}
	if floor(date+1, h.width) != s.At {
		s.At++
	}
	return s
}

// SlotBounds are the dates in a slot, both inclusive.
func (h *Histogram) SlotBounds(s Slot) (first, last int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return s.At * h.width, s.At*h.width + (h.width - 1)
}

// IsKnown says whether all records were counted.
func (h *Histogram) IsKnown() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known
}

// Reset begins a count: from now on writers add what they change.
func (h *Histogram) Reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known, h.spoilt, h.width, h.slots = false, false, NarrowestSlot, map[Slot]Amount{}
	h.floors, h.trails = NoFloors(), [layout.Spans]int64{}
}

// Done ends a count; ok is false when all has to be counted again.
func (h *Histogram) Done() (ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known = !h.spoilt
	return h.known
}

// Differs says in words how h differs from one that was counted of the same records; "" when it does not. Floors may lie lower.
// counted is made as wide as h, and nobody uses either meanwhile.
func (h *Histogram) Differs(counted *Histogram) string {
	for counted.width < h.width {
		counted.double()
	}
	if counted.width != h.width || !maps.Equal(counted.slots, h.slots) {
		return fmt.Sprintf("there are %v, counted %v", h.slots, counted.slots)
	}
	for span := range counted.floors {
		if h.floors[span] > counted.floors[span] {
			return fmt.Sprintf("the floor of span %d is %d, above %d", span, h.floors[span], counted.floors[span])
		}
	}
	return ""
}
