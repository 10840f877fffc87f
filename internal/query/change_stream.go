package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/storage"
)

// watches says whether there is an oplog, or will be: a standalone has none.
func (e *Engine) watches() bool { return e.Store.Options().Oplog != nil }

// checkWatched refuses to watch what is no collection. One that is not there may be watched.
func (e *Engine) checkWatched(ns namespace.NS, call *Call) error {
	coll := e.lookup(ns, call)
	switch {
	case coll == nil || ns.Coll == "":
		return nil
	case coll.IsView():
		return notOnView(ns)
	case coll.IsTimeSeries():
		return mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a timeseries collection", ns)
	}
	return nil
}

// openChanges opens a change stream: from now on nothing is missed.
func (e *Engine) openChanges(r *Running, pl *pipeline.Pipeline, stage *pipeline.ChangeStream) (err error) {
	r.changes = exec.OpenChanges(r.op, changeSource{r.views}, &stage.Watch, e.Store.LogWatches().Watch(stage.Watch.NS), &e.Streams, r.Seen)
	r.op.Leaf(r.changes)
	if r.Iterator, err = exec.Build(r.op, pl, r.changes); err != nil {
		r.memory.Close()
		return err
	}
	r.Iterator = exec.WithTokens(r.changes, r.Iterator)
	return nil
}

// changeSource has a change stream read in the views of its operation.
type changeSource struct{ views *views }

// View implements exec.ChangeSource.
func (s changeSource) View(ctx context.Context) (*storage.View, error) { return s.views.open(ctx) }

// Watches says whether it is a change stream.
func (r *Running) Watches() bool { return r.changes != nil }

// ResumeToken implements cursor.Resumable.
func (r *Running) ResumeToken() bson.Doc {
	if r.changes == nil {
		return nil
	}
	return r.changes.Token()
}
