// Package walk moves through the keys of a snapshot, in one direction, and ends with its context.
package walk

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// Keys moves an engine's iterator in one direction and ends with its context. The zero Keys has nothing to walk.
type Keys struct {
	ctx context.Context
	it  kv.Iterator // nil: there is nothing to walk
	// Reverse says that the walk goes down.
	Reverse bool
	// Again has a walk begin with the key that it would go on behind. It is set before Open.
	Again bool
	first func() bool // the move that comes next, when it is not a step
	steps int
	ended error
}

// StepsBetweenChecks is how many keys a walk passes between two looks at its context.
const StepsBetweenChecks = 256

// Open begins a walk within bounds, behind the key after unless that is nil. Close it.
func (w *Keys) Open(ctx context.Context, r kv.Reader, bounds kv.IterOptions, reverse bool, after []byte) error {
	w.ctx = ctx
	if bytes.Compare(bounds.Lower, bounds.Upper) >= 0 {
		return nil // nothing lies between
	}
	it, err := r.NewIter(bounds)
	if err != nil {
		return fmt.Errorf("storage: scan: %w", err)
	}
	w.it, w.Reverse = it, reverse
	if after != nil {
		w.first = func() bool { return w.behind(after) }
	}
	return nil
}

// OpenRange opens a walk forward over all keys that begin with start.
func (w *Keys) OpenRange(ctx context.Context, r kv.Reader, start []byte) error {
	return w.Open(ctx, r, kv.IterOptions{Lower: start, Upper: layout.After(start)}, false, nil)
}

// behind moves to the first key behind after.
func (w *Keys) behind(after []byte) bool {
	if w.Reverse {
		return w.it.SeekLT(after)
	}
	moved := w.it.SeekGE(after)
	if moved && !w.Again && string(w.it.Key()) == string(after) {
		return w.it.Next()
	}
	return moved
}

// Seek has the next move lead to key or behind it; in reverse, to before it.
func (w *Keys) Seek(key []byte) {
	w.first = func() bool {
		if w.Reverse {
			return w.it.SeekLT(key)
		}
		return w.it.SeekGE(key)
	}
}

// Ahead tells the engine to which keys Seek will send the walk soon, one after the other.
func (w *Keys) Ahead(keys [][]byte) {
	if w.it != nil {
		w.it.Ahead(keys, w.Reverse)
	}
}

// Next moves to the next key; false at the end, on an error and when the context has ended.
func (w *Keys) Next() bool {
	if w.steps++; w.steps%StepsBetweenChecks == 0 && w.ctx.Err() != nil {
		w.ended = context.Cause(w.ctx)
	}
	switch {
	case w.ended != nil || w.it == nil:
		return false
	case w.first != nil:
		move := w.first
		w.first = nil
		return move()
	case w.Reverse:
		return w.it.Prev()
	default:
		return w.it.Next()
	}
}

// Key is the key that the walk stands on, valid until it moves.
func (w *Keys) Key() []byte { return w.it.Key() }

// Value is the value there, valid until the walk moves.
func (w *Keys) Value() ([]byte, error) { return w.it.Value() }

// Record is the record that the walk stands on.
func (w *Keys) Record() (rec layout.Record, err error) {
	err = w.ReadRecord(&rec)
	return rec, err
}

// ReadRecord makes rec the record that the walk stands on.
func (w *Keys) ReadRecord(rec *layout.Record) error {
	value, err := w.it.Value()
	if err != nil {
		return fmt.Errorf("storage: read a record: %w", err)
	}
	return rec.Read(layout.RecordID(w.it.Key()[layout.TableLength:]), value)
}

// ReadEntry makes entry the one that the walk stands on.
func (w *Keys) ReadEntry(entry *layout.IndexEntry, e layout.Entries, room *layout.IDRoom) error {
	value, err := w.it.Value()
	if err != nil {
		return fmt.Errorf("storage: read an index entry: %w", err)
	}
	return e.ReadEntry(entry, w.it.Key(), value, room)
}

// Err is what ended the walk, nil at its end.
func (w *Keys) Err() error {
	if w.ended != nil {
		return w.ended
	}
	if w.it == nil || w.it.Err() == nil {
		return nil
	}
	return fmt.Errorf("storage: scan: %w", w.it.Err())
}

// Close gives the iterator back; it may be called again.
func (w *Keys) Close() error {
	if w.it == nil {
		return nil
	}
	err := w.it.Close()
	w.it = nil
	return err
}

// DocumentBytes is the length of the document that the walk stands on.
func (w *Keys) DocumentBytes() (int64, error) {
	value, err := w.it.Value()
	if err != nil {
		return 0, fmt.Errorf("storage: read a record: %w", err)
	}
	if len(value) < layout.HeaderLength {
		return 0, fmt.Errorf("storage: %w: %x", layout.ErrBrokenRecord, w.it.Key())
	}
	return int64(len(value) - layout.HeaderLength), nil
}

// CountStep is how many keys are counted between two looks at the context.
const CountStep = 4096

// Count counts keys up to limit; below zero there is none.
func Count(ctx context.Context, r kv.Reader, bounds kv.IterOptions, limit int64) (n int64, err error) {
	var w Keys
	if err := w.Open(ctx, r, bounds, false, nil); err != nil || w.it == nil {
		return 0, err
	}
	defer w.Close()
	for n != limit && w.it.Next() {
		if n++; n%CountStep == 0 && ctx.Err() != nil {
			return n, context.Cause(ctx)
		}
	}
	return n, w.Err()
}
