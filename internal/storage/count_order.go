package storage

import (
	"context"
	"sync"
)

// orderCount is a count of a collection's order that goes on in slices, beside writers, which add to the histogram what they
// change since it was begun. The zero orderCount has not begun.
type orderCount struct {
	sync.Mutex                // held by who counts for the histogram
	histogram  *dateHistogram // the one that is counted for
	reader     *Reader
	from       []byte // where to go on
}

// close gives up what is not done.
func (n *orderCount) close() {
	if n.reader != nil {
		_ = n.reader.view.Close() // it was only read
	}
	n.histogram, n.reader, n.from = nil, nil, nil
}

// countedAtOnce is how many documents of a collection a sweep counts itself: some milliseconds.
const countedAtOnce = 1 << 14

// CountOrder goes on counting how a collection lies in the order of its expiry, by at most so many records; without that, after
// a start, nothing is swept from a large one. more is false when it is known.
func (s *Store) CountOrder(ctx context.Context, collection uint32, most int) (more bool, err error) {
	c := s.current.Load().collections[collection]
	if c == nil {
		return false, nil
	}
	c.state.counting.Lock()
	defer c.state.counting.Unlock()
	if c.order == nil {
		c.state.counting.close()
		return false, nil
	}
	return s.countSome(ctx, c, most)
}

// countSoon counts a small collection; counted is false when there is more to count.
func (s *Store) countSoon(ctx context.Context, c *collection) (counted bool, err error) {
	if c.order.histogram.isKnown() {
		return true, nil
	}
	v, err := s.View(ctx)
	if err != nil {
		return false, err
	}
	documents, _, err := v.read(c).storedCounts()
	if v.Close(); err != nil || documents > s.countedAtOnce {
		return false, err
	}
	return true, s.countOrder(ctx, c)
}

// countOrder makes the histogram of a collection's order known, beside writers, for one who waits.
func (s *Store) countOrder(ctx context.Context, c *collection) error {
	if c.order.histogram.isKnown() {
		return nil
	}
	c.state.counting.Lock()
	defer c.state.counting.Unlock()
	for more := true; more; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var err error
		if more, err = s.countSome(ctx, c, countedAtOnce); err != nil {
			return err
		}
	}
	return nil
}

// countSome counts on for one who holds counting.
func (s *Store) countSome(ctx context.Context, c *collection, most int) (more bool, err error) {
	n := &c.state.counting
	if n.histogram != c.order.histogram {
		n.close()
	}
	if c.order.histogram.isKnown() {
		n.close()
		return false, nil
	}
	if n.reader == nil {
		v, err := s.beginHistogram(ctx, c)
		if err != nil {
			return false, err
		}
		n.histogram, n.reader = c.order.histogram, v.read(c)
	}
	if n.from, err = n.reader.histogramSome(n.from, most); err != nil {
		n.close()
		return false, err
	}
	now := s.current.Load().collections[c.ID]
	switch {
	case now == nil || now.state != c.state: // it was dropped
	case n.from != nil:
		return true, nil
	default:
		n.histogram.done()
	}
	n.close()
	return false, nil
}

// beginHistogram makes writers add to the histogram from a moment on, and returns a view of that moment, which no context ends.
func (s *Store) beginHistogram(ctx context.Context, c *collection) (*View, error) {
	if err := c.state.lock.acquire(ctx, true); err != nil {
		return nil, err
	}
	defer c.state.lock.release(true)
	c.order.histogram.reset()
	return s.View(context.WithoutCancel(ctx))
}

// stopCounting gives up a count that is not done, of a collection whose lock nobody holds who waits for this.
func (c *collection) stopCounting() {
	if c == nil {
		return
	}
	c.state.counting.Lock()
	defer c.state.counting.Unlock()
	c.state.counting.close()
}

// stopCounting gives up all counts that are not done.
func (s *Store) stopCounting() {
	for _, c := range s.current.Load().collections {
		c.stopCounting()
	}
}
