package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// unwindStage is $unwind.
type unwindStage struct {
	stage *pipeline.Unwind
	in    Iterator

	doc      bson.Doc // the document that is unwound
	pinned   pinned   // it
	elements bson.Iter
	index    int64
	on       bool
	buf, tmp []byte
}

func (s *unwindStage) Next(ctx context.Context) (bson.Doc, error) {
	for {
		if s.on {
			if s.elements.Next() {
				d := s.with(s.elements.Value(), bson.Int64(s.index))
				s.index++
				return d, nil
			}
			s.on, s.doc = false, nil
			s.pinned.empty()
		}
		d, err := s.in.Next(ctx)
		if d == nil {
			return nil, err
		}
		if err := interrupted(ctx); err != nil {
			return nil, err
		}
		s.doc = d
		v := s.stage.Path.Get(d)
		switch {
		case v.Type == bson.TypeArray && !v.Doc().IsEmpty():
			if err := s.pinned.pin(ctx, len(d)); err != nil {
				return nil, err
			}
			s.elements, s.index, s.on = v.Doc().Iter(), 0, true
		case v.Type == bson.TypeArray && s.stage.Preserve:
			return s.with(bson.Missing, bson.Null), nil
		case v.Type == bson.TypeArray || v.IsNullish() && !s.stage.Preserve:
		default:
			return s.indexed(d, bson.Null), nil
		}
	}
}

// with is the document with v in place of the array.
func (s *unwindStage) with(v, index bson.Value) bson.Doc {
	out := setPath(s.buf[:0], s.doc, s.stage.Path, v)
	s.buf = reusable(out)
	return s.indexed(out, index)
}

func (s *unwindStage) indexed(d bson.Doc, index bson.Value) bson.Doc {
	if s.stage.Index.Len() == 0 {
		return d
	}
	out := setPath(s.tmp[:0], d, s.stage.Index, index)
	s.tmp = reusable(out)
	return out
}

func (s *unwindStage) Close() error {
	s.pinned.empty()
	return s.in.Close()
}
