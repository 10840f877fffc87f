package tikvkv

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tikv/client-go/v2/txnkv/transaction"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/rangetombstone"
)

// reclaimer removes the keys that range tombstones hide, one range after the other, and then the tombstone. It writes beside the groups, in small
// transactions. What a group writes at one of the keys meanwhile is in conflict with such a transaction, which then looks again; and the group, where
// it is the later one, is tried again. Readers of earlier views have all that they had: TiKV keeps what was there, and each view has its tombstones.
//
// It rests longer than it works (reclaimRest), so that groups have the cluster most of the time.
type reclaimer struct {
	engine  *Engine
	ctx     context.Context // ends when it is to stop
	cancel  context.CancelFunc
	wake    chan struct{} // holds one token
	stopped chan struct{} // closed when the goroutine has ended
	removed atomic.Int64  // keys
	// written is how often the slot was written that is none of groups with commits: while the reclaimer removes keys, or waits for a tombstone to be dropped.
	written atomic.Uint64
	next    []byte // where the last removed range ended; the goroutine's
	learner learner
}

const (
	// reclaimBatch is how many keys one transaction removes, and reclaimBytes about how much of values it reads where it has to.
	reclaimBatch = 256
	reclaimBytes = 1 << 20
	// reclaimParts is how many parts of their values one transaction removes, or those of one value that has more.
	reclaimParts = 1 << 12
	// reclaimRest is how many times as long as one transaction took the next one waits.
	reclaimRest = 3
	// reclaimPause is how long it waits after a failure.
	reclaimPause = time.Second
)

func newReclaimer(e *Engine, written uint64) *reclaimer {
	r := &reclaimer{engine: e, wake: make(chan struct{}, 1), stopped: make(chan struct{}), learner: learner{engine: e}}
	r.written.Store(written)
	r.ctx, r.cancel = context.WithCancel(e.ctx)
	return r
}

// poke tells that there may be a new tombstone.
func (r *reclaimer) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *reclaimer) run() {
	defer close(r.stopped)
	e := r.engine
	for r.ctx.Err() == nil {
		more, err := r.work()
		switch {
		case r.ctx.Err() != nil:
		case errors.Is(err, ErrLost):
			e.lose(err)
			return
		case err != nil:
			e.options.Logger.Debug("Keys of deleted ranges could not be removed, or those of long values not be learnt, which is tried again", "error", err)
			_ = clock.Wait(r.ctx, e.options.Clock, reclaimPause) // it ends, or goes on
		case !more:
			select {
			case <-r.wake:
			case <-r.ctx.Done():
			}
		}
	}
}

// work learns what has parts, or removes the next range; more is false when there is nothing to do.
func (r *reclaimer) work() (more bool, err error) {
	if !r.engine.longs.stale() {
		return r.reclaimNext()
	}
	began := clock.Monotonic(r.engine.options.Clock)
	if err := r.learnSome(); err != nil {
		return true, err
	}
	return true, r.rest(began)
}

// learnSome goes on to learn which keys have parts.
func (r *reclaimer) learnSome() error {
	_, err := r.learner.learn(r.ctx)
	return err
}

// rest waits, after what began then.
func (r *reclaimer) rest(began time.Duration) error {
	c := r.engine.options.Clock
	return clock.Wait(r.ctx, c, reclaimRest*(clock.Monotonic(c)-began))
}

// reclaimNext removes the next range; more is false when there is none.
func (r *reclaimer) reclaimNext() (more bool, err error) {
	one, ok := r.begin()
	if !ok {
		return false, nil
	}
	e := r.engine
	for from, ended := one.Start, false; !ended; {
		began := clock.Monotonic(e.options.Clock)
		if from, ended, err = r.removeSome(kv.Range{Start: from, End: one.End}, one.Number); err != nil {
			return true, err
		}
		if err := r.rest(began); err != nil {
			return true, err
		}
	}
	r.next = one.End
	return true, r.drop(one)
}

// begin is the tombstone whose keys are removed next: the one behind the last, so that each has its turn.
func (r *reclaimer) begin() (rangetombstone.Tombstone, bool) {
	c := r.engine.commits
	c.turn.Lock()
	defer c.turn.Unlock()
	all := c.tombstones.All()
	if len(all) == 0 {
		c.removing = rangetombstone.Tombstone{}
		return c.removing, false
	}
	c.removing = all[0]
	if t, ok := firstFrom(all, r.next); ok {
		c.removing = t
	}
	return c.removing, true
}

func firstFrom(all []rangetombstone.Tombstone, key []byte) (rangetombstone.Tombstone, bool) {
	for _, t := range all {
		if string(t.Start) >= string(key) {
			return t, true
		}
	}
	return rangetombstone.Tombstone{}, false
}

// removeSome removes the first keys in a range that the tombstone with a number hides. It returns where to go on.
func (r *reclaimer) removeSome(in kv.Range, number uint64) (from []byte, ended bool, err error) {
	e := r.engine
	l := e.lease
	t, epoch, written, err := r.beginRemoval(in)
	if err != nil {
		return in.Start, false, err
	}
	defer rollback(t)
	h, err := r.hidden(t, in, number, written)
	if err != nil {
		return in.Start, false, err
	}
	if len(h.keys) == 0 {
		return h.from, h.ended, nil
	}
	long, err := r.remove(t, &h)
	if err != nil {
		return in.Start, false, err
	}
	if err := t.Set(e.space.slot(slots), slotValue{number: r.written.Add(1)}.encode()); err != nil {
		return in.Start, false, err
	}
	if _, err := l.commitWithin(t, epoch); err != nil {
		return in.Start, false, errors.Join(l.isLost(), err)
	}
	r.removed.Add(int64(len(h.keys)))
	e.longs.remove(long)
	return h.from, h.ended, nil
}

// remove removes the keys, with the parts of their values, or the first of them where those have many. It returns how many have any.
func (r *reclaimer) remove(t *transaction.KVTxn, h *hidden) (long int, err error) {
	e := r.engine
	keys := make([][]byte, len(h.keys))
	for i, stored := range h.keys {
		keys[i] = stored[len(e.space.first):]
	}
	at := e.at(t)
	at.Within(r.ctx)
	parts, err := e.partsOf(at, keys)
	if err != nil {
		return 0, err
	}
	removed := 0
	for i, key := range keys {
		n := parts[string(key)]
		if removed += n; removed > reclaimParts && i > 0 {
			h.keys, h.from, h.ended = h.keys[:i], h.keys[i], false
			break
		}
		if n > 0 {
			long++
		}
		err = errors.Join(err, t.Delete(h.keys[i]))
		for part := range n {
			err = errors.Join(err, t.Delete(e.space.part(key, part)))
		}
	}
	return long, err
}

// beginRemoval is a transaction, and whether something was written in the range before it began. That is asked in a turn, in which all groups that
// it sees are known; those that come are in conflict with it where they write what it removes.
func (r *reclaimer) beginRemoval(in kv.Range) (t *transaction.KVTxn, epoch uint64, written bool, err error) {
	if t, epoch, err = r.engine.lease.beginWithin(); err != nil {
		return nil, 0, false, err
	}
	c := r.engine.commits
	c.turn.Lock()
	defer c.turn.Unlock()
	return t, epoch, c.tombstones.IsWritten(in), nil
}

// hidden is the first keys in a range that are hidden, where the scan for more of them goes on, and whether it has ended.
type hidden struct {
	keys  [][]byte
	from  []byte
	ended bool
}

// hidden scans at the transaction's time. A scan that is not answered ends as that of any reader does, and with the reclaimer.
func (r *reclaimer) hidden(t *transaction.KVTxn, in kv.Range, number uint64, written bool) (hidden, error) {
	e := r.engine
	at := e.at(t)
	at.Within(r.ctx)
	s, err := at.read()
	if err != nil {
		return hidden{}, err
	}
	n := reclaimBatch
	if s.SetKeyOnly(!written); written {
		n = e.lengths.limit(e.space, in.Start, n)
	}
	s.SetScanBatchSize(n)
	return bounded(at, func() (hidden, error) {
		scan, err := s.Iter(in.Start, in.End)
		if err != nil {
			return hidden{}, reading("scan", err)
		}
		defer scan.Close()
		return scanHidden(scan, in, number, n)
	})
}

// scanHidden looks at n pairs at most, and at about reclaimBytes of values.
func scanHidden(scan stored, in kv.Range, number uint64, n int) (h hidden, err error) {
	for size := 0; scan.Valid(); {
		key, value := scan.Key(), scan.Value()
		if wrote, _ := decodeNumber(value); wrote < number {
			h.keys = append(h.keys, key)
		}
		h.from = append(slices.Clone(key), 0)
		if n--; n <= 0 {
			return h, nil
		}
		if size += len(value); size > reclaimBytes {
			return h, nil
		}
		if err := scan.Next(); err != nil {
			return hidden{}, reading("scan", err)
		}
	}
	h.from, h.ended = in.End, true
	return h, nil
}

// drop removes a tombstone that hides nothing any more, with the next group. What was deleted in its range later has a tombstone of its own.
func (r *reclaimer) drop(one rangetombstone.Tombstone) error {
	return r.engine.commits.commit(r.ctx, &pending{Commit: &kv.Commit{Writes: &kv.WriteList{}}, begin: noTransaction, drop: &one})
}
