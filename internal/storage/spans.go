package storage

import (
	"bytes"

	"github.com/ebbdb/ebb/internal/storage/layout"
)

// Spans are the parts of an index that a scan is for. A cursor that has them leaps from one to the next by itself.
type Spans struct {
	N int
	// At is the i-th in the direction of the scan: low is inclusive, high exclusive, nil leaves that side open.
	At func(i int) (low, high []byte)
	// First is the one in which the scan begins, or goes on.
	First int
	// Ahead is for how many of them the engine looks at once at first, MaxAhead at most; later it is MaxAhead.
	Ahead int
}

// spanWalk knows in which span a walk is.
type spanWalk struct {
	Spans
	reverse bool
	table   []byte // what the keys of the index begin with
	told    int    // up to which span the engine knows that the walk comes there
	ahead   int    // for how many it looks at once
	key     []byte // that it was sent to last
	keys    [MaxAhead][]byte
	buf     []byte
}

// place says where an entry lies: in a span, before one, or behind the last.
type place struct {
	span         int
	inside, over bool
}

// place is that of the key, which is not before a span. Where it lies before one, leap is where that begins.
func (s *spanWalk) place(key []byte, span int) (p place, leap []byte) {
	for {
		low, high := s.At(span)
		before, behind := low != nil && bytes.Compare(key, low) < 0, high != nil && bytes.Compare(key, high) >= 0
		leap = low
		if s.reverse {
			before, behind, leap = behind, before, high
		}
		switch {
		case before:
			return place{span: span}, leap
		case !behind:
			return place{span: span, inside: true}, nil
		}
		if span++; span == s.N {
			return place{span: span - 1, over: true}, nil
		}
	}
}

// begin tells the engine where the cursor's walk begins, and where it goes on, when it does not go on behind some entry.
func (s *spanWalk) begin(c *IndexCursor, first []byte) { s.tell(c, first, s.First) }

// leap sends the walk to the beginning of a span.
func (s *spanWalk) leap(c *IndexCursor, span int, to []byte) {
	if span >= s.told {
		s.tell(c, nil, span)
	}
	s.key = append(append(s.key[:0], s.table...), to...)
	c.walk.Seek(s.key)
}

// tell tells the engine of some spans from one on. A span that is open at its beginning is the first, which begins at first.
func (s *spanWalk) tell(c *IndexCursor, first []byte, span int) {
	keys := s.keys[:0]
	s.buf = s.buf[:0]
	if first != nil {
		keys, span = append(keys, first), span+1
	}
	for ; span < s.N && len(keys) < s.ahead; span++ {
		low, high := s.At(span)
		if s.reverse {
			low = high
		}
		start := len(s.buf)
		s.buf = append(append(s.buf, s.table...), low...)
		keys = append(keys, s.buf[start:len(s.buf):len(s.buf)])
	}
	s.told, s.ahead = span, MaxAhead
	c.walk.Ahead(keys)
}

func newSpanWalk(s *Spans, c *IndexCursor, reverse bool) *spanWalk {
	return &spanWalk{Spans: *s, reverse: reverse, ahead: min(max(s.Ahead, 1), MaxAhead), table: layout.TableKey(nil, c.entries.Definition)}
}
