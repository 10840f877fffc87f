package exec

import (
	"bytes"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/planner"
)

// distinctScan is DISTINCT_SCAN: an index scan that leaps over the keys whose fields up to one are as in the key before. Where
// that one is null it does not, since keys do not tell null from nothing: whoever wants to know looks at the records. Where
// nobody wants to, it has no null. The same holds of what keys of elements of arrays do not tell: undefined, which an empty
// array has, and arrays, which may be an element or all there is.
type distinctScan struct {
	indexScan
	fields int
	null   []byte
	untold [][]byte // beginnings of the keys that do not tell the value
	prefix []byte   // what to leap over
	leap   bool
}

func newDistinctScan(plan *planner.DistinctScan, stats *Stats, w want) *distinctScan {
	scan := &planner.IndexScan{Index: plan.Index, Bounds: plan.Bounds, Ranges: plan.Ranges, Backward: plan.Backward, Once: plan.Unwinds}
	s := &distinctScan{indexScan: *newIndexScan(scan, stats, w), fields: plan.Field + 1}
	if !plan.OneNull {
		s.null = keystring.Append(nil, bson.Null, plan.Index.Fields[plan.Field].Descending)
	}
	if plan.Unwinds { // a record comes under each of its keys
		s.given, s.grouped = nil, false
		for _, v := range []bson.Value{bson.Undefined, bson.ArrayOf()} {
			s.untold = append(s.untold, keystring.Append(nil, v, plan.Index.Fields[plan.Field].Descending)[:1])
		}
	}
	return s
}

func (s *distinctScan) work(r *reading, m *Member) (status, error) {
	if s.done {
		return ended, nil
	}
	if s.cursor == nil {
		if err := s.open(r); err != nil {
			return ended, err
		}
	}
	if s.leap {
		s.cursor.SeekPast(s.prefix)
		s.stats.Seeks++
		s.leap = false
	}
	status, err := s.indexScan.work(r, m)
	if status != advanced || err != nil {
		return status, err
	}
	from, end := 0, 0
	for range s.fields {
		n, err := keystring.Skip(m.Entry.Key[end:])
		if err != nil {
			return ended, err
		}
		from, end = end, end+n
	}
	s.prefix = append(s.prefix[:0], m.Entry.Key[:end]...)
	key := m.Entry.Key[from:end]
	s.leap = string(key) != string(s.null) && !slices.ContainsFunc(s.untold, func(b []byte) bool { return bytes.HasPrefix(key, b) })
	return advanced, nil
}
