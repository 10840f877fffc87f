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
// It has a stretch of the store, in which it stands. Moves within it ask nobody. A move that leaves it fetches the
// stretch beside it, and a seek that leaves it another one. The first is small, since many walks are short, and each that follows is larger.
// Who knows where the iterator will be sought says so (Ahead), and it fetches the beginnings of several stretches side by side.
type iterator struct {
	s        *snapshot
	from, to []byte // its bounds, as stored
	stretch
	others []stretch // where it will be sought
	at     int
	state  uint8
	batch  int // how many pairs are fetched next
	err    error
}

// stretch is all pairs from lower up to upper, in order. It may have none: what tombstones hide is not in it, and ranges of which nothing is to be
// seen are not asked for.
type stretch struct {
	pairs        []pair
	lower, upper []byte // nil before there is one
}

// has says whether what comes from key on begins in the stretch, and hasBefore whether what comes before it ends there.
func (s *stretch) has(key []byte) bool {
	return s.lower != nil && bytes.Compare(s.lower, key) <= 0 && bytes.Compare(key, s.upper) < 0
}

func (s *stretch) hasBefore(key []byte) bool {
	return s.lower != nil && bytes.Compare(s.lower, key) < 0 && bytes.Compare(key, s.upper) <= 0
}

func (s *stretch) find(key []byte) int {
	i, _ := slices.BinarySearchFunc(s.pairs, key, func(p pair, key []byte) int { return bytes.Compare(p.key, key) })
	return i
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
	// maxStretches is how many stretches are fetched side by side. They share what one would fetch first, but have leastOfMany pairs each at least.
	maxStretches = 16
	leastOfMany  = 4
)

func newIterator(s *snapshot, o kv.IterOptions) *iterator {
	it := &iterator{s: s}
	it.from, it.to = s.of.space.bounds(o.Lower, o.Upper)
	it.batch = s.of.lengths.first(s.of.space, it.from)
	return it
}

func (it *iterator) First() bool { return it.seekGE(it.from) }

func (it *iterator) Last() bool { return it.seekLT(it.to) }

func (it *iterator) SeekGE(key []byte) bool {
	return it.seekGE(largest(it.s.of.space.bound(key), it.from))
}

func (it *iterator) SeekLT(key []byte) bool {
	return it.seekLT(smallest(it.s.of.space.bound(key), it.to))
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

// Ahead is kv.Iterator's.
func (it *iterator) Ahead(keys [][]byte, back bool) {
	var wanted [][]byte
	for _, key := range keys[:min(len(keys), maxStretches)] {
		key = smallest(largest(it.s.of.space.bound(key), it.from), it.to)
		if back && !it.hasBefore(key) || !back && !it.has(key) {
			wanted = append(wanted, key)
		}
	}
	if len(wanted) < 2 || it.err != nil { // one is looked for as well when it is sought
		return
	}
	n := max(it.s.of.lengths.first(it.s.of.space, it.from)/len(wanted), leastOfMany)
	it.s.of.waits.Add(1)
	found, failed := make([]stretch, len(wanted)), make([]error, len(wanted))
	var all sync.WaitGroup
	for i, key := range wanted {
		all.Go(func() {
			if back {
				found[i], _, failed[i] = it.lookBack(key, n)
			} else {
				found[i], _, failed[i] = it.look(key, n)
			}
		})
	}
	all.Wait()
	it.others = found
	if i := slices.IndexFunc(failed, func(err error) bool { return err != nil }); i >= 0 {
		it.err = failed[i]
	}
}

// seekGE moves to the first pair from key on.
func (it *iterator) seekGE(key []byte) bool {
	for bytes.Compare(key, it.to) < 0 {
		if !it.has(key) && !it.turn(func(s *stretch) bool { return s.has(key) }) && !it.fetch(key, it.look) {
			break
		}
		if i := it.find(key); i < len(it.pairs) {
			return it.land(i)
		}
		key = it.upper
	}
	return it.land(-1)
}

// seekLT moves to the last pair before key.
func (it *iterator) seekLT(key []byte) bool {
	for bytes.Compare(key, it.from) > 0 {
		if !it.hasBefore(key) && !it.turn(func(s *stretch) bool { return s.hasBefore(key) }) && !it.fetch(key, it.lookBack) {
			break
		}
		if i := it.find(key); i > 0 {
			return it.land(i - 1)
		}
		key = it.lower
	}
	return it.land(-1)
}

// turn makes the stretch one of the others, if one is as it should be.
func (it *iterator) turn(fits func(*stretch) bool) bool {
	for i := range it.others {
		if fits(&it.others[i]) {
			it.stretch = it.others[i]
			it.others = slices.Delete(it.others, i, i+1)
			return true
		}
	}
	return false
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

// fetch makes the stretch the one that begins, or ends, with key. Where much longer values follow than before, an answer may not hold them: then fewer
// are asked for.
func (it *iterator) fetch(key []byte, look func(key []byte, n int) (s stretch, cut bool, err error)) bool {
	if it.err != nil {
		return false
	}
	it.s.of.waits.Add(1)
	found, cut, err := look(key, it.batch)
	if err != nil && it.batch > firstBatch && !errors.Is(err, context.DeadlineExceeded) && (it.s.ctx == nil || it.s.ctx.Err() == nil) {
		it.batch = firstBatch
		found, cut, err = look(key, it.batch)
	}
	if it.err = err; err != nil {
		return false
	}
	if it.stretch = found; cut && len(found.pairs) == 0 {
		it.grow()
	}
	return true
}

// look is the stretch that begins with key, of n pairs at most; cut says that there may be more of them before its range ends. It changes nothing of it.
func (it *iterator) look(key []byte, n int) (s stretch, cut bool, err error) {
	deleted := it.s.view.tombstones
	from := deleted.Skip(key)
	if bytes.Compare(from, it.to) >= 0 {
		return stretch{lower: key, upper: it.to}, false, nil
	}
	to := deleted.Until(from, it.to)
	s.pairs, cut, err = it.take(from, n, func(r *txnsnapshot.KVSnapshot) (stored, error) { return r.Iter(from, to) })
	if err != nil {
		return stretch{}, false, err
	}
	s.lower, s.upper = key, smallest(deleted.Skip(to), it.to)
	if cut {
		s.upper = append(slices.Clone(s.pairs[len(s.pairs)-1].key), 0)
	}
	s.pairs = it.seen(kv.Range{Start: from, End: to}, s.pairs)
	return s, cut, nil
}

// lookBack is look for the stretch that ends before key.
func (it *iterator) lookBack(key []byte, n int) (s stretch, cut bool, err error) {
	deleted := it.s.view.tombstones
	to := deleted.SkipBack(key)
	if bytes.Compare(to, it.from) <= 0 {
		return stretch{lower: it.from, upper: key}, false, nil
	}
	from := deleted.UntilBack(to, it.from)
	s.pairs, cut, err = it.take(from, n, func(r *txnsnapshot.KVSnapshot) (stored, error) { return r.IterReverse(to, from) })
	if err != nil {
		return stretch{}, false, err
	}
	slices.Reverse(s.pairs)
	s.lower, s.upper = largest(deleted.SkipBack(from), it.from), key
	if cut {
		s.lower = s.pairs[0].key
	}
	s.pairs = it.seen(kv.Range{Start: from, End: to}, s.pairs)
	return s, cut, nil
}

// seen leaves out of the pairs of a range what tombstones hide.
func (it *iterator) seen(r kv.Range, pairs []pair) []pair {
	if !it.s.view.tombstones.IsWritten(r) {
		return pairs
	}
	return slices.DeleteFunc(pairs, func(p pair) bool {
		_, ok := it.s.visible(p.key, p.value)
		return !ok
	})
}

// stored is client-go's iterator.
type stored interface {
	Valid() bool
	Key() []byte
	Value() []byte
	Next() error
	Close()
}

// take is the first n pairs of a scan of the table that key is in; cut says that there may be more.
func (it *iterator) take(key []byte, n int, begin func(*txnsnapshot.KVSnapshot) (stored, error)) (pairs []pair, cut bool, err error) {
	r, err := it.s.read()
	if err != nil {
		return nil, false, err
	}
	n = it.s.of.lengths.limit(it.s.of.space, key, n)
	r.SetScanBatchSize(n)
	pairs, err = bounded(it.s, func() ([]pair, error) { return scanPairs(n, func() (stored, error) { return begin(r) }) })
	if err != nil {
		return nil, false, err
	}
	size := 0
	for _, p := range pairs {
		size += len(p.value)
	}
	if len(pairs) > 0 {
		it.s.of.lengths.note(it.s.of.space, pairs[0].key, size/len(pairs))
	}
	return pairs, len(pairs) == n, nil
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
	return it.pairs[it.at].key[len(it.s.of.space.first):]
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
	it.state, it.stretch, it.others = lost, stretch{}, nil
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
