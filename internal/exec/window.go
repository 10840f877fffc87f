package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/accumulator"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// windowStage is $setWindowFields: documents are sorted by partition and sortBy, and a partition at a time is held while
// its windows are computed.
type windowStage struct {
	op    *Op
	stage *pipeline.SetWindowFields
	in    Iterator // sorted, {k: <partition>, d: <document>}

	rows  *windowRows
	ahead *windowRow // the first of the next partition, its document as it came
	ended bool

	windows []accumulator.Window
	frames  []framer
	at      int
	buf     [2][]byte
}

func newWindow(op *Op, s *pipeline.SetWindowFields, in Iterator) Iterator {
	w := &windowStage{op: op, stage: s}
	k := &keyed{op: op, in: in, key: func(d bson.Doc) (bson.Value, error) {
		if s.PartitionBy == nil {
			return bson.Null, nil
		}
		op.Env.Reset()
		op.Env.Root = d
		v, err := s.PartitionBy.Eval(op.Env)
		if err == nil && v.Type == bson.TypeArray {
			err = mongoerr.New(mongoerr.TypeMismatch, "An expression used to partition cannot evaluate to value of type array")
		}
		return v, err
	}}
	w.in = k
	if s.PartitionBy != nil || s.SortBy != nil {
		w.in = newSortStage(op, windowOrder{s.SortBy, op.collator(), op.Interrupted}, 0, k)
	}
	w.rows = &windowRows{op: op, pattern: s.SortBy, held: holding{op: op}}
	op.holds(w.rows)
	return w
}

// windowOrder sorts what keyed gives by partition and then by the pattern.
type windowOrder struct {
	pattern *sortpattern.Pattern
	collate bson.Collator
	ask     func() error
}

func (o windowOrder) Key(dst []bson.Value, d bson.Doc, meta sortpattern.Meta) ([]bson.Value, error) {
	dst = append(dst, d.Index(0))
	if o.pattern == nil {
		return dst, nil
	}
	return o.pattern.Key(dst, d.Index(1).Doc(), meta, o.collate, o.ask)
}

func (o windowOrder) Compare(a, b []bson.Value) int {
	if c := bson.CompareWith(a[0], b[0], o.collate); c != 0 || o.pattern == nil {
		return c
	}
	return o.pattern.Compare(a[1:], b[1:], o.collate)
}

func (o windowOrder) Descends() bool { return false }
func (o windowOrder) Collates() bool { return o.collate != nil }

func (s *windowStage) Next(ctx context.Context) (bson.Doc, error) {
	if s.at >= s.rows.Len() {
		more, err := s.partition(ctx)
		if err != nil || !more {
			return nil, err
		}
	}
	if err := interrupted(ctx); err != nil {
		return nil, err
	}
	row, err := s.rows.row(s.at)
	if err != nil {
		return nil, err
	}
	out, spare := append(s.buf[0][:0], row.doc...), s.buf[1]
	for i, f := range s.stage.Fields {
		frame, err := s.frames[i].frame(s.at)
		if err != nil {
			return nil, err
		}
		v, err := s.windows[i].Next(s.rows, frame)
		if err != nil {
			return nil, err
		}
		if v.IsMissing() {
			v = bson.Null
		}
		spare = setPath(spare[:0], out, f.Path, v)
		out, spare = spare, out
	}
	s.buf[0], s.buf[1] = reusable(out), reusable(spare)
	s.at++
	s.op.restore(row.meta) // the windows have looked at other documents
	return out, nil
}

// partition reads the next partition.
func (s *windowStage) partition(ctx context.Context) (bool, error) {
	s.rows.reset()
	s.at = 0
	key := bson.Missing
	if s.ahead != nil {
		key = s.ahead.doc.Index(0).Clone()
		s.op.restore(s.ahead.meta)
		if err := s.rows.add(ctx, s.ahead.doc.Index(1).Doc()); err != nil {
			return false, err
		}
		s.ahead = nil
	}
	for !s.ended {
		d, err := s.in.Next(ctx)
		if err != nil {
			return false, err
		}
		if err := interrupted(ctx); err != nil {
			return false, err
		}
		if d == nil {
			s.ended = true
			break
		}
		switch k := d.Index(0); {
		case key.IsMissing():
			key = k.Clone()
		case bson.CompareWith(k, key, s.op.collator()) != 0:
			s.ahead = &windowRow{d.Clone(), s.op.Meta.doc()}
			return true, s.startWindows()
		}
		if err := s.rows.add(ctx, d.Index(1).Doc()); err != nil {
			return false, err
		}
	}
	return s.rows.Len() > 0, s.startWindows()
}

func (s *windowStage) startWindows() error {
	s.windows, s.frames = s.windows[:0], s.frames[:0]
	for _, f := range s.stage.Fields {
		w, err := f.Spec.New()
		if err != nil {
			return err
		}
		s.windows = append(s.windows, w)
		s.frames = append(s.frames, newFramer(f.Spec.Bounds, s.rows))
	}
	return nil
}

func (s *windowStage) Close() error {
	s.rows.reset()
	return s.in.Close()
}
