package due

import (
	"bytes"
	"fmt"
	"math"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Place is where a Cursor stood.
type Place struct {
	// Deadline is that of the entry; Span and Key say which one it is of those that have the same.
	Deadline int64
	Span     int
	Key      []byte
}

// Cursor walks the entries that give documents a deadline by one rule, in the order of their deadlines. A document with several dates may come several
// times: who reads it knows which is its deadline. Close it.
type Cursor struct {
	d       deadlines
	at      *deadlineHead // nil before the first entry, and at the end
	skipped *Place        // of a coarse span: what has been had with the same deadline
}

// Cursor opens a cursor on the deadlines that a rule as it is given gives, which may be one that the collection's entries would do for: those after one, and
// up to another; behind goes on behind where one stood, in this or an earlier view.
// It is not for the own rule of a time series, whose deadlines have no order.
func (r *Source) Cursor(rule *policy.Rule, after, until int64, behind *Place) (*Cursor, error) {
	if rule.Kind == policy.Series {
		panic("due: the measurements of a time series are not in the order of their deadlines")
	}
	dead, err := r.State.Tombstones()
	if err != nil {
		return nil, err
	}
	c := &Cursor{d: deadlines{limit: math.MaxInt64, dead: dead}}
	latest := endOfTime
	if until < policy.Never {
		latest = dueAt(until)
	}
	spans := r.spansOf(rule, latest)
	begin := func(i int, after int64) {
		if after > math.MinInt64 {
			Behind(spans[i:i+1], r.spansOf(rule, dueAt(after))[i:i+1])
		}
	}
	for i := range spans {
		from, key := after, []byte(nil)
		switch {
		case behind == nil:
		case i < behind.Span:
			from = behind.Deadline // all that has it was had
		default:
			from = max(behind.Deadline, math.MinInt64+1) - 1
		}
		begin(i, max(from, after))
		if behind != nil && i == behind.Span {
			if key = behind.Key; spans[i].coarse > 0 {
				c.skipped = behind
			}
		}
		if err := c.open(r, spans[i], key); err != nil {
			return nil, joinClose(err, &c.d)
		}
	}
	return c, nil
}

func joinClose(err error, d *deadlines) error {
	_ = d.close() // the first error is the one that matters
	return err
}

func (c *Cursor) open(r *Source, s Span, after []byte) error {
	h := &deadlineHead{Span: s}
	c.d.heads = append(c.d.heads, h)
	switch {
	case bytes.Compare(s.low, s.high) >= 0:
		h.deadline = policy.Never
		return nil
	case s.coarse > 0:
		walk, err := r.openCoarse(s, nil)
		h.cells = &coarseHead{coarseWalk: walk, named: true}
		if err != nil {
			return err
		}
	default:
		if after != nil && (bytes.Compare(after, s.low) < 0 || bytes.Compare(after, s.high) >= 0) {
			after = nil // it has moved to another span, or another index is in the place of the one that it was of
		}
		if err := h.walk.Open(r.Ctx, r.Snapshot, kv.IterOptions{Lower: s.low, Upper: s.high}, s.backward, after); err != nil {
			return err
		}
	}
	return c.d.move(h)
}

// Next moves to the next entry; false at the end.
func (c *Cursor) Next() (bool, error) {
	if c.at != nil {
		if err := c.d.move(c.at); err != nil {
			return false, err
		}
	}
	for {
		if c.at = c.d.earliest(); c.at == nil {
			return false, nil
		}
		if !c.had() {
			return true, nil
		}
		if err := c.d.move(c.at); err != nil {
			return false, err
		}
	}
}

// had says whether the cursor stands at something that one before it has stood at.
func (c *Cursor) had() bool {
	s := c.skipped
	return s != nil && c.at.cells != nil && c.at == c.d.heads[s.Span] && c.at.deadline == s.Deadline && bytes.Compare(c.at.cells.at, s.Key) <= 0
}

// Deadline is that of the entry.
func (c *Cursor) Deadline() int64 { return c.at.deadline }

// Basis is what of the document gives it the deadline (policy.Rule.Basis).
func (c *Cursor) Basis() string { return c.at.basis }

// ID is the record that the entry is of, until the next move.
func (c *Cursor) ID() (layout.RecordID, error) {
	if c.at.cells != nil {
		return c.at.cells.at, nil
	}
	value, err := c.at.walk.Value()
	if err != nil {
		return nil, fmt.Errorf("storage: read an index entry: %w", err)
	}
	return c.at.id(c.at.walk.Key(), value)
}

// Place is where the cursor stands.
func (c *Cursor) Place() *Place {
	p := &Place{Deadline: c.at.deadline}
	for i, h := range c.d.heads {
		if h == c.at {
			p.Span = i
		}
	}
	if c.at.cells != nil {
		p.Key = c.at.cells.at.Clone()
	} else {
		p.Key = bytes.Clone(c.at.walk.Key())
	}
	return p
}

// Close gives the cursor back; it may be called again.
func (c *Cursor) Close() error { return c.d.close() }
