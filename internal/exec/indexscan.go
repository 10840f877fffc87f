package exec

import (
	"bytes"
	"context"

	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
)

// maxDedupBytes bounds the record ids that a scan remembers so as to give each document once.
const maxDedupBytes = DefaultMaxMemory

// indexScan walks spans of an index and fetches the record behind each entry. Through a multikey index a record is found
// by several keys; it is given once, at the first.
type indexScan struct {
	plan *planner.IndexScan
	src  Source
	seen *Examined

	reader *storage.Reader
	cursor *storage.IndexCursor
	span   int // the span that the scan is in, counted in the direction of the walk
	after  *storage.IndexPosition
	on     bool
	done   bool

	given      map[string]struct{} // nil where no record can come twice
	givenBytes int
}

func newIndexScan(plan *planner.IndexScan, src Source, seen *Examined) *indexScan {
	s := &indexScan{plan: plan, src: src, seen: seen}
	if plan.Index.IsMultikey() {
		s.given = map[string]struct{}{}
	}
	return s
}

func (s *indexScan) next(ctx context.Context) (storage.Record, bool, error) {
	for !s.done {
		if err := s.open(ctx); err != nil {
			return storage.Record{}, false, err
		}
		if s.on = s.cursor.Next(); !s.on {
			s.done = true
			return storage.Record{}, false, s.cursor.Err()
		}
		s.seen.Keys++
		entry := s.cursor.Entry()
		if !s.enter(entry.Key) {
			continue
		}
		rec, ok, err := s.fetch(entry.RecordID)
		if ok || err != nil {
			return rec, ok, err
		}
		if err := interrupted(ctx); err != nil {
			return storage.Record{}, false, err
		}
	}
	return storage.Record{}, false, nil
}

// spanAt is the i-th span in the direction of the walk.
func (s *indexScan) spanAt(i int) planner.Range {
	if s.plan.Backward {
		return s.plan.Ranges[len(s.plan.Ranges)-1-i]
	}
	return s.plan.Ranges[i]
}

// open begins the walk, or takes it up where it was parked.
func (s *indexScan) open(ctx context.Context) error {
	if s.cursor != nil {
		return nil
	}
	r, err := s.src.Reader(ctx)
	if err != nil {
		return err
	}
	d := r.Catalog().IndexByID(s.plan.Index.ID)
	if d == nil {
		return mongoerr.New(mongoerr.QueryPlanKilled, "query plan killed :: index '%s' dropped", s.plan.Index.Name)
	}
	if s.given == nil && multikeyNow(r.Multikey(d)) {
		s.given = map[string]struct{}{} // it became so while the scan was parked
	}
	ranges := s.plan.Ranges
	s.reader = r
	s.cursor, err = r.ScanIndex(storage.IndexScan{Index: d, Low: ranges[0].Low, High: ranges[len(ranges)-1].High,
		Reverse: s.plan.Backward, After: s.after, Fetches: true})
	return err
}

func multikeyNow(paths []uint64) bool {
	for _, p := range paths {
		if p != 0 {
			return true
		}
	}
	return false
}

// enter says whether key lies in a span; behind one, the cursor is sent to the next.
func (s *indexScan) enter(key []byte) bool {
	for {
		r := s.spanAt(s.span)
		before, behind := r.Low != nil && bytes.Compare(key, r.Low) < 0, r.High != nil && bytes.Compare(key, r.High) >= 0
		if s.plan.Backward {
			before, behind = behind, before
		}
		switch {
		case before:
			s.seek(r)
			return false
		case !behind:
			return true
		}
		if s.span++; s.span == len(s.plan.Ranges) {
			s.done = true
			return false
		}
	}
}

func (s *indexScan) seek(r planner.Range) {
	if s.plan.Backward {
		s.cursor.Seek(r.High)
	} else {
		s.cursor.Seek(r.Low)
	}
}

func (s *indexScan) fetch(id storage.RecordID) (storage.Record, bool, error) {
	if s.given != nil {
		if _, again := s.given[string(id)]; again {
			return storage.Record{}, false, nil
		}
	}
	rec, ok, err := s.reader.Get(id)
	if !ok || err != nil {
		return rec, false, err
	}
	s.seen.Docs++
	if s.given != nil {
		if s.givenBytes += len(id) + 48; s.givenBytes > maxDedupBytes {
			return rec, false, mongoerr.New(mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed, "index scan needs more than %d bytes to tell documents apart", maxDedupBytes)
		}
		s.given[string(id)] = struct{}{}
	}
	return rec, true, nil
}

func (s *indexScan) park() {
	if s.on {
		e := s.cursor.Entry()
		s.after = &storage.IndexPosition{Key: bytes.Clone(e.Key), RecordID: e.RecordID.Clone()}
		s.on = false
	}
	_ = s.close() // a cursor that is given back early has nothing to say
}

func (s *indexScan) close() error {
	s.reader = nil
	if s.cursor == nil {
		return nil
	}
	err := s.cursor.Close()
	s.cursor = nil
	return err
}
