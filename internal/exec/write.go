package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
)

// writeStage is $out and $merge: at the first Next it writes all of its source.
type writeStage struct {
	op   *Op
	in   Iterator
	open func(context.Context) (Writer, error)
	done bool
}

func (s *writeStage) Next(ctx context.Context) (bson.Doc, error) {
	if s.done {
		return nil, nil
	}
	s.done = true
	w, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.write(ctx, w); err != nil {
		w.Abort(ctx)
		return nil, err
	}
	return nil, w.Finish(ctx)
}

func (s *writeStage) write(ctx context.Context, w Writer) error {
	return Each(ctx, s.in, func(d bson.Doc) error {
		if len(d) > bson.MaxInternalSize {
			return tooLarge(len(d))
		}
		return w.Write(ctx, d)
	})
}

func (s *writeStage) Close() error { return s.in.Close() }
