package storage

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// Witnessed is what a commit has done that whoever made it wants to know: to the catalogue, and to documents of the collections that
// Options.Witnessed names.
type Witnessed struct {
	Events []meaning.Event
	// Before and After are the catalogue as the commit found and left it; nil where it has not changed it.
	Before, After *catalog.Catalog
	Documents     []WitnessedDocument
}

// WitnessedDocument is one that was inserted, changed or deleted: as it is now, or was.
type WitnessedDocument struct {
	NS  namespace.NS
	Op  meaning.DocumentOp
	Doc bson.Doc
}

type witnessKey struct{}

// WithWitness has w be told of each commit that is made with the context, by the goroutine that makes it and while locks are held: it must
// not wait.
func WithWitness(ctx context.Context, w func(Witnessed)) context.Context {
	return context.WithValue(ctx, witnessKey{}, w)
}

// tellWitness tells the context's witness, if it has one.
func tellWitness(ctx context.Context, what Witnessed) {
	if w, ok := ctx.Value(witnessKey{}).(func(Witnessed)); ok {
		w(what)
	}
}

// isWitnessed says whether what is done to the documents of a collection is told to witnesses.
func (s *Store) isWitnessed(ns namespace.NS) bool {
	return s.options.Witnessed != nil && s.options.Witnessed(ns)
}

// witness keeps what has happened to a document for the commit.
func (w *Writer) witness(op meaning.DocumentOp, doc bson.Doc) {
	if w.witnessed {
		w.txn.documents = append(w.txn.documents, WitnessedDocument{w.c.NS, op, doc.Clone()})
	}
}

// tellOf tells of a commit that found the catalogue so.
func (t *Txn) tellOf(ctx context.Context, before *catalog.Catalog) {
	ddl := t.meaning.DDL
	if ddl == nil && t.documents == nil {
		return
	}
	what := Witnessed{Documents: t.documents}
	if ddl != nil {
		what.Events, what.Before, what.After = ddl.Events, before, ddl.ApplyTo(before)
	}
	tellWitness(ctx, what)
}
