package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// sequence hands out the numbers of a collection's records. The first is one more than the highest that is stored. Where
// records lie by a TTL's dates the highest cannot be found, so there numbers are reserved on disk, many at once.
type sequence struct {
	collection uint32
	// committed is the highest that a record of any Commit has got, and reserved what Commits have reserved, as far as Commits have
	// told since the start. Both only grow.
	committed, reserved atomic.Uint64
	mu                  struct {
		sync.Mutex
		last  uint64 // that was given out; it may be below committed when others wrote meanwhile
		known bool
	}
}

// follow takes note of what a Commit says.
func (q *sequence) follow(committed, reserved uint64) {
	raise(&q.committed, committed)
	raise(&q.reserved, reserved)
}

// sequenceChunk is how many are reserved at once.
const sequenceChunk = 1 << 16

func (q *sequence) next(e kv.Engine, reserved bool) (uint64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.find(e); err != nil {
		return 0, err
	}
	if reserved {
		if err := q.reserveMore(e); err != nil {
			return 0, err
		}
	}
	q.mu.last++
	return q.mu.last, nil
}

// secure notes on disk, unless that is done, that all numbers up to the last are in use: before the record with the highest
// goes to where it is not found.
func (q *sequence) secure(e kv.Engine) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.find(e); err != nil {
		return err
	}
	return q.reserveMore(e)
}

func (q *sequence) reserveMore(e kv.Engine) error {
	if q.mu.last < q.reserved.Load() {
		return nil
	}
	return q.reserve(e)
}

// lastGiven is the highest that any record has, or may have.
func (q *sequence) lastGiven(e kv.Engine) (uint64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.find(e)
	return q.mu.last, err
}

// find makes the last known; the caller holds mu.
func (q *sequence) find(e kv.Engine) error {
	if q.mu.known {
		q.mu.last = max(q.mu.last, q.committed.Load())
		return nil
	}
	s, err := e.Snapshot()
	if err != nil {
		return fmt.Errorf("storage: last record: %w", err)
	}
	defer s.Close()
	last, err := lastSequence(s, q.collection)
	if err != nil {
		return err
	}
	reserved, err := readReserved(s, q.collection)
	if err != nil {
		return err
	}
	raise(&q.reserved, reserved)
	q.mu.last, q.mu.known = max(last, reserved, q.committed.Load()), true
	return nil
}

// lastSequence is the highest number among the records that lie in the order of insertion.
func lastSequence(r kv.Reader, collection uint32) (last uint64, err error) {
	start := layout.RecordKey(nil, collection, nil)
	it, err := r.NewIter(kv.IterOptions{Lower: start, Upper: append(layout.RecordKey(nil, collection, nil), layout.OrderedMark)})
	if err != nil {
		return 0, fmt.Errorf("storage: last record: %w", err)
	}
	defer it.Close()
	if it.Last() {
		id := it.Key()[layout.TableLength:]
		if len(id) != layout.SequenceLength {
			return 0, fmt.Errorf("storage: record id %x is not one of a plain collection", id)
		}
		return binary.BigEndian.Uint64(id), nil
	}
	return 0, it.Err()
}

func readReserved(r kv.Reader, collection uint32) (uint64, error) {
	value, err := r.Get(layout.SequenceKey(collection))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("storage: last record: %w", err)
	case len(value) != 8:
		return 0, fmt.Errorf("storage: the reserved record number of collection %d has %d bytes", collection, len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}

// reserve notes on disk that numbers beyond the last may be in use. The note is in the log before all that needs it. The
// caller holds mu.
func (q *sequence) reserve(e kv.Engine) error {
	t, err := e.Begin()
	if err != nil {
		return fmt.Errorf("storage: reserve record numbers: %w", err)
	}
	upTo := q.mu.last + sequenceChunk
	t.Set(layout.SequenceKey(q.collection), binary.BigEndian.AppendUint64(nil, upTo))
	change := meaning.NewChange(q.collection)
	change.Reserved = upTo
	t.Mean(&meaning.Meaning{Changes: []*meaning.Change{&change}})
	if err := t.Commit(context.Background(), kv.Buffered); err != nil {
		return fmt.Errorf("storage: reserve record numbers: %w", err)
	}
	return nil
}
