package exec

import (
	"cmp"
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
)

// maxNearBytes bounds what is kept of the places that a search by distance has found.
const maxNearBytes = DefaultMaxMemory

const nearOverhead = 48

// nearScan gives records by their distance, nearest first. It looks at all of them once and keeps the distances and ids of
// those that match, then fetches one after the other.
type nearScan struct {
	plan  *planner.GeoNear
	stats *Stats
	scan  collScan

	loaded bool
	found  []nearby
	held   int
}

type nearby struct {
	distance float64
	id       storage.RecordID
}

func (s *nearScan) work(r *reading, m *Member) (status, error) {
	if !s.loaded {
		if err := s.load(r); err != nil {
			return ended, err
		}
		s.loaded = true
	}
	if len(s.found) == 0 {
		return ended, nil
	}
	reader, err := r.reader()
	if err != nil {
		return ended, err
	}
	id := s.found[0].id
	s.found = s.found[1:]
	rec, ok, err := reader.Get(id)
	if !ok || err != nil {
		return needTime, err
	}
	// After a park it may have moved away.
	if _, _, ok = s.plan.Near.Nearest(rec.Doc); !ok {
		return needTime, nil
	}
	m.Record = rec
	return advanced, nil
}

func (s *nearScan) load(r *reading) error {
	defer s.scan.close()
	for {
		if err := interrupted(r.ctx); err != nil {
			return err
		}
		var m Member
		switch status, err := s.scan.work(r, &m); {
		case err != nil:
			return err
		case status == ended:
			slices.SortStableFunc(s.found, func(a, b nearby) int { return cmp.Compare(a.distance, b.distance) })
			return nil
		}
		s.stats.Docs++
		if err := s.consider(r, m.Record); err != nil {
			return err
		}
	}
}

func (s *nearScan) consider(r *reading, rec storage.Record) error {
	distance, _, ok := s.plan.Near.Nearest(rec.Doc)
	if !ok {
		return nil
	}
	if ok, err := r.matches(s.plan.Filter, rec.Doc); !ok || err != nil {
		return err
	}
	if s.held += len(rec.ID) + nearOverhead; s.held > maxNearBytes {
		return mongoerr.New(mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed, "a search by distance needs more than %d bytes to order what it finds", maxNearBytes)
	}
	s.found = append(s.found, nearby{distance, rec.ID.Clone()})
	return nil
}

func (s *nearScan) park()        { s.scan.park() }
func (s *nearScan) close() error { return s.scan.close() }

// withDistance sets the metadata of what a plan has found by distance, and the fields that a $geoNear asks for.
type withDistance struct {
	op    *Op
	near  *match.GeoNear
	stage *pipeline.GeoNear // nil for a find
	in    Iterator
	bufs  [2][]byte
}

// WithDistance is in, which gives what plan finds: in a search by distance with the distance and place as metadata, and as
// the fields that stage asks for unless that is nil.
func WithDistance(op *Op, plan *planner.Plan, stage *pipeline.GeoNear, in Iterator) Iterator {
	n := plan.Near()
	if n == nil {
		return in
	}
	return &withDistance{op: op, near: n.Near, stage: stage, in: in}
}

func (w *withDistance) Next(ctx context.Context) (bson.Doc, error) {
	doc, err := w.in.Next(ctx)
	if doc == nil || err != nil {
		return nil, err
	}
	distance, place, ok := w.near.Nearest(doc)
	if !ok {
		panic("exec: a search by distance has found what is not there")
	}
	w.op.Meta.Set("geoNearDistance", bson.Double(distance))
	w.op.Meta.Set("geoNearPoint", place)
	if w.stage == nil {
		return doc, nil
	}
	if w.stage.DistanceField.Len() > 0 {
		w.bufs[0] = setPath(w.bufs[0][:0], doc, w.stage.DistanceField, bson.Double(distance*w.stage.Multiplier))
		doc = w.bufs[0]
	}
	if w.stage.IncludeLocs.Len() > 0 {
		w.bufs[1] = setPath(w.bufs[1][:0], doc, w.stage.IncludeLocs, w.op.Meta.Get("geoNearPoint"))
		doc = w.bufs[1]
	}
	return doc, nil
}

func (w *withDistance) Close() error { return w.in.Close() }
