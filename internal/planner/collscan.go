package planner

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
)

// CollScan looks at every document, or every one in a span of a clustered collection, in natural order or backwards.
type CollScan struct {
	Filter   *match.Filter
	Backward bool
	// Span has the values of _id, in a clustered collection, that Records has as record ids; nil is all.
	Span    *Interval
	Records Range
	// One says that Records begins with the one record that it can have.
	One bool
}

// Stage implements Node.
func (n *CollScan) Stage() string {
	if n.Span != nil {
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
		b.Value("minRecord", n.Span.Low)
	}
	if n.Span != nil && n.Span.High.Type != bson.TypeMaxKey {
		b.Value("maxRecord", n.Span.High)
	}
}
