package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/recordset"
)

// maxBatchDocs is how many documents a multi-update or delete changes in one commit.
const maxBatchDocs = 1000

// writeMany changes all documents that a filter finds, in batches. A view keeps what is deleted meanwhile, in any collection,
// from being reclaimed, so each batch is found in a new one, behind the last. What the operation has changed may lie there
// again: it remembers the records that it was given, and leaves those alone. A document that somebody else changed since it
// was found is looked at again in the batch's transaction.
type writeMany struct {
	engine  *Engine
	ns      namespace.NS
	hint    bson.Value
	express planner.ExpressMode
	call    *Call
	// each changes one record, which w sees.
	each func(w *storage.Writer, rec storage.Record, details *match.Details) error
	// save notes the counts so that a batch that is run again can begin from them.
	save func() (undo func())

	lang   *language
	filter *match.Filter
	views  views
	// given are the records that were given so far, where they have numbers to tell them apart.
	numbered bool
	given    recordset.Set
	// full: there is no room to remember more of them. oneView has all that is left be found in one view.
	full, oneView bool
}

// run says whether any document was found. parse makes the filter once the collection is known.
func (m *writeMany) run(ctx context.Context, parse func(*language) (*match.Filter, error)) (found bool, err error) {
	m.views = *m.engine.views(m.call)
	defer m.views.release()
	view, err := m.views.open(ctx)
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
	if coll.IsView() {
		return false, notOnView(m.ns)
	}
	m.numbered = !coll.IsClustered() && !coll.IsTimeSeries()
	m.oneView = !m.numbered
	found, err = m.walk(ctx, coll.ID)
	if m.full && err == nil {
		m.views.renew()
		m.oneView = true
		_, err = m.walk(ctx, coll.ID)
	}
	return found, err
}

// walk changes what it finds, and says whether that was any.
func (m *writeMany) walk(ctx context.Context, id uint32) (found bool, err error) {
	r, err := m.reader(ctx, id)
	if r == nil || err != nil {
		return false, err
	}
	choice, err := m.engine.choose(r, planner.Query{Filter: m.filter, Interrupt: m.lang.interrupted, Collation: m.lang.collation, Hint: m.hint, Express: m.express}, nil, nil)
	if err != nil {
		return false, err
	}
	records, err := choice.open(ctx, m.engine, m.call, exec.Opening{Source: &collSource{views: &m.views, id: id, ns: m.ns}, Env: m.lang.env, Seen: &m.call.Seen, Repeats: true})
	if err != nil {
		return false, err
	}
	defer records.Close()
	m.call.Executing = true
	for {
		batch, more, err := m.nextBatch(ctx, records)
		if err != nil || len(batch) == 0 {
			return found, err
		}
		found = true
		if err := m.write(ctx, batch); err != nil || !more {
			return found, err
		}
		if m.oneView {
			continue
		}
		records.Park()
		m.views.renew()
		if r, err := m.reader(ctx, id); r == nil || err != nil {
			return found, err
		}
	}
}

// reader is the collection as it is now, nil when it was dropped, and its documents with it.
func (m *writeMany) reader(ctx context.Context, id uint32) (*storage.Reader, error) {
	view, err := m.views.open(ctx)
	if err != nil {
		return nil, err
	}
	r, _ := view.CollectionByID(id)
	return r, nil
}

// nextBatch finds records that were not given yet. more says that others may follow.
func (m *writeMany) nextBatch(ctx context.Context, records *exec.Records) (batch []storage.Record, more bool, err error) {
	for size := 0; len(batch) < maxBatchDocs && size < maxBatchBytes/4; {
		rec, ok, err := records.NextRecord(ctx)
		if err != nil || !ok {
			return batch, false, err
		}
		if m.numbered {
			if m.full = m.full || m.given.Full(); m.full && !m.oneView {
				return batch, false, nil
			}
			if !m.given.Add(rec.ID) {
				continue
			}
		}
		batch = append(batch, rec.Clone())
		size += len(rec.Doc)
	}
	return batch, true, nil
}

func (m *writeMany) write(ctx context.Context, batch []storage.Record) error {
	undo := m.save()
	var failure error
	err := m.engine.write(ctx, m.ns, false, m.call, func(w *storage.Writer) error {
		undo()
		failure = nil
		if err := m.call.Expected.check(m.ns, w.Catalog(), m.engine.catalog(m.call)); err != nil {
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
