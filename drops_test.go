package ebb

import (
	"context"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/cursor"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// noDocuments is a source that has none.
type noDocuments struct{}

func (noDocuments) Next(context.Context) (bson.Doc, error) { return nil, nil }
func (noDocuments) Park()                                  {}
func (noDocuments) Held() int64                            { return 0 }
func (noDocuments) Shrink() error                          { return nil }
func (noDocuments) Close() error                           { return nil }

// TestADropLeavesStreams: when a collection goes, its cursors fail, and its change streams are left to tell of it.
func TestADropLeavesStreams(t *testing.T) {
	for _, kind := range []meaning.EventKind{meaning.CollectionDropped, meaning.CollectionRenamed} {
		cursors := cursor.NewRegistry(clock.Wall(), nil)
		ns := namespace.NS{DB: "d", Coll: "c"}
		plain := &cursor.Cursor{NS: ns.String(), Source: noDocuments{}}
		stream := &cursor.Cursor{NS: ns.String(), Watches: true, Source: noDocuments{}}
		for _, c := range []*cursor.Cursor{plain, stream} {
			if err := cursors.Add(c); err != nil {
				t.Fatal(err)
			}
		}
		endCursors(cursors, meaning.Event{Kind: kind, NS: ns, To: namespace.NS{DB: "d", Coll: "e"}})
		if _, err := cursors.Take(plain.ID, ns.String(), ""); !mongoerr.Is(err, mongoerr.QueryPlanKilled) {
			t.Error(err)
		}
		if _, err := cursors.Take(stream.ID, ns.String(), ""); err != nil {
			t.Error(err)
		}
	}
}
