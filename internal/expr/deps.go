package expr

import (
	"slices"

	"github.com/ebbdb/ebb/internal/fieldpath"
)

// Dependencies are what an expression needs of a document.
type Dependencies struct {
	// Fields are the paths that are read, sorted, without repetition; useless when Whole.
	Fields []string
	// Whole says that the whole document is read.
	Whole bool
	// Meta are the kinds of metadata that $meta reads.
	Meta []string
	// Volatile says that the value differs from time to time.
	Volatile bool
	// Random says that a random number is drawn.
	Random bool
	// Slots are the variables read, as far as the expression does not set them itself.
	Slots []Slot
}

// DependenciesOf is what the expressions need together.
func DependenciesOf(es ...Expr) Dependencies {
	var d Dependencies
	for _, e := range es {
		d.add(e)
	}
	slices.Sort(d.Fields)
	d.Fields = slices.Compact(d.Fields)
	slices.Sort(d.Slots)
	d.Slots = slices.Compact(d.Slots)
	return d
}

func (d *Dependencies) add(e Expr) {
	switch e := e.(type) {
	case *field:
		d.Fields = append(d.Fields, e.path.String())
	case *systemRead:
		d.Whole = d.Whole || e.kind == varRoot
	case *variable:
		d.Slots = append(d.Slots, e.slot)
	case *call:
		d.Volatile = d.Volatile || e.op.Volatile
		d.Random = d.Random || e.op.Random
	case *meta:
		d.Meta = append(d.Meta, e.kind)
	}
	for _, c := range e.children() {
		d.add(c)
	}
}

// FieldOf is the path that e reads, when that is all it does.
func FieldOf(e Expr) (path fieldpath.Path, ok bool) {
	f, ok := e.(*field)
	if !ok {
		return fieldpath.Path{}, false
	}
	return f.path, true
}

// ObjectOf are the fields of the document that e makes, when it makes one of parts.
func ObjectOf(e Expr) (names []string, parts []Expr, ok bool) {
	o, ok := e.(*object)
	if !ok {
		return nil, nil, false
	}
	return o.keys, o.of, true
}
