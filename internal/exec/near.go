package exec

import (
	"bytes"
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

// maxNearBytes bounds what is kept of the places that a search by distance has found at one and the same distance, and
// nearRingBytes what it keeps of a ring before it looks at a smaller one instead.
const (
	maxNearBytes  = DefaultMaxMemory
	nearRingBytes = DefaultMaxMemory / 8
	nearOverhead  = 104
	// nearDocBytes is how much of the documents is kept, so that they need not be fetched again.
	nearDocBytes = 1 << 20
)

// nearScan gives records by their distance, nearest first: it walks the index for all that lies in a ring around the center,
// sorts it, gives one after the other, and goes on with the next ring, of twice the width. Rings part the distances: a
// record is in the one in which its nearest place lies, and in no other.
type nearScan struct {
	plan  *planner.GeoNear
	stats *Stats

	low, high float64 // the ring under way: from low on, before high
	last      bool    // it is the last one, with high
	begun     bool
	ring      Ring
	within    func(key []byte) bool
	rest      *match.Filter // what is demanded besides the distance
	scan      *indexScan    // through the ring's part of the index; nil between rings
	found     []nearby      // of the ring, sorted when the scan has ended
	held      int
	counted   int             // of held, the most so far
	docs      int             // bytes of documents in found
	reader    *storage.Reader // nil while parked
}

// nearby is a record that was found, by a key of the index; only its id when its document is not kept.
type nearby struct {
	distance float64
	storage.Record
	key []byte
}

func (s *nearScan) work(r *reading, m *Member) (status, error) {
	switch {
	case s.scan != nil:
		return needTime, s.look(r)
	case len(s.found) > 0:
		return s.give(r, m)
	case s.last:
		return ended, nil
	}
	return needTime, s.nextRing(r)
}

// give gives the nearest record; one that is not kept is fetched again.
func (s *nearScan) give(r *reading, m *Member) (status, error) {
	next := s.found[0]
	s.found = s.found[1:]
	m.Record = next.Record
	if m.Doc == nil {
		if ok, err := s.fetch(r, m, next); !ok || err != nil {
			return needTime, err
		}
	}
	s.stats.ringGave()
	return advanced, nil
}

// fetch gets the record again that was found, perhaps in an earlier view. It may have gone since, match no longer, or lie elsewhere:
// in this ring it is put where it belongs now, a ring further out will find it, and what has come nearer is given at once.
func (s *nearScan) fetch(r *reading, m *Member, was nearby) (there bool, err error) {
	rec, ok, err := s.get(r, was.key, m.ID)
	if !ok || err != nil {
		return false, err
	}
	distance, _, ok := s.plan.Near.Nearest(rec.Doc, r.env.Interrupt)
	if err := interrupted(r.ctx); err != nil {
		return false, err
	}
	if !ok || distance > s.high || distance == s.high && !s.last {
		return false, nil
	}
	if distance > was.distance {
		s.place(nearby{distance, storage.Record{ID: rec.ID.Clone()}, was.key})
		return false, nil
	}
	m.Record = rec
	return r.matches(s.filter(r), rec.Doc)
}

// place puts a record among those found.
func (s *nearScan) place(one nearby) {
	at, _ := slices.BinarySearchFunc(s.found, one, byDistance)
	s.found = slices.Insert(s.found, at, one)
}

func byDistance(a, b nearby) int {
	return cmp.Or(cmp.Compare(a.distance, b.distance), bytes.Compare(a.ID, b.ID))
}

// filter is what a record is held against besides the distance.
func (s *nearScan) filter(r *reading) *match.Filter {
	if r.details != nil {
		return s.plan.Filter
	}
	return s.rest
}

func (s *nearScan) get(r *reading, key []byte, id storage.RecordID) (rec storage.Record, ok bool, err error) {
	if s.reader == nil {
		if s.reader, err = r.reader(); err != nil {
			return rec, false, err
		}
	}
	return s.reader.GetByEntry(s.plan.Index.Definition, key, id)
}

// nextRing begins the walk of the ring behind the one that is done.
func (s *nearScan) nextRing(r *reading) error {
	reach := s.plan.Reach()
	switch {
	case !s.begun:
		width, err := s.firstWidth(r)
		if err != nil {
			return err
		}
		s.begun, s.low, s.high = true, s.plan.Near.Min, s.plan.Near.Min+width
	default:
		s.low, s.high = s.high, s.high+2*(s.high-s.low)
	}
	if s.last = !(s.high < reach); s.last {
		s.high = reach
	}
	s.beginRing()
	return nil
}

func (s *nearScan) beginRing() {
	s.found, s.held, s.docs = nil, 0, 0
	s.within = s.plan.Within(s.low, s.high)
	s.ring = Ring{Low: s.low, High: s.high, Last: s.last, Scan: s.plan.Ring(s.low, s.high), Fetch: &Stats{Children: []*Stats{{}}}}
	if s.ring.Scan == nil {
		s.endRing()
		return
	}
	s.scan = newIndexScan(s.ring.Scan, s.ring.Fetch.Children[0], want{fetched: true})
}

func (s *nearScan) endRing() {
	s.scan = nil
	slices.SortFunc(s.found, byDistance)
	s.ring.Found, s.ring.Fetch.EOF = int64(len(s.found)), true
	s.stats.Rings = append(s.stats.Rings, s.ring)
}

// Before the first ring, about as many keys as would make a good one are looked at on both sides of where the center would
// be in the index: there lies much of what is near.
const (
	nearSamples = 32
	nearWanted  = 16
)

// firstWidth is a width for the first ring in which there is something to be found, but not much.
func (s *nearScan) firstWidth(r *reading) (float64, error) {
	reach := s.plan.Reach()
	if !s.plan.InRings() {
		return reach, nil
	}
	at, around := s.plan.Center()
	distances, err := s.sample(r, storage.IndexScan{Low: at, High: around.High})
	if err != nil {
		return 0, err
	}
	before, err := s.sample(r, storage.IndexScan{Low: around.Low, High: at, Reverse: true})
	if err != nil {
		return 0, err
	}
	distances = append(distances, before...)
	if len(distances) == 0 {
		return reach, nil
	}
	slices.Sort(distances)
	width := distances[min(nearWanted, len(distances))-1] - s.plan.Near.Min
	return max(width, reach*minNearWidth), nil
}

// minNearWidth is how wide the first ring is at least, of the whole reach.
const minNearWidth = 1e-9

func (s *nearScan) sample(r *reading, scan storage.IndexScan) (distances []float64, err error) {
	reader, err := r.reader()
	if err != nil {
		return nil, err
	}
	if scan.Index = reader.Catalog().IndexByID(s.plan.Index.ID); scan.Index == nil {
		return nil, mongoerr.New(mongoerr.QueryPlanKilled, "query plan killed :: index '%s' dropped", s.plan.Index.Name)
	}
	scan.Fetches = true
	cursor, err := reader.ScanIndex(scan)
	if err != nil {
		return nil, err
	}
	defer cursor.Close()
	for len(distances) < nearSamples && cursor.Next() {
		s.stats.Keys++
		r.seen.Keys++
		distances = append(distances, s.plan.About(cursor.Entry().Key))
	}
	return distances, cursor.Err()
}

// look takes the walk one key further.
func (s *nearScan) look(r *reading) error {
	var m Member
	s.ring.Fetch.Works++
	switch status, err := (working{s.scan, s.ring.Fetch.Children[0]}).work(r, &m); {
	case err != nil:
		return err
	case status == ended:
		err := s.scan.close()
		s.endRing()
		return err
	case status == needTime:
		return nil
	}
	// Where a record has several keys it comes by the first, which tells nothing of its other places.
	if s.scan.given == nil && !s.within(s.scan.cursor.Entry().Key) {
		return nil
	}
	return s.consider(r, m.Entry.Key, m.ID)
}

func (s *nearScan) consider(r *reading, key []byte, id storage.RecordID) error {
	rec, ok, err := s.get(r, key, id)
	if !ok || err != nil {
		return err
	}
	s.ring.Fetch.Docs++
	r.seen.Docs++
	distance, _, ok := s.plan.Near.Nearest(rec.Doc, r.env.Interrupt)
	if err := interrupted(r.ctx); err != nil {
		return err
	}
	if !ok || distance < s.low || distance > s.high || distance == s.high && !s.last {
		return nil
	}
	if ok, err := r.matches(s.filter(r), rec.Doc); !ok || err != nil {
		return err
	}
	s.ring.Fetch.Advanced++
	s.keep(distance, rec, key)
	if more := int64(s.held - s.counted); more > 0 { // rings are counted by the largest
		if err := r.remember(int(more)); err != nil {
			return err
		}
		s.counted = s.held
	}
	s.stats.Held = max(s.stats.Held, int64(s.held))
	if s.held > nearRingBytes {
		return s.halve()
	}
	return nil
}

func (s *nearScan) keep(distance float64, rec storage.Record, key []byte) {
	kept := storage.Record{ID: rec.ID.Clone()}
	if s.docs+len(rec.Doc) <= nearDocBytes {
		s.docs += len(rec.Doc)
		kept = rec.Clone()
	}
	s.found = append(s.found, nearby{distance, kept, bytes.Clone(key)})
	s.held += len(rec.ID) + len(key) + nearOverhead
}

// halve looks at the inner half of the ring instead, as long as it can be told from the whole.
func (s *nearScan) halve() error {
	if middle := s.low + (s.high-s.low)/2; s.plan.InRings() && middle > s.low && middle < s.high {
		err := s.scan.close()
		s.high, s.last = middle, false
		s.beginRing()
		return err
	}
	if s.held > maxNearBytes {
		return mongoerr.New(mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed, "a search by distance needs more than %d bytes to order what it finds", maxNearBytes)
	}
	return nil
}

// park forgets the documents, which may be others in the next view.
func (s *nearScan) park() {
	s.reader = nil
	for i := range s.found {
		s.found[i].Doc = nil
	}
	s.docs = nearDocBytes
	if s.scan != nil {
		s.scan.park()
	}
}

func (s *nearScan) close() error {
	s.reader = nil
	if s.scan == nil {
		return nil
	}
	return s.scan.close()
}

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
	distance, place, ok := w.near.Nearest(doc, w.op.Interrupted)
	if err := interrupted(ctx); err != nil {
		return nil, err
	}
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
