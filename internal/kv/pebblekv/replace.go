package pebblekv

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/ebbdb/ebb/internal/kv"
)

// replacement is a kv.Replacement: a table of the pairs with a deletion of the range, which Pebble takes for older than they
// are when it takes the table over. What the range held goes like all that ranges delete, table by table and unread.
type replacement struct {
	engine *Engine
	span   kv.Range
	pairs  *sstable.Writer // nil once it is sealed
	paths  []string
	size   int
}

// Replace is kv.Engine's.
func (e *Engine) Replace(start []byte) (kv.Replacement, error) {
	r, err := e.replace(start)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (e *Engine) replace(start []byte) (*replacement, error) {
	if e.closed.Load() {
		return nil, kv.ErrClosed
	}
	if e.commits.member.Load() {
		return nil, errNoTables
	}
	r := &replacement{engine: e, span: kv.Range{Start: bytes.Clone(start)}}
	var err error
	if r.pairs, err = e.newTable(&r.paths); err != nil {
		return nil, fmt.Errorf("pebblekv: replace: %w", e.room.explain(err))
	}
	return r, nil
}

func (r *replacement) Set(key, value []byte) error {
	r.size += len(key) + len(value)
	if err := r.pairs.Set(key, value); err != nil {
		return fmt.Errorf("pebblekv: replace: %w", r.engine.room.explain(err))
	}
	return nil
}

func (r *replacement) Size() int { return r.size }

func (r *replacement) Seal(end []byte) error {
	r.span.End = bytes.Clone(end)
	if err := errors.Join(r.pairs.DeleteRange(r.span.Start, r.span.End), r.close()); err != nil {
		return fmt.Errorf("pebblekv: replace: %w", r.engine.room.explain(err))
	}
	return nil
}

// close syncs the table of the pairs, too.
func (r *replacement) close() error {
	if r.pairs == nil {
		return nil
	}
	err := r.pairs.Close()
	r.pairs = nil
	return err
}

func (r *replacement) Commit(ctx context.Context) error { return r.commit(ctx, nil) }

// commit is Commit of pairs that make up an ordered Commit, or nil for one that is to be ordered.
func (r *replacement) commit(ctx context.Context, ordered *kv.Commit) error {
	defer r.Discard()
	e := r.engine
	if e.closed.Load() {
		return kv.ErrClosed
	}
	if err := e.failure.writable(); err != nil {
		return err
	}
	// What the pairs stand for may be in the log alone, which the table goes around.
	if err := e.commits.sync(); err != nil {
		return err
	}
	t := ordered
	if t == nil {
		t = &kv.Commit{Writes: &kv.WriteList{}, Table: e.tableOf(r.span, true)}
	}
	if err := e.takeOver(ctx, r.paths, t, ordered != nil, &r.span); err != nil {
		return fmt.Errorf("pebblekv: replace: %w", err)
	}
	e.commits.snapshots.forget()
	e.reclaim.deleted(r.size, r.span)
	return nil
}

func (r *replacement) Discard() {
	_ = r.close() // the table goes away
	r.engine.removeTables(r.paths)
	r.paths = nil
}
