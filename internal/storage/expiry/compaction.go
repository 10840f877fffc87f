package expiry

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// compactedShare: a compaction goes on as long as at least one entry in so many is dead.
const compactedShare = 2 * DenseShare

// Compaction writes the living entries of a stretch of an index where nobody sees them, to take the place of the stretch.
type Compaction struct {
	Into kv.Replacement
	// Removed is how many entries were left out.
	Removed int

	dead []byte // the key of one of them
}

// Slice goes on by so many entries of the index from where the round is; ended says that they were the last.
func (c *Compaction) Slice(ctx context.Context, r kv.Reader, t layout.Entries, dead expiryorder.Tombstones, at *Round, limit int) (ended bool, err error) {
	var w walk.Keys
	if err := openBehind(ctx, r, &w, t, at); err != nil {
		return false, err
	}
	defer w.Close()
	var room layout.IDRoom
	looked, removed := 0, 0
	for looked < limit && w.Next() {
		looked++
		key := w.Key()
		at.After = append(at.After[:0], key...)
		gone, value, err := isDead(t, &w, dead, &room)
		switch {
		case err != nil:
			return false, err
		case gone:
			if removed++; c.dead == nil {
				c.dead = slices.Clone(key)
			}
		default:
			if err := c.Into.Set(key, value); err != nil {
				return false, err
			}
		}
	}
	c.Removed += removed
	at.Dense = removed >= looked/compactedShare
	return looked < limit, w.Err()
}

// Note is what is stored while the compaction takes its place.
func (c *Compaction) Note(index uint32) Note { return Note{index, int64(c.Removed), c.dead} }

// Note is stored while a compaction takes its place, which is no part of a transaction: the counter of the index counts less
// already, and if an entry that was dead is still there after a crash, it counted less too soon.
type Note struct {
	Index   uint32
	Removed int64
	Dead    []byte // the key of an entry that is removed
}

// Add stores the note, and has the counter count less.
func (n Note) Add(t kv.Txn) {
	t.Set(layout.CompactionKey(n.Index), append(binary.BigEndian.AppendUint64(nil, uint64(n.Removed)), n.Dead...))
	t.Add(n.counter(), -n.Removed)
}

// Remove removes the note.
func (n Note) Remove(t kv.Txn) { t.Delete(layout.CompactionKey(n.Index)) }

// Undo removes the note, and has the counter count as before.
func (n Note) Undo(t kv.Txn) {
	n.Remove(t)
	t.Add(n.counter(), n.Removed)
}

func (n Note) counter() []byte {
	return layout.CounterKey(nil, layout.OfIndex, n.Index, layout.CountSurplus)
}

// ReadNote reads a note; the key is the index's number.
func ReadNote(key, value []byte) (n Note, err error) {
	if len(key) != 4 || len(value) < 8 {
		return n, fmt.Errorf("storage: a note of an index compaction has the key %x and %d bytes", key, len(value))
	}
	return Note{binary.BigEndian.Uint32(key), int64(binary.BigEndian.Uint64(value)), slices.Clone(value[8:])}, nil
}

// IsEarly says whether what was compacted is not in its place yet, so that the counter says less than there is.
func (n Note) IsEarly(r kv.Reader) (bool, error) {
	switch _, err := r.Get(n.Dead); {
	case errors.Is(err, kv.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("storage: look for what was compacted: %w", err)
	}
	return true, nil
}
