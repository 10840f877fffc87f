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
	scan    collScan
	near    *match.GeoNear
	matches func(bson.Doc) (bool, error)

	loaded bool
	found  []nearby
	held   int
}

type nearby struct {
	distance float64
	id       storage.RecordID
}

func (s *nearScan) next(ctx context.Context) (storage.Record, bool, error) {
	if !s.loaded {
		if err := s.load(ctx); err != nil {
			return storage.Record{}, false, err
		}
		s.loaded = true
	}
	for len(s.found) > 0 {
		r, err := s.scan.src.Reader(ctx)
		if err != nil {
			return storage.Record{}, false, err
		}
		id := s.found[0].id
		s.found = s.found[1:]
		rec, ok, err := r.Get(id)
		if err != nil {
			return storage.Record{}, false, err
		}
		// After a park it may have been deleted or moved away.
		if ok {
			if _, _, ok = s.near.Nearest(rec.Doc); ok {
				return rec, true, nil
			}
		}
	}
	return storage.Record{}, false, nil
}

func (s *nearScan) load(ctx context.Context) error {
	defer s.scan.close()
	for {
		if err := interrupted(ctx); err != nil {
			return err
		}
		rec, ok, err := s.scan.next(ctx)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := s.consider(rec); err != nil {
			return err
		}
	}
	slices.SortStableFunc(s.found, func(a, b nearby) int { return cmp.Compare(a.distance, b.distance) })
	return nil
}

func (s *nearScan) consider(rec storage.Record) error {
	distance, _, ok := s.near.Nearest(rec.Doc)
	if !ok {
		return nil
	}
	if ok, err := s.matches(rec.Doc); !ok || err != nil {
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
	a, ok := plan.Access.(*planner.GeoNear)
	if !ok {
		return in
	}
	return &withDistance{op: op, near: a.Near, stage: stage, in: in}
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
