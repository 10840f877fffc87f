// Package exec runs plans and pipelines: an iterator a plan node or stage, pulled one document at a time by one goroutine.
// It knows nothing of commands, sessions or the wire, and reaches collections only through its leaves and Catalog.
package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
)

// Iterator gives documents one at a time.
//
// Next returns nil, nil at the end, and again whenever it is asked after it. The document is valid until the next call of
// Next or Close; whoever keeps it longer clones it. After an error only Close may be called. Next looks at ctx at least
// once a document read, so that an interrupt ends any loop; iterators keep no ctx of their own, since each getMore brings
// another.
//
// Close frees what the iterator holds, its sources included, and may be called more than once.
type Iterator interface {
	Next(ctx context.Context) (bson.Doc, error)
	Close() error
}

// Each hands every document of it to f.
func Each(ctx context.Context, it Iterator, f func(bson.Doc) error) error {
	for {
		d, err := it.Next(ctx)
		if d == nil || err != nil {
			return err
		}
		if err := interrupted(ctx); err != nil {
			return err
		}
		if err := f(d); err != nil {
			return err
		}
	}
}

// Parker is a leaf that holds something of the storage engine, a snapshot say, which must not be held while nobody reads.
// Park lets go of it and saves the position; the document returned last stays valid (the stages above may still use it),
// and the next call of Next goes on behind it.
type Parker interface {
	Park()
}
