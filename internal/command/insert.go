package command

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
)

func insertCommands() []*Command {
	return []*Command{{Name: "insert", RawData: true, Needs: Needs{OnCollection: actions(privilege.Insert), Also: needsWrite}, Doc: "Adds documents to a collection.", Kind: "insert", WriteConcern: true, Written: []string{"documents"}, Sequences: []string{"documents"}, Run: insert}}
}

func insert(op *Op) (bson.Doc, error) {
	a := op.Args
	ns := a.Collection(op.DB)
	docs, given := op.Sequence("documents")
	ordered := op.ordered()
	call := op.change()
	call.Bypass = a.SafeBool("bypassDocumentValidation", false)
	if !a.everyday {
		call.KeepTimestamps = a.SafeBool("bypassEmptyTsReplacement", false)
		call.Expected = a.collectionUUID(ns)
		a.noEncryption()
		a.Ignore("maxTimeMS", "isTimeseriesNamespace")
	}
	if !given {
		a.Required("documents")
	}
	if err := a.Done(); err != nil {
		return nil, err
	}
	if err := op.checkBatch(len(docs)); err != nil {
		return nil, err
	}
	if err := op.checkSystemWrite(ns, systemWrite); err != nil {
		return nil, err
	}
	if err := op.insertable(ns); err != nil {
		return nil, err
	}
	n, refused, err := op.insertInto(ns, docs, ordered, call)
	op.counts.inserts.Add(tried(len(docs), n, refused, ordered))
	op.Running.Stats.Inserted.Store(int64(n))
	op.examinedAlso(call)
	if err != nil {
		return nil, err
	}
	b := op.build()
	op.writeReply(b, int64(n), refused)
	return b.Doc(), nil
}

// insertable refuses collections that nobody inserts into. Into the buckets of a time series a dump is restored.
func (op *Op) insertable(ns namespace.NS) error {
	if op.Query.Store.Catalog().BehindBuckets(ns) != nil {
		return nil
	}
	return writable(ns)
}

// insertInto inserts documents, unless writes are blocked.
func (op *Op) insertInto(ns namespace.NS, docs []bson.Doc, ordered bool, call *query.Call) (int, []query.WriteError, error) {
	if err := op.checkBlocked(ns.DB); err != nil {
		return 0, refusedInserts(err, len(docs), ordered), nil
	}
	return op.Query.Insert(op.Ctx, ns, docs, ordered, call)
}

// tried is how many of documents were inserted or refused: with ordered none behind the first that is refused.
func tried(documents, inserted int, refused []query.WriteError, ordered bool) int64 {
	if ordered && len(refused) > 0 {
		return int64(inserted + len(refused))
	}
	return int64(documents)
}
