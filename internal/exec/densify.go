package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// maxDensified is how many documents a $densify may make.
const maxDensified = 500_000

// densifyStage is $densify. Documents are sorted by partition and field; each partition is walked beside the grid of values
// that starts at its lower bound, and a document is made for each value that nobody has.
type densifyStage struct {
	op    *Op
	stage *pipeline.Densify
	in    Iterator

	least, most bson.Value // of all documents, known when the first one comes out of the sort

	key    bson.Value // of the partition, missing before the first
	next   bson.Value // of the grid, missing when the partition is not densified (any more)
	doc    bson.Doc   // read, and waiting for the grid to reach it
	meta   bson.Doc   // its metadata, nil without
	ended  bool
	made   int64
	buf    []byte
	spare  []byte
	opened bool
}

func newDensify(op *Op, s *pipeline.Densify, in Iterator) Iterator {
	d := &densifyStage{op: op, stage: s}
	k := &keyed{op: op, in: in, key: d.partitionOf}
	pattern := &sortpattern.Pattern{Parts: []sortpattern.Part{{Path: s.Field}}}
	d.in = newSortStage(op, windowOrder{pattern, op.collator(), op.Interrupted}, 0, k)
	return d
}

// partitionOf is the key of a document's partition. It also checks the value and keeps the extremes of all.
func (s *densifyStage) partitionOf(d bson.Doc) (bson.Value, error) {
	v := s.stage.Field.Get(d)
	switch {
	case v.IsNullish():
	case s.stage.Timed && v.Type != bson.TypeDate:
		return v, mongoerr.New(6053600, "PartitionBy or field value has the wrong type: the field of a $densify with a unit must be a date, but is %s", v.Type)
	case !s.stage.Timed && v.Type == bson.TypeDate:
		return v, mongoerr.New(6053600, "the field of a $densify is a date, but no 'unit' is given")
	case !s.stage.Timed && !v.IsNumber():
		return v, mongoerr.New(5733201, "Densify field type must be numeric, but is %s", v.Type)
	default:
		if s.least.IsMissing() || bson.Compare(v, s.least) < 0 {
			s.least = v.Clone()
		}
		if s.most.IsMissing() || bson.Compare(v, s.most) > 0 {
			s.most = v.Clone()
		}
	}
	parts := make([]bson.Value, len(s.stage.Partitions))
	for i, path := range s.stage.Partitions {
		parts[i] = path.Get(d)
		if parts[i].IsMissing() {
			parts[i] = bson.Undefined // keeps its place, and apart from null
		}
	}
	return bson.ArrayOf(parts...), nil
}

func (s *densifyStage) Next(ctx context.Context) (bson.Doc, error) {
	if err := interrupted(ctx); err != nil {
		return nil, err
	}
	if s.doc == nil && !s.ended {
		d, err := s.in.Next(ctx)
		if err != nil {
			return nil, err
		}
		s.doc, s.meta, s.ended = d, s.op.Meta.doc(), d == nil
	}
	if s.doc == nil || !s.key.IsMissing() && bson.CompareWith(s.doc.Index(0), s.key, s.op.collator()) != 0 {
		// The partition is over but for the rest of its grid.
		if out, err := s.fillTo(bson.MaxKey, s.key); out != nil || err != nil {
			return out, err
		}
		if s.doc == nil {
			return s.lonely()
		}
		s.key = bson.Missing
	}
	d := s.doc.Index(1).Doc()
	v := s.stage.Field.Get(d)
	if s.key.IsMissing() {
		s.enter(s.doc.Index(0), v)
	}
	if !v.IsNullish() {
		if s.next.IsMissing() && !s.opened {
			s.open(v)
		}
		// Under a collation one partition has several keys. What is made has that of the document behind it.
		if out, err := s.fillTo(v, s.doc.Index(0)); out != nil || err != nil {
			return out, err
		}
		if !s.next.IsMissing() && bson.Compare(s.next, v) == 0 {
			if err := s.advance(); err != nil {
				return nil, err
			}
		}
	}
	s.doc = nil
	s.op.restore(s.meta)
	return d, nil
}

// enter starts a partition.
func (s *densifyStage) enter(key, v bson.Value) {
	s.key, s.next, s.opened = key.Clone(), bson.Missing, false
	if !v.IsNullish() || !s.stage.Low.IsMissing() || s.stage.Full {
		s.open(v)
	}
}

// open starts the grid of a partition whose first value is v.
func (s *densifyStage) open(v bson.Value) {
	switch {
	case !s.stage.Low.IsMissing():
		s.next = s.stage.Low
	case s.stage.Full:
		s.next = s.least
	case v.IsNullish():
		return
	default:
		s.next = v.Clone()
	}
	s.opened = true
}

// lonely is the grid of explicit bounds when there was no document at all.
func (s *densifyStage) lonely() (bson.Doc, error) {
	if s.opened || s.stage.Low.IsMissing() || len(s.stage.Partitions) > 0 {
		return nil, nil
	}
	s.enter(bson.EmptyArr, bson.Missing)
	return s.fillTo(bson.MaxKey, s.key)
}

// fillTo is a document of partition key for the grid's next value when that lies below limit and within the bounds, else nil.
func (s *densifyStage) fillTo(limit, key bson.Value) (bson.Doc, error) {
	if s.next.IsMissing() || bson.Compare(s.next, limit) >= 0 {
		return nil, nil
	}
	switch {
	case !s.stage.High.IsMissing():
		if bson.Compare(s.next, s.stage.High) >= 0 {
			s.next = bson.Missing
			return nil, nil
		}
	case s.stage.Full:
		if bson.Compare(s.next, s.most) > 0 {
			s.next = bson.Missing
			return nil, nil
		}
	case limit.Type == bson.TypeMaxKey: // a partition ends with its last value
		s.next = bson.Missing
		return nil, nil
	}
	if s.made++; s.made > maxDensified {
		return nil, mongoerr.New(5897900, "Generated %d documents in $densify, which is over the limit of %d. Increase the 'internalQueryMaxAllowedDensifyDocs' parameter to allow more generated documents",
			s.made, maxDensified)
	}
	s.op.Meta.Clear()
	out := append(s.buf[:0], bson.EmptyDoc...)
	parts := key.Doc().Iter()
	for _, path := range s.stage.Partitions {
		parts.Next()
		if v := parts.Value(); v.Type != bson.TypeUndefined {
			s.spare = setPath(s.spare[:0], out, path, v)
			out, s.spare = s.spare, out
		}
	}
	made := setPath(s.spare[:0], out, s.stage.Field, s.next)
	s.buf, s.spare = reusable(made), reusable(out)
	return made, s.advance()
}

func (s *densifyStage) advance() error {
	if !s.stage.Timed {
		sum, _ := bson.Add(s.next, s.stage.Step)
		s.next = sum
		return nil
	}
	n, _ := s.stage.Step.AsInt64()
	ms, ok := expr.AddDate(s.next.Millis(), s.stage.Unit, n, nil)
	if !ok {
		return mongoerr.New(mongoerr.Overflow, "$densify leaves the range of dates")
	}
	s.next = bson.Date(ms)
	return nil
}

func (s *densifyStage) Close() error { return s.in.Close() }
