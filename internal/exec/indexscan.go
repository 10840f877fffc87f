package exec

import (
	"bytes"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// maxDedupBytes bounds the record ids that a node remembers so as to give each record once.
const maxDedupBytes = DefaultMaxMemory

// indexScan walks spans of an index and gives the record id behind each entry. Through a multikey index a record is found
// by several keys; it is given once, at the first.
type indexScan struct {
	plan  *planner.IndexScan
	stats *Stats
	want  want
	ahead int // so many entries are read before the first is asked for

	cursor *storage.IndexCursor
	span   int            // the span that the scan is in, counted in the direction of the walk
	spans  *storage.Spans // nil: there is one alone, which has the bounds of the walk
	after  *storage.IndexPosition
	again  bool // the walk goes on with the entry at after
	on     bool
	done   bool
	given  *givenIDs // nil where no record can come twice
	// group is kept where grouped says so: records may come again under their key though the index was not multikey at first.
	group   keyGroup
	grouped bool
	// unordered says that records may move behind a scan that walks backwards, within a key.
	unordered bool
	check     keyCheck
	filter    *keyDoc // what the plan's filter looks at; nil when it has none
	values    []bson.Value
	keyDoc    bson.Doc // the last IndexKey given
}

func newIndexScan(plan *planner.IndexScan, stats *Stats, w want) *indexScan {
	s := &indexScan{plan: plan, stats: stats, want: w, check: keyCheck{plan: plan}, done: len(plan.Ranges) == 0}
	if plan.Filter != nil {
		s.filter = newKeyDoc(plan.Index, func(string) bool { return true })
	}
	if plan.Dedups() {
		s.given = &givenIDs{stats: stats}
	}
	s.grouped = s.given == nil && !plan.Index.Unique
	if len(plan.Ranges) > 1 {
		s.spans = &storage.Spans{N: len(plan.Ranges), At: s.spanAt, Ahead: w.ahead(len(plan.Ranges))}
	}
	return s
}

func (s *indexScan) work(r *reading, m *Member) (status, error) {
	if s.done {
		return ended, nil
	}
	if s.cursor == nil {
		if err := s.open(r); err != nil {
			return ended, err
		}
	}
	if s.on = s.cursor.Next(); !s.on {
		s.done = true
		return ended, s.cursor.Err()
	}
	s.stats.Keys++
	r.seen.Keys++
	entry := s.cursor.Entry()
	if s.spans != nil {
		if s.span = s.cursor.Span(); !s.cursor.Inside() {
			return s.leap()
		}
	}
	if s.plan.Behind != nil {
		if inside, err := s.within(entry.Key); !inside {
			return needTime, err
		}
	}
	if first, err := s.isFirst(r, entry); !first {
		return needTime, err
	}
	m.ID, m.Modified, m.Doc, m.Entry = entry.RecordID, 0, nil, entry
	if s.want.score {
		var err error
		if m.Score, err = wordScore(entry.Key, s.plan.Ranges[0]); err != nil {
			return ended, err
		}
	}
	if s.want.indexKey {
		if err := s.tellKey(m); err != nil {
			return ended, err
		}
	}
	if s.filter == nil {
		return advanced, nil
	}
	return s.matches(r)
}

// tellKey makes a document of the key that the scan stands at, a field for each of the index.
func (s *indexScan) tellKey(m *Member) (err error) {
	if s.values, err = s.cursor.Values(s.values[:0]); err != nil {
		return err
	}
	b := bson.BuildOn(s.keyDoc[:0])
	for i, f := range s.plan.Index.Fields {
		b.Value(f.Path, s.values[i])
	}
	s.keyDoc = b.Doc()
	m.IndexKey = s.keyDoc
	return nil
}

// isFirst says whether the entry's record has not been given yet.
func (s *indexScan) isFirst(r *reading, e *storage.IndexEntry) (bool, error) {
	if s.grouped && !s.group.add(e) {
		return false, nil
	}
	if s.given == nil {
		return true, nil
	}
	return s.given.add(r, e.RecordID)
}

// within says whether the fields of key that the spans leave open are as they should be; if not, it leaps.
func (s *indexScan) within(key []byte) (bool, error) {
	inside, to, err := s.check.within(key)
	if !inside && err == nil {
		s.stats.Seeks++
		s.cursor.Seek(to)
		s.done = to == nil
	}
	return inside, err
}

// matches holds the values of the key against the filter.
func (s *indexScan) matches(r *reading) (status, error) {
	var err error
	if s.values, err = s.cursor.Values(s.values[:0]); err != nil {
		return ended, err
	}
	ok, err := s.plan.Filter.Match(r.env, s.filter.of(s.values))
	if ok && err == nil {
		return advanced, nil
	}
	s.stats.Rejected++
	return needTime, err
}

// spanAt is the i-th span in the direction of the walk.
func (s *indexScan) spanAt(i int) (low, high []byte) {
	if s.plan.Backward {
		i = len(s.plan.Ranges) - 1 - i
	}
	r := s.plan.Ranges[i]
	return r.Low, r.High
}

// leap notes that the cursor goes on at the next span, if there is one.
func (s *indexScan) leap() (status, error) {
	if s.done = s.cursor.IsOver(); s.done {
		return ended, nil
	}
	s.stats.Seeks++
	return needTime, nil
}

// open begins the walk, or takes it up where it was parked.
func (s *indexScan) open(r *reading) error {
	reader, err := r.reader()
	if err != nil {
		return err
	}
	d := reader.Catalog().IndexByID(s.plan.Index.ID)
	if d == nil {
		return mongoerr.New(mongoerr.QueryPlanKilled, "query plan killed :: index '%s' dropped", s.plan.Index.Name)
	}
	if now := reader.Multikey(d); s.became(now, reader.MultikeyPaths(d)) { // while the scan was parked
		r.untrue = true
		if s.given == nil && !s.plan.Once {
			s.given = &givenIDs{stats: s.stats}
		}
	}
	if err := s.takeUp(reader); err != nil {
		return err
	}
	ranges := s.plan.Ranges
	s.stats.Seeks++
	if s.spans != nil {
		s.spans.First = s.span
	}
	s.cursor, err = reader.ScanIndex(storage.IndexScan{Index: d, Low: ranges[0].Low, High: ranges[len(ranges)-1].High,
		Reverse: s.plan.Backward, After: s.after, Again: s.again, Fetches: s.want.fetched, Ahead: s.ahead, Spans: s.spans})
	s.again = false
	return err
}

// takeUp has a parked scan mind that records may have moved within the key where it stands.
func (s *indexScan) takeUp(r *storage.Reader) (err error) {
	if s.plan.Index.Unique || !r.Relocates() {
		return nil
	}
	if s.plan.Backward && !s.unordered {
		if s.unordered = r.Order() == 0; !s.unordered {
			s.unordered, err = r.Unclustered()
		}
	}
	if s.after == nil || err != nil {
		return err
	}
	s.group.mayComeAgain()
	if s.unordered {
		s.after.RecordID = layout.LastSequence()
	}
	return nil
}

// became says whether the index has keys of arrays where it had none when the plan was made.
func (s *indexScan) became(multikey []uint64, paths *index.PathSet) bool {
	for i, bits := range multikey {
		if i >= len(s.plan.Index.Multikey) || bits&^s.plan.Index.Multikey[i] != 0 {
			return bits != 0
		}
	}
	return paths != s.plan.Index.Paths
}

func multikeyNow(paths []uint64) bool {
	for _, p := range paths {
		if p != 0 {
			return true
		}
	}
	return false
}

// unread has the scan give the entry that it stands at once more, when it is taken up again and the entry is there then.
func (s *indexScan) unread() {
	if !s.on {
		return
	}
	e := s.cursor.Entry()
	s.again = true
	s.group.remove(e)
	if s.given != nil {
		s.given.remove(e.RecordID)
	}
}

func (s *indexScan) park() {
	if s.on {
		e := s.cursor.Entry()
		s.after = &storage.IndexPosition{Key: bytes.Clone(e.Key), RecordID: e.RecordID.Clone()}
	}
	_ = s.close() // a cursor that is given back early has nothing to say
}

func (s *indexScan) close() error {
	s.on = false
	return letGo(&s.cursor)
}
