package tikvkv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	tikverr "github.com/tikv/client-go/v2/error"
	"github.com/tikv/client-go/v2/txnkv/transaction"
	"github.com/tikv/client-go/v2/txnkv/txnsnapshot"

	"github.com/ebbdb/ebb/internal/kv"
)

// snapshot is a kv.Snapshot.
type snapshot struct {
	of     *reads
	view   view
	ctx    context.Context // of who reads; nil: it has none
	closed atomic.Bool
}

// Within is kv.Snapshot's.
func (s *snapshot) Within(ctx context.Context) { s.ctx = ctx }

var errSnapshotClosed = errors.New("tikvkv: the snapshot is closed already")

// at is what is stored when a transaction of TiKV began, whatever hides it.
func (r *reads) at(t *transaction.KVTxn) *snapshot {
	return &snapshot{of: r, view: view{ts: t.StartTS()}}
}

// read is TiKV's snapshot. It is made anew for each read, because it keeps all that it has read.
func (s *snapshot) read() (*txnsnapshot.KVSnapshot, error) {
	if s.of.views.isGone(s.view) {
		return nil, errTooOld
	}
	r := s.of.store.GetSnapshot(s.view.ts)
	r.SetKVReadTimeout(answerTime)
	return r, nil
}

const (
	// readTime bounds one look into the cluster, with all that is tried again meanwhile, and answerTime one request of it: a store that has not
	// answered by then is asked no more, if another one leads its regions by now.
	readTime   = 10 * time.Second
	answerTime = 4 * time.Second
)

// readContext ends after readTime, with the engine, or with who reads.
func (s *snapshot) readContext() (context.Context, context.CancelFunc) {
	e := s.of
	if s.ctx == nil {
		return withLimit(e.ctx, e.options.Clock, readTime)
	}
	ctx, cancel := withLimit(s.ctx, e.options.Clock, readTime)
	unlink := context.AfterFunc(e.ctx, cancel)
	return ctx, func() { unlink(); cancel() }
}

// failed is the error of a read in ctx: what ended who reads, or what became of the cluster.
func (s *snapshot) failed(ctx context.Context, what string, err error) error {
	switch {
	case s.ctx != nil && s.ctx.Err() != nil:
		return context.Cause(s.ctx)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return reading(what, err)
}

// bounded has read return within readTime. client-go's scans take no context: one that is given up goes on until client-go gives it up, too, so
// read must touch nothing that others have.
func bounded[T any](s *snapshot, read func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	ctx, cancel := s.readContext()
	defer cancel()
	done := make(chan outcome, 1)
	go func() {
		value, err := read()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, s.failed(ctx, "scan", context.Cause(ctx))
	}
}

// isDeleted says whether nothing can be seen at a stored key, whatever is there.
func (s *snapshot) isDeleted(stored []byte) bool {
	t, covered := s.view.tombstones.Covering(stored)
	return covered && !t.Written
}

// visible is what is to be seen of what TiKV has at a stored key: without its number, or nothing where a tombstone hides it.
func (s *snapshot) visible(stored, value []byte) ([]byte, bool) {
	number, rest := decodeNumber(value)
	return rest, !s.view.tombstones.Hides(stored, number)
}

// fetch is what is stored at a pair's key.
func (s *snapshot) fetch(stored []byte) ([]byte, error) {
	if s.isDeleted(stored) {
		return nil, kv.ErrNotFound
	}
	r, err := s.read()
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.readContext()
	defer cancel()
	s.of.waits.Add(1)
	entry, err := r.Get(ctx, stored)
	switch {
	case tikverr.IsErrNotFound(err):
		return nil, kv.ErrNotFound
	case err != nil:
		return nil, s.failed(ctx, "get", err)
	}
	value, ok := s.visible(stored, entry.Value)
	if !ok {
		return nil, kv.ErrNotFound
	}
	return value, nil
}

// fetchMany is fetch for many keys. What is not there is not in the map.
func (s *snapshot) fetchMany(stored [][]byte) (map[string][]byte, error) {
	if s.view.tombstones.Len() > 0 {
		stored = slices.DeleteFunc(slices.Clone(stored), s.isDeleted)
	}
	found, err := s.fetchRaw(stored)
	if err != nil {
		return nil, err
	}
	for key, value := range found {
		rest, ok := s.visible([]byte(key), value)
		if !ok {
			delete(found, key)
			continue
		}
		found[key] = rest
	}
	return found, nil
}

// fetchRaw is what TiKV has at many keys, of parts too.
func (s *snapshot) fetchRaw(stored [][]byte) (map[string][]byte, error) {
	out := make(map[string][]byte, len(stored))
	err := s.fetchEach(stored, func(key string, value []byte) { out[key] = value })
	return out, err
}

// fetchEach is fetchRaw for one who need not have all at once.
func (s *snapshot) fetchEach(stored [][]byte, take func(key string, value []byte)) error {
	r, err := s.read()
	if err != nil {
		return err
	}
	ctx, cancel := s.readContext()
	defer cancel()
	for len(stored) > 0 {
		n := min(len(stored), s.of.lengths.atOnce(s.of.space, stored[0]))
		s.of.waits.Add(1)
		entries, err := r.BatchGet(ctx, stored[:n])
		if err != nil {
			return s.failed(ctx, "get many", err)
		}
		size := 0
		for key, entry := range entries {
			take(key, entry.Value)
			size += len(entry.Value)
		}
		if len(entries) > 0 {
			s.of.lengths.note(s.of.space, stored[0], size/len(entries))
		}
		stored = stored[n:]
	}
	return nil
}

// Get is kv.Reader's.
func (s *snapshot) Get(key []byte) ([]byte, error) {
	rows := s.of.rows
	hash := rows.Hash(key)
	if value, ok := rows.Get(hash, key, s.view.sequence); ok {
		return value, nil
	}
	if len(key) > maxKeyBytes {
		return nil, kv.ErrNotFound
	}
	stored, err := s.fetch(s.of.space.pair(key))
	if err != nil {
		return nil, err
	}
	value, err := s.decode(key, stored)
	if err != nil {
		return nil, err
	}
	if kept, ok := rows.Offer(hash, key, value, s.view.sequence); ok {
		return kept, nil
	}
	return value, nil
}

// Probe is kv.Reader's. There is no way to ask that would be cheaper.
func (s *snapshot) Probe(key []byte) ([]byte, error) { return s.Get(key) }

// maxAhead is how many keys are worth to be looked for at once.
const maxAhead = 128

// Ahead is kv.Reader's. It leaves values that have parts to those who ask for them: many would be too much memory at once. One that is damaged
// they meet too. It looks for about as much as one answer holds.
func (s *snapshot) Ahead(keys, values [][]byte) (looked int, err error) {
	if len(keys) == 0 {
		return 0, nil
	}
	rows := s.of.rows
	rows.GetMany(keys, values, s.view.sequence)
	most := s.of.lengths.atOnce(s.of.space, s.of.space.pair(keys[0]))
	for looked < len(keys) && (values[looked] != nil || most > 0) {
		if values[looked] == nil {
			most--
		}
		looked++
	}
	clear(values[looked:])
	return looked, s.eachMissing(keys[:looked], values[:looked], func(i int, stored []byte) error {
		value, parts, err := decodeValue(stored)
		if err != nil || parts > 0 {
			return nil
		}
		values[i] = value
		if kept, ok := rows.Offer(rows.Hash(keys[i]), keys[i], value, s.view.sequence); ok {
			values[i] = kept
		}
		return nil
	})
}

// GetMany is kv.Reader's: one request for each region that has any of the keys.
func (s *snapshot) GetMany(keys [][]byte) ([][]byte, error) {
	values := make([][]byte, len(keys))
	s.of.rows.GetMany(keys, values, s.view.sequence)
	err := s.eachMissing(keys, values, func(i int, stored []byte) (err error) {
		values[i], err = s.decode(keys[i], stored)
		return err
	})
	if err != nil {
		return nil, err
	}
	return values, nil
}

// eachMissing fetches the pairs of those keys that have no values yet, and visits each that is there.
func (s *snapshot) eachMissing(keys, values [][]byte, visit func(i int, stored []byte) error) error {
	var missing [][]byte
	var places []int
	for i, key := range keys {
		if values[i] != nil || len(key) > maxKeyBytes {
			continue
		}
		missing, places = append(missing, s.of.space.pair(key)), append(places, i)
	}
	if len(missing) == 0 {
		return nil
	}
	found, err := s.fetchMany(missing)
	if err != nil {
		return err
	}
	for i, place := range places {
		if stored, ok := found[string(missing[i])]; ok {
			if err := visit(place, stored); err != nil {
				return err
			}
		}
	}
	return nil
}

// decode is the value of a key, whose parts it reads where it has some.
func (s *snapshot) decode(key, stored []byte) ([]byte, error) {
	value, n, err := decodeValue(stored)
	if err != nil || n == 0 {
		return value, err
	}
	parts := make([][]byte, n)
	for i := range parts {
		parts[i] = s.of.space.part(key, i)
	}
	found, err := s.fetchRaw(parts)
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		bytes, ok := found[string(part)]
		if !ok {
			return nil, kv.Damaged(fmt.Errorf("tikvkv: a part of the value of %x is missing", key))
		}
		value = append(value, bytes...)
	}
	return value, nil
}

// Counter is kv.Reader's.
func (s *snapshot) Counter(key []byte) (int64, error) {
	stored, err := s.fetch(s.of.space.pair(key))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return decodeCounter(stored)
}

// NewIter is kv.Reader's.
func (s *snapshot) NewIter(o kv.IterOptions) (kv.Iterator, error) { return newIterator(s, o), nil }

// Share is kv.Snapshot's.
func (s *snapshot) Share() kv.Snapshot { return s.share() }

func (s *snapshot) share() *snapshot {
	s.of.views.share(s.view)
	return &snapshot{of: s.of, view: s.view}
}

// Close is kv.Snapshot's.
func (s *snapshot) Close() error {
	if !s.closed.CompareAndSwap(false, true) {
		return errSnapshotClosed
	}
	s.of.views.release(s.view)
	return nil
}
