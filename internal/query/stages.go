package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// stageCatalog is how the stages of one operation reach other collections and the server. It implements exec.Catalog.
type stageCatalog struct {
	engine *Engine
	call   *Call
	lang   *language
	views  *views
}

// Open implements exec.Catalog.
func (c *stageCatalog) Open(ctx context.Context, op *exec.Op, ns namespace.NS, p *pipeline.Pipeline) (exec.Iterator, error) {
	if ns.Coll == "" {
		return exec.Build(op, p, nil)
	}
	base, front, err := c.view(op, ns)
	if err != nil {
		return nil, err
	}
	if (&pipeline.Pipeline{Stages: front}).Random() {
		op.Draws()
	}
	whole, err := p.Behind(front)
	if err != nil {
		return nil, err
	}
	whole.NS = base
	return c.engine.openPipeline(ctx, op, whole, bson.Missing, c.views, c.call)
}

// view follows ns down to its collection and parses what stands on the way.
func (c *stageCatalog) view(op *exec.Op, ns namespace.NS) (base namespace.NS, front []pipeline.Stage, err error) {
	for depth := 0; ; depth++ {
		coll := c.engine.lookup(ns, c.call)
		if coll == nil || !coll.IsView() {
			return ns, front, nil
		}
		if depth == maxViewDepth {
			return ns, nil, mongoerr.New(mongoerr.ViewDepthLimitExceeded, "View depth limit exceeded; maximum depth is %d", maxViewDepth)
		}
		if own, err := viewCollation(coll); err != nil {
			return ns, nil, err
		} else if !collation.Equal(own, op.Parser.Collation) {
			return ns, nil, mongoerr.New(mongoerr.OptionNotSupportedOnView, "Cannot override a view's default collation: %s", ns)
		}
		under := below(coll)
		pl, err := op.Parser.Parse(coll.Options.Pipeline.ArrayValue(), pipeline.Options{NS: under})
		if err != nil {
			return ns, nil, err
		}
		front = append(pl.Stages[:len(pl.Stages):len(pl.Stages)], front...)
		if ns = under; ns.Coll == "" || asksOfItself(coll.Options.Pipeline.ArrayValue(), "$collStats") {
			return ns, front, nil
		}
	}
}

// Indexed implements exec.Catalog.
func (c *stageCatalog) Indexed(_ context.Context, op *exec.Op, ns namespace.NS, path string) bool {
	coll := c.engine.lookup(ns, c.call)
	if coll == nil || coll.IsView() {
		return false
	}
	if path == "_id" && !coll.IsTimeSeries() {
		return true
	}
	for _, d := range coll.Indexes {
		if d.Built() && (d.Kind == index.Ordered || d.Kind == index.Hashed) && !d.Hidden && d.Fields[0].Path == path && !d.Sparse && d.PartialFilter == nil {
			return true
		}
	}
	return false
}

// Server implements exec.Catalog.
func (c *stageCatalog) Server(ctx context.Context, _ *exec.Op, ns namespace.NS, stage *pipeline.Server) (exec.Iterator, error) {
	server := c.engine.Server
	if c.call.Server != nil {
		server = c.call.Server
	}
	if server == nil {
		return nil, mongoerr.New(mongoerr.CommandNotSupported, "%s is not supported", stage.Name())
	}
	docs, err := server.Documents(ctx, ns, stage.Name(), stage.Spec())
	return &listed{docs}, err
}

// listed gives documents that are all there.
type listed struct{ docs []bson.Doc }

func (l *listed) Next(context.Context) (bson.Doc, error) {
	if len(l.docs) == 0 {
		return nil, nil
	}
	d := l.docs[0]
	l.docs = l.docs[1:]
	return d, nil
}

func (l *listed) Close() error { return nil }
