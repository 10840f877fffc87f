package ownership

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

// Sequence hands out the numbers of a collection's records. The first is one more than the highest that is stored. Where
// records lie by a TTL's dates the highest cannot be found, so there numbers are reserved on disk, many at once.
type Sequence struct {
	// Collection is the collection's number.
	Collection uint32
	// committed is the highest that a record of any Commit has got, and reserved what Commits have reserved, as far as Commits have
	// told since the start. Both only grow.
	committed, reserved atomic.Uint64
	mu                  struct {
		sync.Mutex
		last  uint64 // that was given out; it may be below committed when others wrote meanwhile
		known bool
	}
}

// Follow takes note of what a Commit says.
func (q *Sequence) Follow(committed, reserved uint64) {
	raise(&q.committed, committed)
	raise(&q.reserved, reserved)
}

// Known is what Commits have told: the highest that a record has got, and what is reserved.
func (q *Sequence) Known() (committed, reserved uint64) { return q.committed.Load(), q.reserved.Load() }

func raise(to *atomic.Uint64, n uint64) {
	for old := to.Load(); old < n && !to.CompareAndSwap(old, n); old = to.Load() {
	}
}

// sequenceChunk is how many are reserved at once.
const sequenceChunk = 1 << 16

// Next is a number that no record has had. Where the highest cannot be found from the records, it is reserved.
func (q *Sequence) Next(e kv.Engine, reserved bool) (uint64, error) {
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

// Secure notes on disk, unless that is done, that all numbers up to the last are in use: before the record with the highest
// goes to where it is not found.
func (q *Sequence) Secure(e kv.Engine) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.find(e); err != nil {
		return err
	}
	return q.reserveMore(e)
}

func (q *Sequence) reserveMore(e kv.Engine) error {
	if q.mu.last < q.reserved.Load() {
		return nil
	}
	return q.reserve(e)
}

// LastGiven is the highest that any record has, or may have.
func (q *Sequence) LastGiven(e kv.Engine) (uint64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.find(e)
	return q.mu.last, err
}

// find makes the last known; the caller holds mu.
func (q *Sequence) find(e kv.Engine) error {
	if q.mu.known {
		q.mu.last = max(q.mu.last, q.committed.Load())
		return nil
	}
	s, err := e.Snapshot()
	if err != nil {
		return fmt.Errorf("storage: last record: %w", err)
	}
	defer s.Close()
	last, err := lastSequence(s, q.Collection)
	if err != nil {
		return err
	}
	reserved, err := readReserved(s, q.Collection)
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
func (q *Sequence) reserve(e kv.Engine) error {
	t, err := e.Begin()
	if err != nil {
		return fmt.Errorf("storage: reserve record numbers: %w", err)
	}
	upTo := q.mu.last + sequenceChunk
	t.Set(layout.SequenceKey(q.Collection), binary.BigEndian.AppendUint64(nil, upTo))
	change := meaning.NewChange(q.Collection)
	change.Reserved = upTo
	t.Mean(&meaning.Meaning{Changes: []*meaning.Change{&change}})
	if err := t.Commit(context.Background(), kv.Buffered); err != nil {
		return fmt.Errorf("storage: reserve record numbers: %w", err)
	}
	return nil
}
