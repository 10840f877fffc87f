package rowcache

import (
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/kv/deleted"
)

// shard keeps the values of some keys. It is a log: values are added to its youngest chunk, and the oldest chunk goes
// when there is no room; of its values those that were asked for, and short ones that are favoured, stay once more, up to half of
// them. The collector sees a few large pieces of memory without pointers.
type shard struct {
	// view is what readers look at, without the lock. Its table changes under their eyes; all else is replaced.
	view *atomic.Pointer[view]

	mu sync.Mutex // guards all below, and is held for changes to the view
	// changed is the sequence of the youngest commit that wrote, or is about to write, a key of this shard.
	changed uint64
	chunks  []*chunk // from old to young
	full    int      // how many slots of the table are
	bytes   int
	dead    int // up to where chunks[0] is known to hold nothing that counts
	passed  int // how many entries that is
	// short is how many of the bytes are those of short values, which are favoured as long as it is below favoured; 0: never.
	short, favoured int
	// stale is how many slots of the table, at most, have places in chunks that went as a whole, the oldest of which was
	// numbered staleFrom.
	stale     int
	staleFrom uint32
}

type chunk struct {
	data  []byte
	end   int // of what is written
	bytes int // with what the entries take elsewhere
	short int // of those, the bytes of short values
}

// view is where the values of a shard are. A place in the table may be that of a chunk that the view does not have, one
// that came later or went: it stands for nothing.
type view struct {
	table  table
	chunks [][]byte // the data of each
	first  uint32   // the number of chunks[0]
}

const (
	// tableSlot is about what an entry takes in the table.
	tableSlot = 16
	// maxShard bounds what a shard keeps: the numbers of its chunks must be unlike in a place.
	maxShard = 1 << 30
)

// sizeOf is about what an entry takes.
func sizeOf(key, value []byte) int { return entryLength(key, value) + tableSlot }

// find is the entry under hash, or nil.
func (v *view) find(hash uint32) entry {
	p := v.table.find(hash)
	if p == 0 {
		return nil
	}
	return v.entry(p)
}

// entry is what lies at p, or nil.
func (v *view) entry(p place) entry {
	i := p.chunk(v.first)
	if i >= len(v.chunks) {
		return nil
	}
	data := v.chunks[i]
	if p.offset() > len(data) {
		return nil
	}
	return entryAt(data[p.offset():])
}

// add adds a value; a new chunk is of the given size, or as large as it must be.
func (s *shard) add(hash uint32, key, value []byte, since uint64, size int) (kept []byte) {
	c := s.youngest(entryLength(key, value), size)
	start := c.end
	e := writeEntry(c.data[start:], hash, key, value, since)
	c.end += entryLength(key, value)
	c.bytes += sizeOf(key, value)
	s.bytes += sizeOf(key, value)
	if isShort(value) {
		c.short += sizeOf(key, value)
		s.short += sizeOf(key, value)
	}
	s.set(hash, placeOf(s.view.Load().first+uint32(len(s.chunks)-1), start))
	return e.value()
}

// youngest is a chunk with room for so many bytes.
func (s *shard) youngest(n, size int) *chunk {
	last := len(s.chunks) - 1
	if last < 0 || len(s.chunks[last].data)-s.chunks[last].end < n {
		if s.stale > 0 && s.view.Load().first+uint32(last+1)-s.staleFrom > placeMask/2 {
			s.purge() // before a chunk gets the number of one that went
		}
		s.chunks = append(s.chunks, &chunk{data: make([]byte, max(n, size))})
		last++
		s.publish(s.view.Load().first, s.view.Load().table)
	}
	return s.chunks[last]
}

// publish shows readers what the shard has; first is the number of its first chunk.
func (s *shard) publish(first uint32, table table) {
	v := &view{table: table, first: first, chunks: make([][]byte, len(s.chunks))}
	for i, c := range s.chunks {
		v.chunks[i] = c.data
	}
	s.view.Store(v)
}

// set puts a place in the table, which never gets fuller than three quarters.
func (s *shard) set(hash uint32, p place) {
	if s.isTight() && s.stale > 0 {
		s.purge()
	}
	if s.isTight() {
		s.resize(s.view.Load().table.bits() + 1)
	}
	if s.view.Load().table.set(hash, p) {
		s.full++
	}
}

// isTight says whether the table has no room for one more.
func (s *shard) isTight() bool { return 4*(s.full+1) > 3*len(s.view.Load().table.slots) }

func (s *shard) resize(bits int) {
	v := s.view.Load()
	s.publish(v.first, v.table.resized(bits))
}

// purge makes the table anew without stale slots, and no larger than it must be.
func (s *shard) purge() {
	v := s.view.Load()
	isStale := func(p place) bool { return p.chunk(v.first) >= len(s.chunks) }
	s.full -= v.table.count(isStale)
	s.stale = 0
	s.publish(v.first, v.table.without(isStale, s.fitting()))
}

func (s *shard) find(hash uint32) place { return s.view.Load().table.find(hash) }

// remove takes out what is under hash, and says whether there was something.
func (s *shard) remove(hash uint32) bool {
	if s.full == 0 || !s.view.Load().table.remove(hash) {
		return false
	}
	s.full--
	return true
}

func isShort(value []byte) bool { return len(value) <= maxShort }

// favours says whether a value is one that longer ones go for.
func (s *shard) favours(value []byte) bool { return isShort(value) && s.short < s.favoured }

// evict lets the oldest chunk go, but for what stays once more: short values first, where they are favoured. The shard must have one.
func (s *shard) evict(size int) {
	oldest, number := s.pop()
	room := oldest.bytes / 2
	stays := func(e entry) bool {
		n := sizeOf(e.key(), e.value())
		if n > room || !e.used() && !s.favours(e.value()) {
			return false
		}
		room -= n
		s.add(e.hash(), e.key(), e.value(), e.since(), size)
		return true
	}
	if s.favoured > 0 {
		s.each(oldest, number, func(e entry) {
			if isShort(e.value()) {
				stays(e)
			}
		})
	}
	s.each(oldest, number, func(e entry) {
		if !stays(e) {
			s.remove(e.hash())
		}
	})
}

// each visits what is still to be found in a chunk that was taken out, and had that number.
func (s *shard) each(c *chunk, number uint32, visit func(entry)) {
	for start := 0; start < c.end; {
		e := entryAt(c.data[start:])
		if s.find(e.hash()) == placeOf(number, start) {
			visit(e)
		}
		start += entryLength(e.key(), e.value())
	}
}

// pop takes the oldest chunk out, and leaves its places.
func (s *shard) pop() (oldest *chunk, number uint32) {
	v := s.view.Load()
	oldest = s.chunks[0]
	s.chunks[0] = nil
	s.chunks = s.chunks[1:]
	s.dead, s.passed = 0, 0
	s.bytes -= oldest.bytes
	s.short -= oldest.short
	s.publish(v.first+1, v.table)
	return oldest, v.first
}

// shrink gives the memory of the oldest chunk back if nothing in it counts any more, looking at no more than limit entries; more
// says that there may be more to do. What expires together was written together, as a rule.
//
// What it held stays in the table until a quarter of that is stale: to take a million entries out one by one, each
// somewhere else in memory, takes several times as long as to make the tables anew.
func (s *shard) shrink(c *Cache, limit int) (looked int, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.chunks) > 1 {
		var counts bool
		if looked, counts = s.pass(c.listed(), limit); !counts {
			if s.dead == s.chunks[0].end {
				s.popStale()
			}
			return looked, true
		}
	}
	if s.stale > s.full/staleShare {
		s.purge()
	}
	s.fit()
	return looked, false
}

// staleShare is the share of a table, one in so many, that is worth to make it anew for when it is stale.
const staleShare = 4

// pass goes over what does not count in the oldest chunk, limit entries at most and up to the first that does; counts says
// that there is one.
func (s *shard) pass(list deleted.Ranges, limit int) (looked int, counts bool) {
	first := s.view.Load().first
	for c := s.chunks[0]; s.dead < c.end && looked < limit; looked++ {
		e := entryAt(c.data[s.dead:])
		if list.Find(e.key()) <= e.since() && s.find(e.hash()) == placeOf(first, s.dead) {
			return looked, true
		}
		s.dead += entryLength(e.key(), e.value())
		s.passed++
	}
	return looked, false
}

// popStale takes the oldest chunk out, of which nothing counts.
func (s *shard) popStale() {
	passed := s.passed
	_, number := s.pop()
	if s.stale == 0 {
		s.staleFrom = number
	}
	s.stale += passed
}

// fit makes a table smaller that is all but empty.
func (s *shard) fit() {
	if bits := s.fitting(); bits < s.view.Load().table.bits() {
		s.resize(bits)
	}
}

// fitting is how large a table should be.
func (s *shard) fitting() int {
	bits := s.view.Load().table.bits()
	for bits > minTableBits && s.full < 1<<bits/8 {
		bits--
	}
	return bits
}

// forget takes out every value that list makes count for nothing.
func (s *shard) forget(list deleted.Ranges) {
	v := s.view.Load()
	for i := range v.table.slots {
		for slot := v.table.slots[i]; slot != 0; slot = v.table.slots[i] { // another takes the place of one that goes
			if e := v.entry(place(slot)); e != nil && list.Find(e.key()) <= e.since() {
				break
			}
			s.remove(uint32(slot >> 32))
		}
	}
	s.stale = 0
}
