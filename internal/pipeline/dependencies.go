package pipeline

import (
	"slices"

	"github.com/ebbdb/ebb/internal/expr"
)

// Dependencies are what a pipeline reads of the documents it is given.
type Dependencies struct {
	// Fields are the paths read, sorted, without repetition; useless when Whole.
	Fields []string
	// Whole says that whole documents are read.
	Whole bool
	// Meta are the kinds of metadata that are read.
	Meta []string
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
	switch s.(type) {
	case *Group, *BucketAuto, *Count, *Facet, *Documents, *Emit, *Merge, *Out, *RankFusion, *ScoreFusion, *Search, *Server, *ChangeStream, *Expiring:
		return true
	}
	return false
}

func (d *Dependencies) exprs(es ...expr.Expr) {
	of := expr.DependenciesOf(es...)
	d.Fields = append(d.Fields, of.Fields...)
	d.Meta = append(d.Meta, of.Meta...)
	d.Whole = d.Whole || of.Whole
}

func (d *Dependencies) paths(paths ...string) { d.Fields = append(d.Fields, paths...) }

// everything is the needs of a stage that reads whole documents.
func (d *Dependencies) everything() bool {
	d.Whole = true
	return false
}
