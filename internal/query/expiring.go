package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// openExpiring opens a pipeline over documents in the order of their deadlines.
func (e *Engine) openExpiring(ctx context.Context, r *Running, pl *pipeline.Pipeline, stage *pipeline.Expiring, call *Call) (err error) {
	leaf, err := e.expiring(ctx, r.op, pl, stage, r.views, r.Seen, call)
	if err == nil {
		r.Iterator, err = exec.Build(r.op, pl, leaf)
	}
	if err != nil {
		r.memory.Close()
		r.views.release()
	}
	return err
}

// expiring is the leaf of such a pipeline.
func (e *Engine) expiring(ctx context.Context, op *exec.Op, pl *pipeline.Pipeline, stage *pipeline.Expiring, v *views, seen *exec.Examined, call *Call) (*exec.Expiring, error) {
	view, err := v.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := call.Expected.check(pl.NS, view.Catalog().Collection(pl.NS), view.Catalog()); err != nil {
		return nil, err
	}
	var src exec.Source
	if found, ok := view.Collection(pl.NS); ok {
		src = &collSource{views: v, id: found.Catalog().ID, ns: pl.NS}
	}
	leaf := exec.OpenExpiring(op, src, stage, seen)
	op.Leaf(leaf)
	return leaf, nil
}
