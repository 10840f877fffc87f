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

// sequence hands out the numbers of a collection's records. The first is one more than the highest that is stored. Where
// records lie by a TTL's dates the highest cannot be found, so there numbers are reserved on disk, many at once.
type sequence struct {
	engine     kv.Engine
	collection uint32
	// committed is the highest that a record of any Commit has got, and reserved what Commits have reserved, as far as Commits have
	// told since the start. Both only grow.
	committed, reserved atomic.Uint64
	mu                  struct {
		sync.Mutex
		last  uint64 // that was given out; it may be below committed when others wrote meanwhile
		known bool
		upTo  uint64 // the end of what was reserved here
	}
	// reserving holds one while somebody reserves. That takes as long as a commit does, in a replica set until a majority has it, so mu is not
	// held meanwhile.
	reserving chan struct{}
}

// follow takes note of what a Commit says.
func (q *sequence) follow(committed, reserved uint64) {
	raise(&q.committed, committed)
	raise(&q.reserved, reserved)
}

// Known is what Commits have told, for tests: the highest that a record has got, and what is reserved.
func (q *sequence) Known() (committed, reserved uint64) { return q.committed.Load(), q.reserved.Load() }

func raise(to *atomic.Uint64, n uint64) {
	for old := to.Load(); old < n && !to.CompareAndSwap(old, n); old = to.Load() {
	}
}

// sequenceChunk is how many are reserved at once.
const sequenceChunk = 1 << 16

// NextNumber is Collection's.
func (q *sequence) NextNumber(reserved bool) (number uint64, err error) {
	for {
		q.mu.Lock()
		err = q.find()
		there := err == nil && (!reserved || q.mu.last < q.mu.upTo)
		if there {
			q.mu.last++
			number = q.mu.last
		}
		q.mu.Unlock()
		if err != nil || there {
			return number, err
		}
		if err = q.reserve(); err != nil {
			return 0, err
		}
	}
}

// SecureNumbers is Collection's.
func (q *sequence) SecureNumbers() error {
	q.mu.Lock()
	err := q.find()
	q.mu.Unlock()
	if err != nil {
		return err
	}
	return q.reserve()
}

// LastNumber is Collection's.
func (q *sequence) LastNumber() (uint64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.find()
	return q.mu.last, err
}

// find makes the last known; the caller holds mu.
func (q *sequence) find() error {
	if q.mu.known {
		q.mu.last = max(q.mu.last, q.committed.Load())
		return nil
	}
	s, err := q.engine.Snapshot()
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

// reserve notes on disk that numbers beyond the last may be in use, and beyond what others have reserved, unless there are some left. The note
// is in the log before all that needs it.
func (q *sequence) reserve() error {
	q.reserving <- struct{}{}
	defer func() { <-q.reserving }()
	q.mu.Lock()
	last, enough := q.mu.last, q.mu.last < q.mu.upTo
	q.mu.Unlock()
	if enough {
		return nil
	}
	last, err := q.reserveFrom(last)
	if err != nil {
		return fmt.Errorf("storage: reserve record numbers: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.last, q.mu.upTo = max(q.mu.last, last), last+sequenceChunk
	return nil
}

// reserveFrom reserves a chunk behind last, or behind what is reserved already.
func (q *sequence) reserveFrom(last uint64) (uint64, error) {
	t, err := q.engine.Begin()
	if err != nil {
		return 0, err
	}
	key := layout.SequenceKey(q.collection)
	stored, err := readReserved(t, q.collection)
	if err != nil {
		t.Rollback()
		return 0, err
	}
	last = max(last, stored)
	t.Claim(key)
	change := meaning.NewChange(q.collection)
	Reserve(t, &change, last+sequenceChunk)
	t.Mean(&meaning.Meaning{Changes: []*meaning.Change{&change}})
	return last, t.Commit(context.Background(), kv.Buffered)
}

// Reserve notes in a transaction, and in what it means for a collection, that all numbers of records up to one may be in use.
func Reserve(t kv.Txn, change *meaning.Change, upTo uint64) {
	t.Set(layout.SequenceKey(change.Collection), binary.BigEndian.AppendUint64(nil, upTo))
	change.Reserved = upTo
}
