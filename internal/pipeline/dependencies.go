package pipeline

import (
	"slices"

	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/match"
)

// Dependencies are what a pipeline reads of the documents it is given.
type Dependencies struct {
	// Fields are the paths read, sorted, without repetition; useless when Whole.
	Fields []string
	// Whole says that whole documents are read.
	Whole bool
	// Meta are the kinds of metadata that are read.
	Meta []string
	// random says that a random number is drawn.
	random bool
}

// Dependencies is what p needs of its source.
func (p *Pipeline) Dependencies() Dependencies {
	var d Dependencies
	more := true
	for _, s := range p.Stages {
		if more {
			more = s.needs(&d)
		} else { // no more fields are read, but metadata goes through
			behind := Dependencies{}
			s.needs(&behind)
			d.Meta = append(d.Meta, behind.Meta...)
		}
		if makesDocuments(s) {
			break
		}
	}
	d.Whole = d.Whole || more
	slices.Sort(d.Fields)
	d.Fields = slices.Compact(d.Fields)
	slices.Sort(d.Meta)
	d.Meta = slices.Compact(d.Meta)
	return d
}

// makesDocuments says whether what s gives are documents of its own, of which nothing is known beside their fields.
func makesDocuments(s Stage) bool {
	switch s := s.(type) {
	case *Group, *BucketAuto, *Count, *Facet, *Documents, *Emit, *Merge, *Out, *RankFusion, *ScoreFusion, *Server, *ChangeStream, *Expiring:
		return true
	case *Search:
		return s.Meta()
	}
	return false
}

func (d *Dependencies) exprs(es ...expr.Expr) {
	of := expr.DependenciesOf(es...)
	d.Fields = append(d.Fields, of.Fields...)
	d.Meta = append(d.Meta, of.Meta...)
	d.Whole, d.random = d.Whole || of.Whole, d.random || of.Random
}

func (d *Dependencies) filter(f *match.Filter) {
	of := f.Dependencies()
	d.Fields = append(d.Fields, of.Fields...)
	d.Whole, d.random = d.Whole || of.Whole, d.random || of.Random
}

// draws takes over of expressions that read no document of the pipeline whether they draw random numbers.
func (d *Dependencies) draws(es ...expr.Expr) {
	d.random = d.random || expr.DependenciesOf(es...).Random
}

// Random says whether p draws random numbers, so that it gives other documents each time it runs.
func (p *Pipeline) Random() bool {
	return slices.ContainsFunc(p.Stages, func(s Stage) bool {
		var d Dependencies
		s.needs(&d)
		return d.random || slices.ContainsFunc(subPipelines(s), (*Pipeline).Random)
	})
}

func (d *Dependencies) paths(paths ...string) { d.Fields = append(d.Fields, paths...) }

// everything is the needs of a stage that reads whole documents.
func (d *Dependencies) everything() bool {
	d.Whole = true
	return false
}
