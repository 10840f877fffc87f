package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// graphLookupStage is $graphLookup: for each document a breadth-first search, one query a level.
type graphLookupStage struct {
	op    *Op
	stage *pipeline.GraphLookup
	in    Iterator
	base  *pipeline.Pipeline
	sub   *Op

	array arrayOf
	key   []byte
	buf   []byte
}

func newGraphLookup(op *Op, s *pipeline.GraphLookup, in Iterator) Iterator {
	g := &graphLookupStage{op: op, stage: s, in: in, base: &pipeline.Pipeline{NS: s.From}}
	if s.Restrict != nil {
		g.base = g.base.Where(s.Restrict)
	}
	return g
}

func (s *graphLookupStage) Next(ctx context.Context) (bson.Doc, error) {
	d, err := s.in.Next(ctx)
	if d == nil {
		return nil, err
	}
	if s.sub == nil {
		s.sub = s.op.Sub()
	}
	env := s.op.Env
	env.Reset()
	env.Root = d
	start, err := s.stage.Start.Eval(env)
	if err != nil {
		return nil, err
	}
	search := graphSearch{stage: s, asked: map[string]bool{}, found: map[string]bool{}, held: holding{op: s.op}}
	defer search.held.empty()
	if start.Type == bson.TypeArray {
		for it := start.Doc().Iter(); it.Next(); {
			search.ask(it.Value())
		}
	} else {
		search.ask(start)
	}
	s.array.reset()
	if err := search.run(ctx); err != nil {
		return nil, err
	}
	out := setPath(s.buf[:0], d, s.stage.As, s.array.value())
	s.buf, s.array.buf, s.key = reusable(out), reusable(s.array.buf), reusable(s.key)
	return out, s.op.carry(ctx, len(out))
}

func (s *graphLookupStage) Close() error {
	if s.sub != nil {
		s.op.Drop(s.sub)
	}
	return s.in.Close()
}

// graphSearch is the search of one document.
type graphSearch struct {
	stage    *graphLookupStage
	frontier []bson.Value
	asked    map[string]bool // values that were in a frontier
	found    map[string]bool // ids of documents
	held     holding
	grown    int64 // not counted yet
}

func (g *graphSearch) ask(v bson.Value) {
	if v.IsMissing() {
		return
	}
	s := g.stage
	s.key = bson.AppendCanonical(s.key[:0], v, s.op.keys())
	if g.asked[string(s.key)] {
		return
	}
	g.asked[string(s.key)] = true
	g.frontier = append(g.frontier, v.Clone())
	g.grown += int64(2*len(s.key)) + 128
}

func (g *graphSearch) run(ctx context.Context) error {
	for depth := int64(0); len(g.frontier) > 0; depth++ {
		if g.stage.stage.MaxDepth >= 0 && depth > g.stage.stage.MaxDepth {
			return nil
		}
		values := g.frontier
		g.frontier = nil
		if err := g.level(ctx, values, depth); err != nil {
			return err
		}
	}
	return nil
}

// level finds the documents that connect to values.
func (g *graphSearch) level(ctx context.Context, values []bson.Value, depth int64) error {
	s := g.stage
	f, err := s.op.equalsOne(s.stage.To.String(), values)
	if err != nil {
		return err
	}
	it, err := s.op.Catalog.Open(ctx, s.sub, s.stage.From, s.base.Where(f))
	if err != nil {
		return err
	}
	defer s.sub.end(it)
	return Each(ctx, it, func(d bson.Doc) error { return g.take(ctx, d, depth) })
}

func (g *graphSearch) take(ctx context.Context, d bson.Doc, depth int64) error {
	s := g.stage
	s.key = bson.AppendCanonical(s.key[:0], d.Lookup("_id"), nil)
	if g.found[string(s.key)] {
		return nil
	}
	g.found[string(s.key)] = true
	g.grown += int64(len(s.key)+len(d)) + 64
	err := g.held.hold(ctx, g.grown, func() error {
		return mongoerr.New(40099, "$graphLookup reached maximum memory consumption")
	})
	if err != nil {
		return err
	}
	g.grown = 0
	s.stage.Connect.Walk(d, fieldpath.Elements, func(v bson.Value, _ int) bool {
		g.ask(v)
		return false
	})
	if s.stage.Depth.Len() > 0 {
		s.buf = setPath(s.buf[:0], d, s.stage.Depth, bson.Int64(depth))
		d = s.buf
	}
	s.array.add(d.Value())
	return nil
}
