package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/planner"
)

// countScan is COUNT_SCAN: an empty document for each record behind the keys of a span.
type countScan struct{ indexScan }

func newCountScan(plan *planner.CountScan, stats *Stats) *countScan {
	return &countScan{*newIndexScan(&planner.IndexScan{Index: plan.Index, Bounds: plan.Bounds, Ranges: plan.Ranges}, stats, want{})}
}

func (s *countScan) work(r *reading, m *Member) (status, error) {
	status, err := s.indexScan.work(r, m)
	if m.Doc = bson.EmptyDoc; status == ended && err == nil {
		s.look(r) // MongoDB counts the key behind the last one
	}
	return status, err
}

func (s *countScan) look(r *reading) {
	s.stats.Keys++
	r.seen.Keys++
}

// count is how many records there are, up to limit when that is not 0, counted at once; ok is false where a record can have
// several keys.
func (s *countScan) count(r *reading, limit int64) (n int64, ok bool, err error) {
	reader, err := r.reader()
	if err != nil {
		return 0, false, err
	}
	d := reader.Catalog().IndexByID(s.plan.Index.ID)
	if d == nil {
		return 0, false, mongoerr.New(mongoerr.QueryPlanKilled, "query plan killed :: index '%s' dropped", s.plan.Index.Name)
	}
	if s.given != nil || multikeyNow(reader.Multikey(d)) || reader.MultikeyPaths(d) != s.plan.Index.Paths || reader.Hides() {
		return 0, false, nil
	}
	n, err = reader.CountEntries(d, s.plan.Ranges[0].Low, s.plan.Ranges[0].High, limit)
	s.stats.Keys += n
	r.seen.Keys += n
	return n, true, err
}

// Count is how many records the plan finds, counted up to limit when that is not 0.
func (r *Records) Count(ctx context.Context, limit int64) (n int64, err error) {
	r.reading.under(ctx)
	if n = int64(r.kept.len()); limit > 0 {
		n = min(n, limit)
	}
	if r.root.EOF {
		return n, nil
	}
	if scan, ok := r.root.node.(*countScan); ok && r.root.Works == 0 {
		if n, ok, err := scan.count(&r.reading, limit); ok || err != nil {
			r.root.Works, r.root.Advanced = n, n
			if limit == 0 || n < limit {
				r.root.Works, r.root.EOF = n+1, true
				scan.look(&r.reading)
			}
			return n, err
		}
	}
	for limit == 0 || n < limit {
		if err := interrupted(ctx); err != nil {
			return n, err
		}
		s, err := r.root.work(&r.reading, &r.member)
		if err != nil || s == ended {
			return n, err
		}
		if s == advanced {
			n++
		}
	}
	return n, nil
}
