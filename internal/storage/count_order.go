package storage

import (
	"context"
	"slices"
	"sync"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// orderCount is a count of a collection's order that goes on in slices, beside writers, which add to the histogram what they
// change since it was begun. The zero orderCount has not begun.
type orderCount struct {
	sync.Mutex                        // held by who counts for the histogram
	histogram  *expiryorder.Histogram // the one that is counted for
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
	if c.order.Histogram.IsKnown() {
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
	if c.order.Histogram.IsKnown() {
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
	if n.histogram != c.order.Histogram {
		n.close()
	}
	if c.order.Histogram.IsKnown() {
		n.close()
		return false, nil
	}
	if n.reader == nil {
		v, err := s.beginHistogram(ctx, c)
		if err != nil {
			return false, err
		}
		n.histogram, n.reader = c.order.Histogram, v.read(c)
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
		more = !n.histogram.Done()
	}
	n.close()
	return more, nil
}

// beginHistogram makes writers add to the histogram from a moment on, and returns a view of that moment, which no context ends.
func (s *Store) beginHistogram(ctx context.Context, c *collection) (*View, error) {
	if err := c.state.lock.acquire(ctx, true); err != nil {
		return nil, err
	}
	defer c.state.lock.release(true)
	c.order.Histogram.Reset()
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

// histogramStep is how many records are counted before the histogram is told.
const histogramStep = 4096

// histogramSome adds what lies in the order in the view, from a key on, nil for the beginning, and returns where to go on after at most
// so many records; nil when that was all.
func (r *Reader) histogramSome(from []byte, most int) (next []byte, err error) {
	low, high := r.c.order.Bounds()
	if from != nil {
		low = from
	}
	var w walk.Keys
	if err := w.Open(r.view.ctx, r.view.reader, kv.IterOptions{Lower: low, Upper: high}, false, nil); err != nil {
		return nil, err
	}
	defer w.Close()
	var some []expiryorder.Change
	for n := 0; w.Next(); n++ {
		if n == most {
			next = slices.Clone(w.Key())
			break
		}
		span, date, ok := r.c.order.Of(RecordID(w.Key()[layout.TableLength:]))
		if !ok { // all that has no deadline lies behind
			break
		}
		n, err := w.DocumentBytes()
		if err != nil {
			return nil, err
		}
		if k := len(some); k > 0 && some[k-1].Span == span && some[k-1].Date == date {
			some[k-1].Documents++
			some[k-1].Bytes += n
			continue
		}
		if len(some) == histogramStep {
			r.c.order.Histogram.Add(some)
			some = some[:0]
		}
		some = append(some, expiryorder.Change{Span: span, Date: date, Documents: 1, Bytes: n})
	}
	r.c.order.Histogram.Add(some)
	return next, w.Err()
}
