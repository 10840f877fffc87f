package sweeper

import (
	"context"
	"sync"

	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
)

// orderCount is a count of a collection's order that goes on in slices, beside writers, which add to the histogram what they
// change since it was begun. The zero orderCount has not begun.
type orderCount struct {
	sync.Mutex                        // held by who counts for the histogram
	histogram  *expiryorder.Histogram // the one that is counted for
	reader     *storage.Reader
	from       []byte // where to go on
}

// close gives up what is not done.
func (n *orderCount) close() {
	if n.reader != nil {
		_ = n.reader.View().Close() // it was only read
	}
	n.histogram, n.reader, n.from = nil, nil, nil
}

// stop is close for one who does not hold it. Nobody who waits for this holds the collection's lock.
func (n *orderCount) stop() {
	n.Lock()
	defer n.Unlock()
	n.close()
}

// countStep is how many records are counted at once for one who waits.
const countStep = 1 << 14

// CountOrder goes on counting how a collection lies in the order of its expiry, by at most so many records; without that, after
// a start, nothing is swept from a large one. more is false when it is known.
func (s *Sweeper) CountOrder(ctx context.Context, collection uint32, most int) (more bool, err error) {
	c, ok := s.store.CollectionByID(collection)
	if !ok {
		return false, nil
	}
	n := &s.workOf(collection).counting
	n.Lock()
	defer n.Unlock()
	if c.ExpiryOrder() == nil {
		n.close()
		return false, nil
	}
	return s.countSome(ctx, c, n, most)
}

// IsCounting says whether a count of the collection was begun and is not done: it holds a view.
func (s *Sweeper) IsCounting(collection uint32) bool {
	w, ok := s.known(collection)
	if !ok {
		return false
	}
	w.counting.Lock()
	defer w.counting.Unlock()
	return w.counting.reader != nil
}

// countSoon counts a small collection; counted is false when there is more to count.
func (s *Sweeper) countSoon(ctx context.Context, c storage.Collection) (counted bool, err error) {
	if c.ExpiryOrder().Histogram.IsKnown() {
		return true, nil
	}
	v, err := s.store.View(ctx)
	if err != nil {
		return false, err
	}
	documents, err := c.Read(v).Stored()
	if v.Close(); err != nil || documents > s.Limits.CountedAtOnce {
		return false, err
	}
	return true, s.countOrder(ctx, c)
}

// countOrder makes the histogram of a collection's order known, beside writers, for one who waits.
func (s *Sweeper) countOrder(ctx context.Context, c storage.Collection) error {
	if c.ExpiryOrder().Histogram.IsKnown() {
		return nil
	}
	n := &s.workOf(c.ID).counting
	n.Lock()
	defer n.Unlock()
	for more := true; more; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var err error
		if more, err = s.countSome(ctx, c, n, countStep); err != nil {
			return err
		}
	}
	return nil
}

// countSome counts on for one who holds n.
func (s *Sweeper) countSome(ctx context.Context, c storage.Collection, n *orderCount, most int) (more bool, err error) {
	histogram := c.ExpiryOrder().Histogram
	if n.histogram != histogram {
		n.close()
	}
	if histogram.IsKnown() {
		n.close()
		return false, nil
	}
	if n.reader == nil {
		v, err := s.beginHistogram(ctx, c)
		if err != nil {
			return false, err
		}
		n.histogram, n.reader = histogram, c.Read(v)
	}
	if n.from, err = expiry.CountOrder(n.reader.Dates(), n.from, most); err != nil {
		n.close()
		return false, err
	}
	_, there := s.store.CollectionByID(c.ID)
	switch {
	case !there: // it was dropped
	case n.from != nil:
		return true, nil
	default:
		more = !n.histogram.Done()
	}
	n.close()
	return more, nil
}

// beginHistogram makes commits add to the histogram from a moment on, and returns a view of that moment, which no context ends.
func (s *Sweeper) beginHistogram(ctx context.Context, c storage.Collection) (*storage.View, error) {
	unlock, err := c.LockToSweep(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	c.ExpiryOrder().Histogram.Reset()
	return s.store.View(context.WithoutCancel(ctx))
}
