package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// unionStage is $unionWith: all of its source, then all of the other collection.
type unionStage struct {
	op    *Op
	stage *pipeline.UnionWith
	in    Iterator // nil when it is through
	// scored says that the text scores of what it gives are read.
	scored bool
	sub    *Op
	other  Iterator
}

func (s *unionStage) Next(ctx context.Context) (bson.Doc, error) {
	if s.in != nil {
		d, err := s.in.Next(ctx)
		if d != nil || err != nil {
			return d, err
		}
		if err := s.in.Close(); err != nil {
			return nil, err
		}
		s.in = nil
	}
	if s.other == nil {
		s.sub = s.op.Sub()
		s.sub.TextScores = s.scored
		it, err := s.op.Catalog.Open(ctx, s.sub, s.stage.From, s.stage.Pipeline)
		if err != nil {
			return nil, err
		}
		s.other = it
	}
	d, err := s.other.Next(ctx)
	s.op.Meta.take(&s.sub.Meta)
	return d, err
}

func (s *unionStage) Close() error {
	var err error
	if s.in != nil {
		err = s.in.Close()
		s.in = nil
	}
	if s.other != nil {
		if e := s.other.Close(); err == nil {
			err = e
		}
		s.op.Drop(s.sub)
		s.other = empty{}
	}
	return err
}
