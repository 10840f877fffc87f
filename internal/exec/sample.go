package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// newSample is $sample: each document gets a random number, and those with the smallest are kept, in that order.
func newSample(op *Op, s *pipeline.Sample, in Iterator) Iterator {
	pattern := &sortpattern.Pattern{Parts: []sortpattern.Part{{Meta: "randVal"}}}
	return NewSort(op, pattern, s.Size, &randomized{op, in})
}

// randomized gives each document a random number as metadata.
type randomized struct {
	op *Op
	in Iterator
}

func (r *randomized) Next(ctx context.Context) (bson.Doc, error) {
	d, err := r.in.Next(ctx)
	if d != nil {
		r.op.Meta.Set("randVal", bson.Double(r.op.Env.Rand()))
	}
	return d, err
}

func (r *randomized) Close() error { return r.in.Close() }
