package cursor

import (
	"slices"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

// parkedBytes is what the cursor itself takes while it is parked.
func (c *Cursor) parkedBytes() int64 {
	return cursorBytes + c.ParsedBytes + int64(len(c.Command)+len(c.pending))
}

// held is what ends with a parked cursor.
func (c *Cursor) held() int64 { return c.Source.Held() + c.ParsedBytes }

func tooFull() error {
	return mongoerr.New(mongoerr.ExceededMemoryLimit, "Exceeded memory limit of the server: there is no room for another open cursor")
}

// shrink is a memory.Holder: the sources that hold most part with what they can. Cursors that still hold much end.
func (r *Registry) shrink(want int64) (freed int64) {
	for freed < want {
		c := r.takeLargest()
		if c == nil {
			break
		}
		before := c.Source.Held()
		if err := c.Source.Shrink(); err != nil {
			r.fail(c, err)
		}
		freed += before - c.Source.Held()
		r.shrunk(c)
	}
	if freed < want {
		freed += r.sacrifice(want - freed)
	}
	return freed
}

// takeLargest hands out the idle cursor whose source holds most and has not been asked yet, nil for none.
func (r *Registry) takeLargest() (largest *Cursor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	most := int64(minShrink)
	for _, c := range r.mu.open {
		if c.busy || c.why != nil || c.shrunk {
			continue
		}
		if held := c.Source.Held(); held >= most {
			largest, most = c, held
		}
	}
	if largest != nil {
		largest.busy, largest.shrunk, largest.shrinking = true, true, make(chan struct{})
	}
	return largest
}

// shrunk gives back what takeLargest has handed out.
func (r *Registry) shrunk(c *Cursor) {
	r.free(c)
	r.mu.Lock()
	defer r.mu.Unlock()
	close(c.shrinking)
	c.shrinking = nil
}

// fail has the next getMore of c, which the caller has, fail with why.
func (r *Registry) fail(c *Cursor, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.end(why)
}

// sacrifice ends cursors that hold much, first the one that was used least lately. Their next getMore says why.
func (r *Registry) sacrifice(want int64) (freed int64) {
	now := r.clock.Now()
	var idle []*Cursor
	r.mu.Lock()
	for _, c := range r.mu.open {
		if !c.busy && c.why == nil && now.Sub(c.used) >= sacrificeAfter && c.held() >= minSacrifice {
			idle = append(idle, c)
		}
	}
	slices.SortFunc(idle, func(a, b *Cursor) int { return a.used.Compare(b.used) })
	var ended []Source
	for _, c := range idle {
		if freed >= want {
			break
		}
		held := c.held()
		freed += held
		ended = append(ended, c.Source)
		c.end(mongoerr.New(mongoerr.ExceededMemoryLimit, "the cursor was ended because the server's memory was used up and it held %d bytes that cannot be moved to disk", held))
		c.memory.Give(c.ParsedBytes)
		c.Source, c.pending, c.Executed, c.Examined, c.ParsedBytes = invalid{c.why}, nil, nil, nil, 0
	}
	r.mu.sacrificed += int64(len(ended))
	r.mu.Unlock()
	for _, s := range ended {
		_ = s.Close()
	}
	return freed
}
