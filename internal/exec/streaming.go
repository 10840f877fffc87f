package exec

import (
	"context"
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/projection"
)

// matchStage is $match.
type matchStage struct {
	op     *Op
	filter *match.Filter
	in     Iterator
}

func (s *matchStage) Next(ctx context.Context) (bson.Doc, error) {
	for {
		d, err := s.in.Next(ctx)
		if d == nil {
			return nil, err
		}
		if err := interrupted(ctx); err != nil {
			return nil, err
		}
		s.op.Env.Reset()
		ok, err := s.filter.Match(s.op.Env, d)
		if err != nil {
			return nil, err
		}
		if ok {
			return d, nil
		}
	}
}

func (s *matchStage) Close() error { return s.in.Close() }

// projectStage is $project, $addFields, $set and $unset.
type projectStage struct {
	op         *Op
	projection *projection.Projection
	in         Iterator
	buf        []byte
}

func (s *projectStage) Next(ctx context.Context) (bson.Doc, error) {
	d, err := s.in.Next(ctx)
	if d == nil {
		return nil, err
	}
	out, err := s.projection.Apply(s.buf[:0], d, s.op.Env, nil)
	if err != nil {
		return nil, err
	}
	s.buf = reusable(out)
	return out, s.op.carry(ctx, len(out))
}

func (s *projectStage) Close() error { return s.in.Close() }

// limitStage is $limit. It lets go of its source as soon as it is full.
type limitStage struct {
	n  int64
	in Iterator
}

func (s *limitStage) Next(ctx context.Context) (bson.Doc, error) {
	if s.n == 0 {
		return nil, nil
	}
	d, err := s.in.Next(ctx)
	if d == nil {
		return nil, err
	}
	s.n--
	return d, nil
}

func (s *limitStage) Close() error { return s.in.Close() }

// skipStage is $skip.
type skipStage struct {
	n  int64
	in Iterator
}

func (s *skipStage) Next(ctx context.Context) (bson.Doc, error) {
	for ; s.n > 0; s.n-- {
		if d, err := s.in.Next(ctx); d == nil {
			return nil, err
		}
		if err := interrupted(ctx); err != nil {
			return nil, err
		}
	}
	return s.in.Next(ctx)
}

func (s *skipStage) Close() error { return s.in.Close() }

// countStage is $count.
type countStage struct {
	op    *Op
	field string
	in    Iterator
	done  bool
}

func (s *countStage) Next(ctx context.Context) (bson.Doc, error) {
	if s.done {
		return nil, nil
	}
	n := int64(0)
	if err := Each(ctx, s.in, func(bson.Doc) error { n++; return nil }); err != nil {
		return nil, err
	}
	s.done = true
	s.op.Meta.Clear()
	if n == 0 {
		return nil, nil
	}
	if n > math.MaxInt32 {
		return bson.Build().Int64(s.field, n).Doc(), nil
	}
	return bson.Build().Int32(s.field, int32(n)).Doc(), nil
}

func (s *countStage) Close() error { return s.in.Close() }
