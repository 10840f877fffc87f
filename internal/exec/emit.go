package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// maxEmitted is how many bytes a function may emit for one document.
const maxEmitted = 100 << 20

// emitStage gives what a function emits for each document as documents {k, v}.
type emitStage struct {
	op    *Op
	stage *pipeline.Emit
	in    Iterator

	queue []bson.Doc
	next  int
}

func (s *emitStage) Next(ctx context.Context) (bson.Doc, error) {
	for s.next == len(s.queue) {
		d, err := s.in.Next(ctx)
		if d == nil {
			return nil, err
		}
		if err := interrupted(ctx); err != nil {
			return nil, err
		}
		if err := s.call(d); err != nil {
			return nil, err
		}
	}
	s.next++
	return s.queue[s.next-1], nil
}

func (s *emitStage) call(d bson.Doc) error {
	s.queue, s.next = s.queue[:0], 0
	size := 0
	return s.op.Env.JavaScript().Emit(s.stage.Map, d, func(k, v bson.Value) error {
		pair := bson.Build().Value("k", k).Value("v", v).Doc()
		if size += len(pair); size > maxEmitted {
			return mongoerr.New(31292, "Size of emitted objects is over the limit of %d bytes", maxEmitted)
		}
		s.queue = append(s.queue, pair)
		return nil
	})
}

func (s *emitStage) Close() error { return s.in.Close() }
