// Package witness has whoever makes a commit be told what it has done, by way of the context that he makes it with. It does not know who commits.
package witness

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// Commit is what a commit has done that whoever made it wants to know: to the catalogue, and to documents of some collections.
type Commit struct {
	Events []meaning.Event
	// Before and After are the catalogue as the commit found and left it; nil where it has not changed it.
	Before, After *catalog.Catalog
	Documents     []Document
}

// Document is one that was inserted, changed or deleted: as it is now, or was.
type Document struct {
	NS  namespace.NS
	Op  meaning.DocumentOp
	Doc bson.Doc
}

type key struct{}

// With has w be told of each commit that is made with the context, by the goroutine that makes it and while locks are held: it must
// not wait.
func With(ctx context.Context, w func(Commit)) context.Context {
	return context.WithValue(ctx, key{}, w)
}

// Tell tells the context's witness, if it has one.
func Tell(ctx context.Context, what Commit) {
	if w, ok := ctx.Value(key{}).(func(Commit)); ok {
		w(what)
	}
}
