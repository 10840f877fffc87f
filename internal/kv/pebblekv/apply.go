package pebblekv

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/overlay"
)

// commit makes visible, and durable as d says, what a transaction or another store has written.
func (e *Engine) commit(ctx context.Context, t *pending, d kv.Durability) error {
	err := e.commits.commit(ctx, t, d)
	if u, left := err.(*kv.Unsettled); left {
		return u.Then(func(err error) error { return e.committed(t, d, err) })
	}
	return e.committed(t, d, err)
}

// committed does what follows from a commit whose outcome is err, which it returns.
func (e *Engine) committed(t *pending, d kv.Durability, err error) error {
	if err != nil {
		return err
	}
	if ranges := t.Ranges(); len(ranges) > 0 {
		e.reclaim.deleted(t.Size(), ranges...)
	}
	switch {
	case e.commits.member.Load(): // whose log is what makes commits durable
	case d == kv.Buffered:
		e.syncer.wake()
	case d == kv.Unsynced && !e.volatile:
		e.forgotten.wake()
	}
	return nil
}

// batch is nil when there is nothing to write. Counters and what is stamped are left out: their values are known when the commit
// is ordered.
func (e *Engine) batch(c *kv.Commit) *pebble.Batch {
	w, ranges := c.Writes, c.Ranges()
	if w.Len() == 0 && len(w.Counters()) == 0 && len(ranges) == 0 && len(c.Stamped) == 0 {
		return nil
	}
	b := e.db.NewBatchWithSize(c.TotalSize() + batchOpOverhead)
	for _, r := range ranges { // first: what the batch writes later stays
		must(b.DeleteRange(r.Start, r.End, nil))
	}
	// One function for each kind of Writes: what is called through an interface is put on the heap.
	if own, ok := w.(*overlay.Writes); ok {
		own.Each(func(op kv.Op) { put(b, op) })
	} else {
		w.Each(func(op kv.Op) { put(b, op) })
	}
	return b
}

func put(b *pebble.Batch, op kv.Op) {
	if op.Delete {
		must(b.Delete(op.Key, nil))
		return
	}
	must(b.Set(op.Key, op.Value, nil))
}

// Apply is kv.Engine's.
func (e *Engine) Apply(ctx context.Context, c *kv.Commit, d kv.Durability) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.closed.Load() {
		return kv.ErrClosed
	}
	if err := e.room.admitAny(); err != nil {
		return err
	}
	if c.Table != nil {
		return e.applyTable(ctx, c)
	}
	t := &pending{Commit: c, ordered: true, batch: e.batch(c)}
	if t.batch == nil {
		return errors.New("pebblekv: apply: the commit writes nothing")
	}
	if err := e.commit(ctx, t, d); err != nil {
		return fmt.Errorf("pebblekv: apply: %w", err)
	}
	return nil
}

// applyTable puts the pairs into the store as its writer did. They are on stable storage before the Commit is ordered.
func (e *Engine) applyTable(ctx context.Context, c *kv.Commit) (err error) {
	if next, _ := e.Last(); c.Number != next+1 { // before anything is written
		return fmt.Errorf("pebblekv: apply: %w: it is %d, and the next is %d", kv.ErrOrder, c.Number, next+1)
	}
	pairs, err := c.Table.Open()
	if err != nil {
		return fmt.Errorf("pebblekv: apply: %w", err)
	}
	defer func() { err = errors.Join(err, pairs.Close()) }()
	if !c.Table.Replaces {
		return e.load(ctx, pairs.Next, c)
	}
	r, err := e.replace(c.Table.Start)
	if err != nil {
		return err
	}
	defer r.Discard()
	for {
		key, value, ok, err := pairs.Next()
		if err != nil {
			return fmt.Errorf("pebblekv: apply: %w", err)
		}
		if !ok {
			break
		}
		if err := r.Set(key, value); err != nil {
			return err
		}
	}
	if err := r.Seal(c.Table.End); err != nil {
		return err
	}
	return r.commit(ctx, c)
}

// tableOf names the pairs of a range to those who are told of the Commit that put them there.
func (e *Engine) tableOf(r kv.Range, replaces bool) *kv.Table {
	return &kv.Table{Range: r, Replaces: replaces, Open: func() (kv.Pairs, error) { return e.pairs(r) }}
}

func (e *Engine) pairs(r kv.Range) (kv.Pairs, error) {
	s, err := e.Snapshot()
	if err != nil {
		return nil, err
	}
	it, err := s.NewIter(kv.IterOptions{Lower: r.Start, Upper: r.End})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &tablePairs{s, it}, nil
}

// tablePairs reads a range as it was when a Commit became visible.
type tablePairs struct {
	snapshot kv.Snapshot
	it       kv.Iterator
}

func (p *tablePairs) Next() (key, value []byte, ok bool, err error) {
	if !p.it.Next() {
		return nil, nil, false, p.it.Err()
	}
	value, err = p.it.Value()
	return p.it.Key(), value, err == nil, err
}

func (p *tablePairs) Close() error { return errors.Join(p.it.Close(), p.snapshot.Close()) }
