package match

import (
	"slices"

	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/fieldpath"
)

// Dependencies are what a filter reads of a document.
type Dependencies struct {
	// Fields are the paths, sorted, each once; useless when Whole.
	Fields []string
	// Whole says that the whole document is read.
	Whole bool
	// Volatile says that the filter may say otherwise of the same document next time.
	Volatile bool
	// Random says that it may because it draws a number.
	Random bool
}

// Dependencies are what f reads.
func (f *Filter) Dependencies() Dependencies {
	var d Dependencies
	d.add(f.Root)
	slices.Sort(d.Fields)
	d.Fields = slices.Compact(d.Fields)
	return d
}

func (d *Dependencies) add(n Node) {
	if p, ok := PathOf(n); ok {
		d.Fields = append(d.Fields, p.String())
		return // what is below starts from the path
	}
	switch n := n.(type) {
	case *Expr:
		e := expr.DependenciesOf(n.Expr)
		d.Fields = append(d.Fields, e.Fields...)
		d.Whole = d.Whole || e.Whole
		d.Volatile = d.Volatile || e.Volatile
		d.Random = d.Random || e.Random
	case *SampleRate:
		d.Volatile, d.Random = true, true
	case *Where, *Text, *JSONSchema:
		d.Whole = true
	}
	for _, child := range Children(n) {
		d.add(child)
	}
}

// PathOf is the path that a node looks along, when it is of a kind that has one.
func PathOf(n Node) (fieldpath.Path, bool) {
	switch n := n.(type) {
	case *Compare:
		return n.Path, true
	case *In:
		return n.Path, true
	case *Exists:
		return n.Path, true
	case *Type:
		return n.Path, true
	case *Size:
		return n.Path, true
	case *ElemMatchObject:
		return n.Path, true
	case *ElemMatchValue:
		return n.Path, true
	case *Mod:
		return n.Path, true
	case *Regex:
		return n.Path, true
	case *Bits:
		return n.Path, true
	case *GeoWithin:
		return n.Path, true
	case *GeoIntersects:
		return n.Path, true
	case *GeoNear:
		return n.Path, true
	}
	return fieldpath.Path{}, false
}
