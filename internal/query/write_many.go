package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
)

// maxBatchDocs is how many documents a multi-update or delete changes in one commit.
const maxBatchDocs = 1000

// writeMany changes all documents that a filter finds. It walks one view, so that what it changes never comes along again,
// and writes in batches. A document that somebody else changed since is looked at again in the batch's transaction.
type writeMany struct {
	engine *Engine
	ns     namespace.NS
	hint   bson.Value
	call   *Call
	// each changes one record, which w sees.
	each func(w *storage.Writer, rec storage.Record, details *match.Details) error
	// save notes the counts so that a batch that is run again can begin from them.
	save func() (undo func())

	lang   *language
	filter *match.Filter
}

// run says whether any document was found. parse makes the filter once the collection is known.
func (m *writeMany) run(ctx context.Context, parse func(*language) (*match.Filter, error)) (found bool, err error) {
	v := &views{store: m.engine.Store, now: m.call.Now}
	defer v.release()
	view, err := v.open(ctx)
	if err != nil {
		return false, err
	}
	coll := view.Catalog().Collection(m.ns)
	if err := m.call.Expected.check(m.ns, coll, view.Catalog()); err != nil {
		return false, err
	}
	if m.lang, err = m.engine.language(ctx, m.call, coll); err != nil {
		return false, err
	}
	if m.filter, err = parse(m.lang); err != nil || coll == nil {
		return false, err
	}
	r, ok := view.CollectionByID(coll.ID)
	if !ok {
		return false, notOnView(m.ns)
	}
	choice, err := m.engine.choose(r, planner.Query{Filter: m.filter, Collation: m.lang.collation, Hint: m.hint}, nil, nil)
	if err != nil {
		return false, err
	}
	records, err := choice.open(ctx, m.engine, m.call, exec.Opening{Source: fixed{r}, Env: m.lang.env, Seen: &m.call.Seen})
	if err != nil {
		return false, err
	}
	defer records.Close()
	return m.walk(ctx, records)
}

func (m *writeMany) walk(ctx context.Context, records *exec.Records) (found bool, err error) {
	for {
		batch, err := nextBatch(ctx, records)
		if err != nil {
			return found, err
		}
		if len(batch) == 0 {
			return found, nil
		}
		found = true
		if err := m.write(ctx, batch); err != nil {
			return found, err
		}
	}
}

func nextBatch(ctx context.Context, records *exec.Records) (batch []storage.Record, err error) {
	size := 0
	for len(batch) < maxBatchDocs && size < maxBatchBytes/4 {
		rec, ok, err := records.NextRecord(ctx)
		if err != nil || !ok {
			return batch, err
		}
		batch = append(batch, rec.Clone())
		size += len(rec.Doc)
	}
	return batch, nil
}

func (m *writeMany) write(ctx context.Context, batch []storage.Record) error {
	undo := m.save()
	var failure error
	err := m.engine.Store.Write(ctx, m.ns, storage.WriteOptions{Durability: m.call.Durability, Now: m.call.Now, Committed: m.call.Committed, Keys: &m.call.Keys}, func(w *storage.Writer) error {
		undo()
		failure = nil
		if err := m.call.Expected.check(m.ns, w.Catalog(), m.engine.Store.Catalog()); err != nil {
			return err
		}
		for _, old := range batch {
			if err := m.one(w, old); err != nil {
				if !isUserError(err) {
					return err
				}
				failure = err
				return nil // what was done before it stays
			}
		}
		return nil
	})
	if missingCollection(err) {
		undo()
		return nil // it was dropped meanwhile, and its documents with it
	}
	if err != nil {
		undo()
		return err
	}
	return failure
}

func (m *writeMany) one(w *storage.Writer, old storage.Record) error {
	rec, ok, err := w.Again(old)
	if err != nil || !ok {
		return err
	}
	details := &match.Details{Position: -1}
	if ok, err = m.filter.MatchDetails(m.lang.env, rec.Doc, details); err != nil || !ok {
		return err
	}
	if !bson.Identical(rec.Doc.Lookup("_id"), old.Doc.Lookup("_id")) {
		return nil // another document stands there by now
	}
	return m.each(w, rec, details)
}
