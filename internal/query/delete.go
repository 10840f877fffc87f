package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/sortpattern"
	"github.com/ebbdb/ebb/internal/storage"
)

// Delete is one statement of a delete.
type Delete struct {
	NS     namespace.NS
	Filter bson.Doc
	Sort   bson.Doc
	Hint   bson.Value
	Multi  bool

	scored, projected bool // see Update
}

func (d *Delete) express() planner.ExpressMode { return expressWrite(!d.projected) }

// Delete removes the first matching document, which it also returns, or with Multi all of them.
func (e *Engine) Delete(ctx context.Context, d Delete, call *Call) (n int64, gone bson.Doc, err error) {
	if _, done, err := call.Retry.before(d.NS, call.Statement); err != nil {
		return 0, nil, err
	} else if done {
		return 1, nil, nil
	}
	if d.Multi && call.Retry != nil {
		return 0, nil, mongoerr.New(mongoerr.InvalidOptions, "Cannot use (or request) retryable writes with limit=0")
	}
	if d.Multi {
		n, err = e.deleteMany(ctx, d, call)
		return n, nil, err
	}
	err = e.writeOne(ctx, d.NS, false, call, func(w *storage.Writer) error {
		n, gone = 0, nil
		lang, err := e.language(ctx, call, w.Catalog())
		if err != nil {
			return err
		}
		rec, _, found, err := e.firstToDelete(ctx, w, d, lang, call)
		if err != nil || !found {
			return err
		}
		if err := w.Delete(rec); err != nil {
			return err
		}
		n, gone = 1, rec.Doc
		return nil
	})
	if missingCollection(err) {
		lang, err := e.language(ctx, call, nil)
		if err == nil {
			_, err = lang.filter(e, d.Filter)
		}
		return 0, nil, err
	}
	if err != nil {
		return 0, nil, err
	}
	call.stage("DELETE", n)
	return n, gone, nil
}

func (e *Engine) firstToDelete(ctx context.Context, w *storage.Writer, d Delete, lang *language, call *Call) (storage.Record, *match.Details, bool, error) {
	if _, plain := plainID(d.Filter); plain && d.Sort.IsEmpty() {
		return e.first(ctx, w, search{condition: d.Filter, hint: d.Hint, scored: d.scored, express: d.express()}, lang, call)
	}
	filter, order, err := e.parseDelete(lang, d)
	if err != nil {
		return storage.Record{}, nil, false, err
	}
	return e.first(ctx, w, search{d.Filter, filter, order, d.Hint, d.scored, d.express()}, lang, call)
}

func (e *Engine) parseDelete(lang *language, d Delete) (filter *match.Filter, order *sortpattern.Pattern, err error) {
	if filter, err = lang.filter(e, d.Filter); err != nil {
		return nil, nil, err
	}
	if !d.Sort.IsEmpty() && (lang.collation != nil || !asksForID(d.Filter)) {
		order, err = sortpattern.Parse(d.Sort)
	}
	return filter, order, err
}

func (e *Engine) deleteMany(ctx context.Context, d Delete, call *Call) (n int64, err error) {
	many := &writeMany{engine: e, ns: d.NS, hint: d.Hint, express: d.express(), call: call,
		each: func(w *storage.Writer, rec storage.Record, _ *match.Details) error {
			if err := w.Delete(rec); err != nil {
				return err
			}
			n++
			return nil
		},
		save: func() (undo func()) { was := n; return func() { n = was } }}
	_, err = many.run(ctx, func(lang *language) (*match.Filter, error) { return lang.filter(e, d.Filter) })
	call.stage("DELETE", n)
	return n, err
}
