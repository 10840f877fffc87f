package planner

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/match"
)

// CollScan looks at every document, or every one in a span of a clustered collection or of the oplog, in natural order or backwards.
type CollScan struct {
	Filter   *match.Filter
	Backward bool
	// Span has the values of _id, in a clustered collection, or of ts, in the oplog, that Records has as record ids; nil is all.
	Span    *Interval
	Records Range
	// Timed says that Span is of ts.
	Timed bool
	// One says that Records begins with the one record that it can have.
	One bool
}

// Stage implements Node.
func (n *CollScan) Stage() string {
	if n.Span != nil && !n.Timed {
		return "CLUSTERED_IXSCAN"
	}
	return "COLLSCAN"
}

// Children implements Node.
func (*CollScan) Children() []Node { return nil }

// Describe implements Node.
func (n *CollScan) Describe(b *bson.Builder) {
	b.String("direction", direction(n.Backward))
	if n.Span != nil && n.Span.Low.Type != bson.TypeMinKey {
		b.Value("minRecord", n.bound(n.Span.Low))
	}
	if n.Span != nil && n.Span.High.Type != bson.TypeMaxKey {
		b.Value("maxRecord", n.bound(n.Span.High))
	}
}

// bound is an end of Span as explain shows it: a timestamp as the number that the record's id is.
func (n *CollScan) bound(v bson.Value) bson.Value {
	if !n.Timed {
		return v
	}
	return bson.Int64(int64(timestamp(v)))
}

func timestamp(v bson.Value) uint64 {
	seconds, counter := v.Timestamp()
	return uint64(seconds)<<32 | uint64(counter)
}

// byTime is the order of the oplog's records as an index.
func byTime() Index {
	return Index{Definition: &index.Definition{Fields: []index.Field{{Path: "ts", Parts: []string{"ts"}}}}}
}

// bindTime holds s to the entries of the oplog that the query can want by their ts; none is false where there are none.
func (p *planning) bindTime(s *CollScan) (some bool) {
	bounds := p.boundsOf(byTime(), 0, p.demands(p.root), nil, 0).bounds
	if len(bounds) == 0 {
		return false
	}
	i, last := bounds[0], bounds[len(bounds)-1]
	i.High = last.High
	if n, ok := timeBound(i.Low); ok {
		s.Records.Low = p.c.RecordAt(n)
	} else {
		i.Low = bson.MinKey
	}
	if n, ok := timeBound(i.High); ok {
		s.Records.High = p.c.RecordAt(n + 1)
	} else {
		i.High = bson.MaxKey
	}
	if !(Intervals{i}).IsAll() {
		s.Span, s.Timed = &i, true
	}
	return true
}

// timeBound is a bound of ts as a number; it is not ok where that bounds nothing.
func timeBound(v bson.Value) (n uint64, ok bool) {
	if v.Type != bson.TypeTimestamp {
		return 0, false
	}
	n = timestamp(v)
	return n, n > 0 && n < math.MaxUint64
}
