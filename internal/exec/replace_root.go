package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// replaceRootStage is $replaceRoot and $replaceWith.
type replaceRootStage struct {
	op    *Op
	stage *pipeline.ReplaceRoot
	in    Iterator
	buf   []byte
}

func (s *replaceRootStage) Next(ctx context.Context) (bson.Doc, error) {
	d, err := s.in.Next(ctx)
	if d == nil {
		return nil, err
	}
	env := s.op.Env
	env.Reset()
	env.Root = d
	v, err := s.stage.NewRoot.Eval(env)
	if err != nil {
		return nil, err
	}
	if v.Type != bson.TypeObject {
		what := "'newRoot' expression "
		if s.stage.Name() == "$replaceWith" {
			what = "'replacement document' "
		}
		return nil, mongoerr.New(40228, "%s must evaluate to an object, but resulting value was: %s. Type of resulting value: '%s'. Input document: %s",
			what, v.Computed(), v.Type, d.Value().Computed())
	}
	out := append(s.buf[:0], v.Data...)
	s.buf = reusable(out)
	return out, s.op.carry(ctx, len(out))
}

func (s *replaceRootStage) Close() error { return s.in.Close() }
