package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
)

// planNear plans a pipeline that begins with $geoNear.
func (e *Engine) planNear(ctx context.Context, op *exec.Op, view *storage.View, pl *pipeline.Pipeline, stage *pipeline.GeoNear, hint bson.Value, v *views, call *Call) (p plannedPipeline, err error) {
	r, ok := view.Collection(pl.NS)
	if !ok {
		return p, mongoerr.New(mongoerr.NamespaceNotFound, "$geoNear requires a geo index to run, but %s does not exist", pl.NS)
	}
	coll, path := describe(r), stage.Key
	if path == "" {
		if path, err = planner.GeoField(coll); err != nil {
			return p, err
		}
	}
	asked, err := stage.NearQuery(op.Env)
	if err != nil {
		return p, err
	}
	near, err := match.ParseGeoNear(path, asked)
	if err != nil {
		return p, err
	}
	p.lead = pl.Leading()
	p.lead.Filter, p.near, p.rest = stage.Query, stage, pl.From(1)
	plan, err := planner.Choose(coll, planner.Query{Filter: stage.Query, Interrupt: interruptOf(ctx), Near: near, Collation: op.Parser.Collation, Hint: hint,
		Told: told(pl.NS, nil, nil)})
	if err != nil {
		return p, err
	}
	p.src = &collSource{views: v, id: r.Catalog().ID, ns: pl.NS}
	p.choice, p.plan = only(plan), plan
	return p, nil
}
