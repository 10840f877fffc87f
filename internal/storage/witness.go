package storage

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/witness"
)

// isWitnessed says whether what is done to the documents of a collection is told to witnesses.
func (s *Store) isWitnessed(ns namespace.NS) bool {
	return s.options.Witnessed != nil && s.options.Witnessed(ns)
}

// witness keeps what has happened to a document for the commit.
func (w *Writer) witness(op meaning.DocumentOp, doc bson.Doc) {
	if w.witnessed {
		w.txn.documents = append(w.txn.documents, witness.Document{NS: w.c.NS, Op: op, Doc: doc.Clone()})
	}
}

// tellOf tells of a commit that found the catalogue so.
func (t *Txn) tellOf(ctx context.Context, before *catalog.Catalog) {
	ddl := t.meaning.DDL
	if ddl == nil && t.documents == nil {
		return
	}
	what := witness.Commit{Documents: t.documents}
	if ddl != nil {
		what.Events, what.Before, what.After = ddl.Events, before, ddl.ApplyTo(before)
	}
	witness.Tell(ctx, what)
}
