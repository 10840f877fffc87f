package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// documentsStage is $documents.
type documentsStage struct {
	op    *Op
	stage *pipeline.Documents
	docs  bson.Iter
	open  bool
}

func (s *documentsStage) Next(context.Context) (bson.Doc, error) {
	if !s.open {
		env := s.op.Env
		env.Reset()
		env.Root = bson.EmptyDoc
		v, err := s.stage.Array.Eval(env)
		if err != nil {
			return nil, err
		}
		if v.Type != bson.TypeArray {
			return nil, mongoerr.New(5858203, "an array is expected")
		}
		s.docs, s.open = v.Clone().Doc().Iter(), true
	}
	if !s.docs.Next() {
		return nil, nil
	}
	v := s.docs.Value()
	if v.Type != bson.TypeObject {
		return nil, mongoerr.New(40228, "'newRoot' expression  must evaluate to an object, but resulting value was: %s. Type of resulting value: '%s'.", v.Computed(), v.Type)
	}
	return v.Doc(), nil
}

func (s *documentsStage) Close() error { return nil }
