package query

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// maxViewPipelineBytes bounds the pipelines of a view and of the views below it, together.
const maxViewPipelineBytes = 16 * 1000 * 1000

// Indexes reads the specifications of indexes.
func (e *Engine) Indexes() *index.Parser { return index.NewParser(e.filters) }

// Filter parses a filter for documents that stand in no collection, such as the rows of listCollections.
func (e *Engine) Filter(ctx context.Context, doc bson.Doc, call *Call) (func(bson.Doc) (bool, error), error) {
	lang, err := e.language(ctx, call, nil)
	if err != nil {
		return nil, err
	}
	if doc == nil {
		doc = bson.EmptyDoc
	}
	f, err := e.filters.Parse(doc, match.Options{Exprs: lang.exprs, Scope: lang.scope, Allow: match.AllowMatch})
	if err != nil {
		return nil, err
	}
	return func(d bson.Doc) (bool, error) { return f.Match(lang.env, d) }, nil
}

// CheckValidator says what is wrong with a collection's validator, if anything. It may ask for encrypted values where strict says
// that no document gets around it.
func (e *Engine) CheckValidator(ctx context.Context, validator bson.Doc, c *collation.Collation, strict bool, call *Call) error {
	own := Call{Now: call.Now, ClusterTime: call.ClusterTime, Collation: c, Collated: true, Validator: true}
	lang, err := e.language(ctx, &own, nil)
	if err != nil {
		return err
	}
	allow := match.AllowMatch
	if !strict {
		allow &^= match.AllowEncrypt
	}
	_, err = e.filters.Parse(validator, match.Options{Collation: c, Exprs: lang.exprs, Scope: lang.scope, Allow: allow})
	return err
}

// ViewDefinition is what a view is made of.
type ViewDefinition struct {
	NS namespace.NS
	// On is the collection or view that it looks at, in the same database.
	On string
	// Pipeline is an array of stages.
	Pipeline  bson.Value
	Collation *collation.Collation
}

// CheckView says what is wrong with a view that is to be made or changed: its pipeline, a cycle of views, more of them on
// top of one another than is allowed, or another collation than the views it reads have.
func (e *Engine) CheckView(ctx context.Context, v ViewDefinition, call *Call) error {
	own := Call{Now: call.Now, Collation: v.Collation, Collated: true, Definition: true}
	lang, err := e.language(ctx, &own, nil)
	if err != nil {
		return err
	}
	on := namespace.NS{DB: v.NS.DB, Coll: v.On}
	pl, err := e.pipelineParser(lang).Parse(v.Pipeline, pipeline.Options{NS: on, View: true, Watches: e.watches()})
	if err != nil {
		return err
	}
	g := &viewGraph{engine: e, lang: lang, catalog: e.Store.Catalog(), new: v, uses: map[namespace.NS][]namespace.NS{}}
	g.uses[v.NS] = append([]namespace.NS{on}, pl.Namespaces()...)
	return g.check()
}

// viewGraph is which views read which, with one that is not in the catalogue yet.
type viewGraph struct {
	engine  *Engine
	lang    *language
	catalog *catalog.Catalog
	new     ViewDefinition
	uses    map[namespace.NS][]namespace.NS
}

// reads is what a view reads; nil for what is no view.
func (g *viewGraph) reads(ns namespace.NS) []namespace.NS {
	if uses, known := g.uses[ns]; known {
		return uses
	}
	var uses []namespace.NS
	if view := g.catalog.Collection(ns); view != nil && view.IsView() {
		on := namespace.NS{DB: ns.DB, Coll: view.Options.ViewOn}
		uses = []namespace.NS{on}
		stages := bson.EmptyArr
		if view.Options.Pipeline != nil {
			stages = view.Options.Pipeline.ArrayValue()
		}
		// A pipeline that is not understood any more fails when the view is read; here it just leads nowhere.
		if pl, err := g.engine.pipelineParser(g.lang).Parse(stages, pipeline.Options{NS: on, View: true}); err == nil {
			uses = append(uses, pl.Namespaces()...)
		}
	}
	g.uses[ns] = uses
	return uses
}

func (g *viewGraph) check() error {
	below, err := g.height(g.new.NS, nil, map[namespace.NS]int{})
	if err != nil {
		return err
	}
	if err := g.checkBelow(); err != nil {
		return err
	}
	if err := g.checkAbove(); err != nil {
		return err
	}
	if below+g.above(g.new.NS, 0, map[namespace.NS]int{}) > maxViewDepth {
		return mongoerr.New(mongoerr.ViewDepthLimitExceeded, "View depth limit exceeded; maximum depth is %d", maxViewDepth)
	}
	return nil
}

// height is how many views stand in the longest chain from ns down; path is the chain that leads to ns.
func (g *viewGraph) height(ns namespace.NS, path []namespace.NS, known map[namespace.NS]int) (int, error) {
	for _, p := range path {
		if p == ns {
			return 0, mongoerr.New(mongoerr.GraphContainsCycle, "View cycle detected: %s", cycle(append(path, ns)))
		}
	}
	if h, ok := known[ns]; ok {
		return h, nil
	}
	uses := g.reads(ns)
	if len(uses) == 0 {
		return 0, nil
	}
	if len(path) > maxViewDepth {
		return 0, mongoerr.New(mongoerr.ViewDepthLimitExceeded, "View depth limit exceeded; maximum depth is %d", maxViewDepth)
	}
	most := 0
	for _, u := range uses {
		h, err := g.height(u, append(path[:len(path):len(path)], ns), known)
		if err != nil {
			return 0, err
		}
		most = max(most, h)
	}
	known[ns] = most + 1
	return most + 1, nil
}

func cycle(path []namespace.NS) (text string) {
	for i, ns := range path {
		if i > 0 {
			text += " => "
		}
		text += ns.String()
	}
	return text
}

// above is how many views stand on ns, one on the other.
func (g *viewGraph) above(ns namespace.NS, depth int, known map[namespace.NS]int) int {
	if depth > maxViewDepth {
		return depth
	}
	if n, ok := known[ns]; ok {
		return n
	}
	most := 0
	for _, c := range g.catalog.Collections(ns.DB) {
		if !c.IsView() || c.NS == g.new.NS {
			continue
		}
		for _, u := range g.reads(c.NS) {
			if u == ns {
				most = max(most, 1+g.above(c.NS, depth+1, known))
			}
		}
	}
	known[ns] = most
	return most
}

// stageBytes is the size of a pipeline's stages.
func stageBytes(stages bson.Doc) (n int) {
	for it := stages.Iter(); it.Next(); {
		n += len(it.Value().Data)
	}
	return n
}

// checkBelow looks at the views that the new one reads: collations must be the same, and pipelines not too large together.
func (g *viewGraph) checkBelow() error {
	size := stageBytes(g.new.Pipeline.Doc())
	for _, ns := range g.reads(g.new.NS) {
		view := g.catalog.Collection(ns)
		if view == nil || !view.IsView() {
			continue
		}
		own, err := viewCollation(view)
		if err != nil {
			return err
		}
		if !collation.Equal(own, g.new.Collation) {
			return mongoerr.New(mongoerr.OptionNotSupportedOnView, "View %s has a collation that does not match the collation of view %s", g.new.NS, ns)
		}
	}
	for ns, depth := (namespace.NS{DB: g.new.NS.DB, Coll: g.new.On}), 0; depth < maxViewDepth; depth++ {
		view := g.catalog.Collection(ns)
		if view == nil || !view.IsView() {
			break
		}
		size += stageBytes(view.Options.Pipeline)
		ns.Coll = view.Options.ViewOn
	}
	if size > maxViewPipelineBytes {
		return mongoerr.New(mongoerr.ViewPipelineMaxSizeExceeded, "View pipeline is too large and exceeds the maximum size of %d bytes", maxViewPipelineBytes)
	}
	return nil
}

// checkAbove looks at the views that read the new one already: it may be made anew with their collation alone.
func (g *viewGraph) checkAbove() error {
	for _, view := range g.catalog.Collections(g.new.NS.DB) {
		if !view.IsView() || view.NS == g.new.NS || !slices.Contains(g.reads(view.NS), g.new.NS) {
			continue
		}
		own, err := viewCollation(view)
		if err != nil {
			return err
		}
		if !collation.Equal(own, g.new.Collation) {
			return mongoerr.New(mongoerr.OptionNotSupportedOnView, "View %s has a collation that does not match the collation of view %s", g.new.NS, view.NS)
		}
	}
	return nil
}
