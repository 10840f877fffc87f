package tikvkv

import (
	"bytes"
	"context"
	"hash/maphash"
	"slices"
	"sync"
)

// longKeys is which keys may have values that lie in parts. Who overwrites or removes a value removes its parts, and how many it has the pair tells that is
// stored; so that pair has to be read before, but for a key of which it is known that it has no parts, as all have in most stores.
//
// What is known takes the same memory however many long values there are: a filter, which never misses a key that has parts, and takes some others for such
// a key, about 1 % where there are 400,000 and 15 % where there are two million, which are 500 GB at least. A mistake costs a look at a pair. Nothing is taken
// out of a filter. So it is made anew, of what is stored, when many long values are gone (learner). Before it is there for the first time, any key may have parts.
//
// A deleted range keeps its parts, as it keeps its pairs, until the reclaimer removes them.
//
// Invariants: where parts of a key are stored, its pair is stored and tells of no fewer; the filter has that key.
type longKeys struct {
	seed maphash.Seed
	mu   struct {
		sync.Mutex         // guards the rest, and is held for moments only
		known      *filter // nil: any key may have parts
		next       *filter // is being made; it has all keys that have got parts since that began
	}
}

// filter is a Bloom filter (Bloom, 1970) with two hash functions.
type filter struct {
	bits  []uint64 // nil before the first key comes
	added int      // about how many keys
	gone  int      // how many of them have no parts any more
}

const (
	filterBits = 1 << 23
	// minGone is how many keys of a filter have no parts any more, and as many as have some, before it is made anew.
	minGone = 1 << 12
)

func newLongKeys() *longKeys { return &longKeys{seed: maphash.MakeSeed()} }

func (l *longKeys) hash(key []byte) [2]uint32 {
	h := maphash.Bytes(l.seed, key)
	return [2]uint32{uint32(h) % filterBits, uint32(h>>32) % filterBits}
}

func (f *filter) has(hash [2]uint32) bool {
	return f.bits != nil && !slices.ContainsFunc(hash[:], func(h uint32) bool { return f.bits[h/64]&(1<<(h%64)) == 0 })
}

func (f *filter) add(hash [2]uint32) {
	if f == nil || f.has(hash) {
		return
	}
	if f.bits == nil {
		f.bits = make([]uint64, filterBits/64)
	}
	for _, h := range hash {
		f.bits[h/64] |= 1 << (h % 64)
	}
	f.added++
}

// may says whether a key may have parts.
func (l *longKeys) may(key []byte) bool {
	hash := l.hash(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.known == nil || l.mu.known.has(hash)
}

// add notes a key that is about to have parts.
func (l *longKeys) add(key []byte) {
	hash := l.hash(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.known.add(hash)
	l.mu.next.add(hash)
}

// remove notes that so many keys have no parts any more. It says whether what is known is to be learnt anew.
func (l *longKeys) remove(n int) (stale bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.known != nil {
		l.mu.known.gone += n
	}
	return l.isStale()
}

func (l *longKeys) stale() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isStale()
}

func (l *longKeys) isStale() bool {
	f := l.mu.known
	return f == nil || f.gone >= minGone && 2*f.gone >= f.added
}

// begin begins a new filter, and found adds what is found for it.
func (l *longKeys) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.next = new(filter)
}

func (l *longKeys) found(key []byte) {
	hash := l.hash(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.next.add(hash)
}

// end has the new filter be what is known.
func (l *longKeys) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.known, l.mu.next = l.mu.next, nil
}

// learner looks through the parts that are stored, some at a time, and makes a filter of their keys. Each look is at the youngest view: what had parts when it
// began either has them still when it comes there, or has got others since, of which the filter was told.
type learner struct {
	engine *Engine
	from   []byte // where it goes on; nil: it has not begun
}

// learn looks at the next parts, for one who reads within ctx. It says whether there may be more.
func (l *learner) learn(ctx context.Context) (more bool, err error) {
	e := l.engine
	if l.from == nil {
		if err := e.commits.turn.LockWithin(ctx); err != nil {
			return true, err
		}
		e.longs.begin() // while no group is on its way that has not told it
		e.commits.turn.Unlock()
		l.from = e.space.in(partArea)
	}
	s, err := e.look()
	if err != nil {
		return true, err
	}
	defer s.Close()
	s.Within(ctx)
	r, err := s.read()
	if err != nil {
		return true, err
	}
	r.SetKeyOnly(true)
	r.SetScanBatchSize(maxBatch)
	from, to := l.from, e.space.in(partArea+1)
	pairs, err := bounded(s, func() ([]pair, error) {
		return scanPairs(maxBatch, func() (stored, error) { return r.Iter(from, to) })
	})
	if err != nil {
		return true, err
	}
	for _, p := range pairs {
		key, _, err := e.space.partOf(p.key)
		if err != nil {
			return true, err
		}
		e.longs.found(key)
	}
	if len(pairs) == maxBatch {
		l.from = append(slices.Clone(pairs[maxBatch-1].key), 0)
		return true, nil
	}
	e.longs.end()
	l.from = nil
	return false, nil
}

// partsOf is in how many parts the values of keys lie, of those that lie in any. A key that is not to be seen any more may have some.
func (e *Engine) partsOf(s *snapshot, keys [][]byte) (map[string]int, error) {
	space := e.space
	var asked [][]byte
	for _, key := range keys {
		if e.longs.may(key) {
			asked = append(asked, space.pair(key))
		}
	}
	slices.SortFunc(asked, bytes.Compare)
	asked = slices.CompactFunc(asked, bytes.Equal)
	parts := map[string]int{}
	take := func(stored string, value []byte) {
		_, rest := decodeNumber(value)
		if _, n, err := decodeValue(rest); err == nil && n > 0 { // a counter has another form, and no parts
			parts[stored[len(space.first):]] = n
		}
	}
	for len(asked) > 0 { // one table after the other, since how many are asked for at once goes by how long a table's values are
		n := 1
		for table := e.lengths.table(space, asked[0]); n < len(asked) && e.lengths.table(space, asked[n]) == table; n++ {
		}
		if err := s.fetchEach(asked[:n], take); err != nil {
			return nil, err
		}
		asked = asked[n:]
	}
	return parts, nil
}
