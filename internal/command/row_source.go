package command

import (
	"context"
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
)

// rows is a cursor's source of documents that were made at once.
type rows struct{ rest []bson.Doc }

// Next implements cursor.Source.
func (r *rows) Next(context.Context) (bson.Doc, error) {
	if len(r.rest) == 0 {
		return nil, nil
	}
	d := r.rest[0]
	r.rest = r.rest[1:]
	return d, nil
}

// Park implements cursor.Source.
func (r *rows) Park() {}

// Held implements cursor.Source.
func (r *rows) Held() int64 { return int64(total(r.rest)) }

// Shrink implements cursor.Source.
func (r *rows) Shrink() error { return nil }

// Close implements cursor.Source.
func (r *rows) Close() error { return nil }

// simpleCursor reads the cursor option of commands that list something. Without a batch size all that fits comes at once.
func (a *Args) simpleCursor() cursorOptions {
	o := cursorOptions{batch: math.MaxInt64, batchGiven: true}
	c := a.sub("cursor")
	if c == nil {
		return o
	}
	if n, ok := c.IntIn("batchSize", 0, math.MaxInt64); ok {
		o.batch = n
	}
	if err := c.Done(); err != nil {
		a.Fail(err)
	}
	return o
}

// openRows is openCursor over rows; a batch that takes them all leaves no cursor open.
func (op *Op) openRows(ns namespace.NS, docs []bson.Doc, o cursorOptions) (bson.Doc, error) {
	if int64(len(docs)) <= o.batch && total(docs) < maxRowBytes {
		o.single = true
	}
	reply, err := op.openCursor(ns, &rows{docs}, o)
	if err != nil {
		return nil, err
	}
	return cursorOrdered(reply, "id", "ns", "firstBatch"), nil
}

// cursorOrdered is a reply whose cursor has the fields in the order that MongoDB has for commands other than find and aggregate. The other fields of the
// cursor follow.
func cursorOrdered(reply bson.Doc, first ...string) bson.Doc {
	cursor := reply.Lookup("cursor").Doc()
	b := bson.BuildOn(make([]byte, 0, len(reply))).Object("cursor")
	for _, name := range first {
		b.Value(name, cursor.Lookup(name))
	}
	for it := cursor.Iter(); it.Next(); {
		if !slices.Contains(first, it.Key()) {
			b.Value(it.Key(), it.Value())
		}
	}
	b.End()
	for it := reply.Iter(); it.Next(); {
		if it.Key() != "cursor" {
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Doc()
}

// maxRowBytes is what certainly fits a batch.
const maxRowBytes = 15 << 20

func total(docs []bson.Doc) (n int) {
	for _, d := range docs {
		n += len(d) + 16
	}
	return n
}
