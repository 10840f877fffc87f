package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
)

// Counters are what explain shows of one iterator.
type Counters struct {
	Works, Returned int64
	EOF             bool
}

// Counted counts what it passes through.
type Counted struct {
	Iterator
	// Name is the stage's, "$group".
	Name     string
	Counters Counters
}

// Next implements Iterator.
func (c *Counted) Next(ctx context.Context) (bson.Doc, error) {
	c.Counters.Works++
	d, err := c.Iterator.Next(ctx)
	if d != nil {
		c.Counters.Returned++
	} else if err == nil {
		c.Counters.EOF = true
	}
	return d, err
}

// Stats are c as the counts of a plan's node.
func (c *Counters) Stats() *Stats {
	idle := c.Works - c.Returned
	if c.EOF {
		idle--
	}
	return &Stats{Works: c.Works, Advanced: c.Returned, NeedTime: max(idle, 0), EOF: c.EOF}
}
