package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/vectorsearch"
)

// withVectorScore gives the documents that have a vector to compare, in the order in which they come.
type withVectorScore struct {
	op     *Op
	search *vectorsearch.Search
	in     Iterator
}

// WithVectorScore is in without the documents that the search does not find, and with the scores of the others as metadata.
func WithVectorScore(op *Op, search *vectorsearch.Search, in Iterator) Iterator {
	return &withVectorScore{op, search, in}
}

func (w *withVectorScore) Next(ctx context.Context) (bson.Doc, error) {
	for {
		doc, err := w.in.Next(ctx)
		if doc == nil || err != nil {
			return nil, err
		}
		if score, ok := w.search.Score(doc); ok {
			w.op.Meta.Clear()
			w.op.Meta.Set("vectorSearchScore", bson.Double(float64(score)))
			w.op.Meta.Set("score", bson.Double(float64(score)))
			return doc, nil
		}
		if err := interrupted(ctx); err != nil {
			return nil, err
		}
	}
}

func (w *withVectorScore) Close() error { return w.in.Close() }
