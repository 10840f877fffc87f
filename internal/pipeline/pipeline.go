// Package pipeline holds aggregation pipelines as data: it parses stages, checks where they stand, rewrites what is always
// better otherwise, and says what a plan may take over. It knows nothing of collections, plans or how stages run.
package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/namespace"
)

const (
	// MaxStages is how many stages a pipeline may have.
	MaxStages = 1000
	// MaxDepth is how deep pipelines may stand inside of stages.
	MaxDepth = 20
)

// Pipeline is a parsed pipeline. It is immutable, but for expressions that belong to the operation it was parsed for.
type Pipeline struct {
	Stages []Stage
	// NS is what it runs on; Coll is empty when it brings its own documents.
	NS namespace.NS
}

// Stage is one parsed stage: a pointer to one of this package's structs.
type Stage interface {
	// Name is the stage's name, "$match".
	Name() string
	// Spec is the stage's argument, as it was written or as a rewrite left it.
	Spec() bson.Value
	// needs adds what the stage reads of its input to d, and says whether the stages behind it may read more of it.
	needs(d *Dependencies) (more bool)
}

// written is the part that all stages share.
type written struct {
	name string
	spec bson.Value
}

// Name implements Stage.
func (w *written) Name() string { return w.name }

// Spec implements Stage.
func (w *written) Spec() bson.Value { return w.spec }

// Print is the pipeline as an array of stages.
func (p *Pipeline) Print() bson.Value {
	stages := make([]bson.Value, len(p.Stages))
	for i, s := range p.Stages {
		stages[i] = bson.Build().Value(s.Name(), s.Spec()).Doc().Value()
	}
	return bson.ArrayOf(stages...)
}

// First is the first stage, nil when there is none.
func (p *Pipeline) First() Stage {
	if len(p.Stages) == 0 {
		return nil
	}
	return p.Stages[0]
}

// Last is the last stage, nil when there is none.
func (p *Pipeline) Last() Stage {
	if len(p.Stages) == 0 {
		return nil
	}
	return p.Stages[len(p.Stages)-1]
}

// From is the pipeline without its first n stages.
func (p *Pipeline) From(n int) *Pipeline {
	q := *p
	q.Stages = p.Stages[n:]
	return &q
}

// Writes says whether the pipeline ends in $out or $merge.
func (p *Pipeline) Writes() bool {
	switch p.Last().(type) {
	case *Out, *Merge:
		return true
	}
	return false
}

// HasSource says whether the first stage brings the documents, so that no collection is read.
func (p *Pipeline) HasSource() bool {
	switch s := p.First().(type) {
	case *Documents, *Server, *ChangeStream, *Expiring:
		return true
	case *Search:
		return s.Meta()
	}
	return false
}

// Namespaces are the other collections that the pipeline reads, sub-pipelines included.
func (p *Pipeline) Namespaces() []namespace.NS {
	var out []namespace.NS
	for _, s := range p.Stages {
		switch s := s.(type) {
		case *Lookup:
			if s.From.Coll != "" {
				out = append(out, s.From)
			}
			if s.Pipeline != nil {
				out = append(out, s.Pipeline.Namespaces()...)
			}
		case *GraphLookup:
			out = append(out, s.From)
		case *UnionWith:
			if s.From.Coll != "" {
				out = append(out, s.From)
			}
			if s.Pipeline != nil {
				out = append(out, s.Pipeline.Namespaces()...)
			}
		case *RankFusion:
			for _, in := range s.Inputs {
				out = append(out, in.Pipeline.Namespaces()...)
			}
		case *ScoreFusion:
			for _, in := range s.Inputs {
				out = append(out, in.Pipeline.Namespaces()...)
			}
		case *Facet:
			for _, f := range s.Fields {
				out = append(out, f.Pipeline.Namespaces()...)
			}
		}
	}
	return out
}

// Where is p behind f: as if it started with another $match, or had it behind the stage that brings the documents.
func (p *Pipeline) Where(f *match.Filter) *Pipeline {
	q := *p
	at := 0
	if _, search := p.First().(*Search); search || p.HasSource() {
		at = 1
	}
	q.Stages = make([]Stage, 0, len(p.Stages)+1)
	q.Stages = append(append(q.Stages, p.Stages[:at]...), &Match{written{"$match", f.Source.Value()}, f})
	q.Stages = append(q.Stages, p.Stages[at:]...)
	q.mergeMatches()
	return &q
}
