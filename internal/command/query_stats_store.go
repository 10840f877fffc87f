package command

import (
	"container/list"
	"sync"

	"github.com/ebbdb/ebb/internal/bson"
)

// maxQueryStats is how many shapes are told apart, however much memory they may take.
const maxQueryStats = 50_000

// queryStatsStore keeps what queries of each shape have cost, within so many bytes: those that were asked least recently go. The zero value is ready.
type queryStatsStore struct {
	mu      sync.Mutex // held for moments
	entries map[string]*list.Element
	recent  list.List // of *queryStatsEntry, the latest first
	bytes   int64
	evicted int64
	// second is the second that admitted are counted in.
	second, admitted int64
	limited          int64 // that the rate limit left out
}

// queryStatsEntry is one shape's.
type queryStatsEntry struct {
	key           bson.Doc
	hash, shape   string
	first, latest int64 // milliseconds since the epoch
	count         int64
	last          int64 // micros
	total, begun  aggregated
	returned      aggregated
	keys, docs    aggregated
	sorts, spills flagged
}

// aggregated is what MongoDB keeps of a number: its sum, bounds, and sum of squares.
type aggregated struct {
	sum, max, min int64
	squares       float64
	any           bool
}

func (a *aggregated) add(n int64) {
	if !a.any {
		a.any, a.max, a.min = true, n, n
	}
	a.sum, a.max, a.min = a.sum+n, max(a.max, n), min(a.min, n)
	a.squares += float64(n) * float64(n)
}

func (a *aggregated) append(b *bson.Builder, name string) {
	b.Object(name).Int64("sum", a.sum).Int64("max", a.max).Int64("min", a.min).
		Value("sumOfSquares", bson.Decimal(bson.DecimalFromFloat(a.squares))).End()
}

// flagged is how often something was so, and how often not.
type flagged struct{ yes, no int64 }

func (f *flagged) add(is bool) {
	if is {
		f.yes++
	} else {
		f.no++
	}
}

func (f *flagged) append(b *bson.Builder, name string) {
	b.Object(name).Int64("true", f.yes).Int64("false", f.no).End()
}

// admits says whether one more query is to be counted in the second, of at most so many; below 0 there is no limit.
func (s *queryStatsStore) admits(second, limit int64) bool {
	if limit < 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.second != second {
		s.second, s.admitted = second, 0
	}
	if s.admitted >= limit {
		s.limited++
		return false
	}
	s.admitted++
	return true
}

// update has f change the entry with the key, which is made where make says so; most is how many bytes all entries may take.
func (s *queryStatsStore) update(key bson.Doc, create bool, most int64, f func(*queryStatsEntry)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.entries[string(key)]
	if found == nil {
		if !create {
			return
		}
		if s.entries == nil {
			s.entries = map[string]*list.Element{}
		}
		e := &queryStatsEntry{key: key}
		found = s.recent.PushFront(e)
		s.entries[string(key)] = found
		s.bytes += e.size()
	}
	s.recent.MoveToFront(found)
	f(found.Value.(*queryStatsEntry))
	for s.recent.Len() > 0 && (s.bytes > most || s.recent.Len() > maxQueryStats) {
		last := s.recent.Remove(s.recent.Back()).(*queryStatsEntry)
		delete(s.entries, string(last.key))
		s.bytes -= last.size()
		s.evicted++
	}
}

// queryStatsEntryBytes is about what an entry takes beside its key, which is there twice.
const queryStatsEntryBytes = 600

func (e *queryStatsEntry) size() int64 { return 2*int64(len(e.key)) + queryStatsEntryBytes }

// all are copies of the entries, the latest first.
func (s *queryStatsStore) all() []queryStatsEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]queryStatsEntry, 0, s.recent.Len())
	for e := s.recent.Front(); e != nil; e = e.Next() {
		out = append(out, *e.Value.(*queryStatsEntry))
	}
	return out
}

func (s *queryStatsStore) appendMetrics(b *bson.Builder, most int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.Int64("cacheSizeEstimateBytes", s.bytes).Int64("maxSizeBytes", most).Int64("numEntries", int64(s.recent.Len())).
		Int64("numEvicted", s.evicted).Int64("numRateLimitedRequests", s.limited)
}
