package tikvkv

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/tikv/client-go/v2/txnkv/txnsnapshot"

	"github.com/ebbdb/ebb/internal/kv"
)

// iterator is a kv.Iterator that fetches many pairs at once.
//
// It has a stretch of the store: all pairs from lower up to upper, in order. Moves within it ask nobody. A move that leaves it fetches the
// stretch beside it, and a seek that leaves it another one. The first is small, since many walks are short, and each that follows is larger.
// A stretch may have no pairs: what tombstones hide is not in it, and ranges of which nothing is to be seen are not asked for.
type iterator struct {
	s            *snapshot
	from, to     []byte // its bounds, as stored
	pairs        []pair
	lower, upper []byte // of the stretch; nil before there is one
	at           int
	state        uint8
	batch        int // how many pairs are fetched next
	err          error
}

type pair struct{ key, value []byte } // as stored

const (
	unplaced uint8 = iota // no move yet
	placed
	lost // the last move led nowhere
)

const (
	firstBatch  = 32  // of the longest values, an answer
	shortBatch  = 256 // of values that are known to be short, as an index's are, in its place
	batchGrowth = 4
	maxBatch    = 1 << 10
	// batchBytes is about how much is fetched at once, once it is known how large values there are.
	batchBytes = 1 << 20
	// firstBytes is about how much of short values is fetched first.
	firstBytes = 32 << 10
)

func newIterator(s *snapshot, o kv.IterOptions) *iterator {
	it := &iterator{s: s}
	it.from, it.to = s.engine.space.bounds(o.Lower, o.Upper)
	it.batch = s.engine.lengths.first(s.engine.space, it.from)
	return it
}

func (it *iterator) First() bool { return it.seekGE(it.from) }

func (it *iterator) Last() bool { return it.seekLT(it.to) }

func (it *iterator) SeekGE(key []byte) bool {
	return it.seekGE(largest(it.s.engine.space.bound(key), it.from))
}

func (it *iterator) SeekLT(key []byte) bool {
	return it.seekLT(smallest(it.s.engine.space.bound(key), it.to))
}

func largest(a, b []byte) []byte {
	if bytes.Compare(a, b) < 0 {
		return b
	}
	return a
}

func smallest(a, b []byte) []byte {
	if bytes.Compare(a, b) > 0 {
		return b
	}
	return a
}

func (it *iterator) Next() bool {
	switch {
	case it.state == unplaced:
		return it.First()
	case it.state == lost:
		return false
	case it.at+1 < len(it.pairs):
		it.at++
		return true
	}
	it.grow()
	return it.seekGE(it.upper)
}

func (it *iterator) Prev() bool {
	switch {
	case it.state == unplaced:
		return it.Last()
	case it.state == lost:
		return false
	case it.at > 0:
		it.at--
		return true
	}
	it.grow()
	return it.seekLT(it.lower)
}

func (it *iterator) grow() { it.batch = min(it.batch*batchGrowth, maxBatch) }

// seekGE moves to the first pair from key on.
func (it *iterator) seekGE(key []byte) bool {
	if it.lower != nil && bytes.Compare(it.lower, key) <= 0 && bytes.Compare(key, it.upper) < 0 {
		if i, _ := it.find(key); i < len(it.pairs) {
			return it.land(i)
		}
		key = it.upper // where the stretch ends
	}
	for it.err == nil && bytes.Compare(key, it.to) < 0 {
		if it.err = it.fetch(key); it.err == nil && len(it.pairs) > 0 {
			return it.land(0)
		}
		key = it.upper
	}
	return it.land(-1)
}

// seekLT moves to the last pair before key.
func (it *iterator) seekLT(key []byte) bool {
	if it.lower != nil && bytes.Compare(it.lower, key) < 0 && bytes.Compare(key, it.upper) <= 0 {
		if i, _ := it.find(key); i > 0 {
			return it.land(i - 1)
		}
		key = it.lower
	}
	for it.err == nil && bytes.Compare(key, it.from) > 0 {
		if it.err = it.fetchBack(key); it.err == nil && len(it.pairs) > 0 {
			return it.land(len(it.pairs) - 1)
		}
		key = it.lower
	}
	return it.land(-1)
}

func (it *iterator) find(key []byte) (int, bool) {
	return slices.BinarySearchFunc(it.pairs, key, func(p pair, key []byte) int { return bytes.Compare(p.key, key) })
}

// land notes where a move ended; nowhere if i is negative.
func (it *iterator) land(i int) bool {
	if it.at = i; i < 0 {
		it.state = lost
		return false
	}
	it.state = placed
	return true
}

// fetch makes the stretch the one that begins with key. Where much longer values follow than before, an answer may not hold them: then fewer are asked for.
func (it *iterator) fetch(key []byte) error { return it.orFewer(key, it.fetchForward) }

func (it *iterator) orFewer(key []byte, fetch func([]byte) error) error {
	err := fetch(key)
	if err != nil && it.batch > firstBatch && !errors.Is(err, context.DeadlineExceeded) && (it.s.ctx == nil || it.s.ctx.Err() == nil) {
		it.batch = firstBatch
		err = fetch(key)
	}
	return err
}

func (it *iterator) fetchForward(key []byte) error {
	deleted := it.s.view.tombstones
	from := deleted.Skip(key)
	if bytes.Compare(from, it.to) >= 0 {
		it.pairs, it.lower, it.upper = nil, key, it.to
		return nil
	}
	to := deleted.Until(from, it.to)
	r, n, err := it.reader(from)
	if err != nil {
		return err
	}
	whole, err := it.take(n, func() (stored, error) { return r.Iter(from, to) })
	if err != nil {
		return err
	}
	it.lower, it.upper = key, smallest(deleted.Skip(to), it.to)
	if !whole {
		it.upper = append(slices.Clone(it.pairs[len(it.pairs)-1].key), 0)
	}
	it.hide(kv.Range{Start: from, End: to}, whole)
	return nil
}

// hide leaves out of the pairs of a range what tombstones hide.
func (it *iterator) hide(r kv.Range, whole bool) {
	if !it.s.view.tombstones.IsWritten(r) {
		return
	}
	it.pairs = slices.DeleteFunc(it.pairs, func(p pair) bool {
		_, ok := it.s.visible(p.key, p.value)
		return !ok
	})
	if len(it.pairs) == 0 && !whole {
		it.grow()
	}
}

// fetchBack makes the stretch the one that ends before key.
func (it *iterator) fetchBack(key []byte) error { return it.orFewer(key, it.fetchBackward) }

func (it *iterator) fetchBackward(key []byte) error {
	deleted := it.s.view.tombstones
	to := deleted.SkipBack(key)
	if bytes.Compare(to, it.from) <= 0 {
		it.pairs, it.lower, it.upper = nil, it.from, key
		return nil
	}
	from := deleted.UntilBack(to, it.from)
	r, n, err := it.reader(from)
	if err != nil {
		return err
	}
	whole, err := it.take(n, func() (stored, error) { return r.IterReverse(to, from) })
	if err != nil {
		return err
	}
	slices.Reverse(it.pairs)
	it.lower, it.upper = largest(deleted.SkipBack(from), it.from), key
	if !whole {
		it.lower = it.pairs[0].key
	}
	it.hide(kv.Range{Start: from, End: to}, whole)
	return nil
}

// reader is TiKV's snapshot, set to fetch as much at once as is to be fetched.
func (it *iterator) reader(key []byte) (*txnsnapshot.KVSnapshot, int, error) {
	r, err := it.s.read()
	if err != nil {
		return nil, 0, err
	}
	n := it.s.engine.lengths.limit(it.s.engine.space, key, it.batch)
	r.SetScanBatchSize(n)
	return r, n, nil
}

// stored is client-go's iterator.
type stored interface {
	Valid() bool
	Key() []byte
	Value() []byte
	Next() error
	Close()
}

// take has pairs be the first n of a scan; whole says that there are no more.
func (it *iterator) take(n int, begin func() (stored, error)) (whole bool, err error) {
	pairs, err := bounded(it.s, func() ([]pair, error) { return scanPairs(n, begin) })
	if err != nil {
		return false, err
	}
	size := 0
	for _, p := range pairs {
		size += len(p.value)
	}
	it.pairs = pairs
	if len(pairs) > 0 {
		it.s.engine.lengths.note(it.s.engine.space, pairs[0].key, size/len(pairs))
	}
	return len(pairs) < n, nil
}

func scanPairs(n int, begin func() (stored, error)) ([]pair, error) {
	scan, err := begin()
	if err != nil {
		return nil, reading("scan", err)
	}
	defer scan.Close()
	pairs := make([]pair, 0, n)
	for scan.Valid() {
		pairs = append(pairs, pair{scan.Key(), scan.Value()})
		if len(pairs) == n {
			break // without asking for more
		}
		if err := scan.Next(); err != nil {
			return nil, reading("scan", err)
		}
	}
	return pairs, nil
}

func (it *iterator) Valid() bool { return it.state == placed }

func (it *iterator) Key() []byte {
	if it.state != placed {
		return nil
	}
	return it.pairs[it.at].key[len(it.s.engine.space.first):]
}

func (it *iterator) Value() ([]byte, error) {
	if it.state != placed {
		return nil, it.err
	}
	_, value := decodeNumber(it.pairs[it.at].value)
	if len(value) == 8 { // a counter, whose form is the engine's affair
		if _, _, err := decodeValue(value); err != nil {
			return value, nil
		}
	}
	return it.s.decode(it.Key(), value)
}

func (it *iterator) Err() error { return it.err }

func (it *iterator) Close() error {
	it.state, it.pairs, it.lower = lost, nil, nil
	return nil
}

// lengths remembers about how long values are in a table, so that one request fetches neither too little nor too much. A table is told by the
// first bytes of its keys.
type lengths struct {
	mu   sync.Mutex // guards mean
	mean map[string]int
}

const (
	tableLength = 5
	maxTables   = 1 << 12 // past it all is forgotten
	minBatch    = 2       // that client-go takes
)

func (l *lengths) table(space keyspace, stored []byte) string {
	return string(stored[:min(len(stored), len(space.first)+tableLength)])
}

// first is how many pairs to fetch first from a key on.
func (l *lengths) first(space keyspace, stored []byte) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	mean, known := l.mean[l.table(space, stored)]
	if !known {
		return firstBatch
	}
	return min(max(firstBatch, firstBytes/max(mean, 1)), shortBatch)
}

// limit is how many pairs to fetch from a key on, n at most.
func (l *lengths) limit(space keyspace, stored []byte, n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mean := l.mean[l.table(space, stored)]; mean > 0 {
		n = min(n, batchBytes/mean)
	}
	return max(n, minBatch)
}

// atOnce is how many keys to look up at once.
func (l *lengths) atOnce(space keyspace, stored []byte) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mean := l.mean[l.table(space, stored)]; mean > 0 {
		return min(maxBatch, max(firstBatch, batchBytes/mean))
	}
	return firstBatch
}

func (l *lengths) note(space keyspace, stored []byte, mean int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mean) >= maxTables {
		clear(l.mean)
	}
	table := l.table(space, stored)
	if old := l.mean[table]; old > 0 {
		mean = (old + mean) / 2
	}
	l.mean[table] = mean
}
