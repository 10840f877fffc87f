package pipeline

import (
	"github.com/ebbdb/ebb/internal/accumulator"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// SetWindowFields is $setWindowFields.
type SetWindowFields struct {
	written
	// PartitionBy is nil for one partition of all.
	PartitionBy expr.Expr
	// SortBy is nil for the order in which documents come.
	SortBy *sortpattern.Pattern
	Fields []WindowField
}

// WindowField is a field of the output and what it is computed by.
type WindowField struct {
	Path fieldpath.Path
	Spec *accumulator.WindowSpec
}

func parseSetWindowFields(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(mongoerr.FailedToParse, "the $setWindowFields stage specification must be an object, found %s", arg.Type)
	}
	var partition, sort, output bson.Value
	err := readStrict("$setWindowFields", arg.Doc(), want{name: "partitionBy", to: &partition},
		want{name: "sortBy", to: &sort, types: anObject}, want{name: "output", to: &output, types: anObject, required: true})
	if err != nil {
		return nil, err
	}
	w := &SetWindowFields{written: written{"$setWindowFields", arg}}
	if !partition.IsMissing() {
		if w.PartitionBy, err = p.Exprs.Parse(partition, p.Scope); err != nil {
			return nil, err
		}
		if v, constant := expr.Constant(w.PartitionBy); constant {
			if v.Type == bson.TypeArray {
				return nil, mongoerr.New(mongoerr.TypeMismatch, "An expression used to partition cannot evaluate to value of type array")
			}
			w.PartitionBy = nil
		}
	}
	in := accumulator.WindowScope{Scope: p.Scope, Sorted: !sort.IsMissing()}
	if in.Sorted && !sort.Doc().IsEmpty() {
		if w.SortBy, err = sortpattern.Parse(sort.Doc()); err != nil {
			return nil, err
		}
		in.Sort = w.SortBy
	}
	var paths fieldpath.Disjoint
	for it := output.Doc().Iter(); it.Next(); {
		f, err := p.windowField(&paths, it.Key(), it.Value(), in)
		if err != nil {
			return nil, err
		}
		w.Fields = append(w.Fields, f)
	}
	return one(w), nil
}

func (p *parsing) windowField(before *fieldpath.Disjoint, name string, v bson.Value, in accumulator.WindowScope) (WindowField, error) {
	path, err := fieldpath.New(name)
	if err != nil {
		return WindowField{}, err
	}
	if other, met := before.Conflict(name); met {
		return WindowField{}, mongoerr.New(40176, "specification contains two conflicting paths. Cannot specify both '%s' and '%s'", other, name)
	}
	before.Add(name)
	s, err := p.Accumulators.Window(name, v, in)
	return WindowField{path, s}, err
}

func (w *SetWindowFields) needs(d *Dependencies) bool {
	if w.PartitionBy != nil {
		d.exprs(w.PartitionBy)
	}
	if w.SortBy != nil {
		d.paths(w.SortBy.Paths()...)
		d.Meta = append(d.Meta, w.SortBy.Meta()...)
	}
	for _, f := range w.Fields {
		d.exprs(f.Spec.Exprs()...)
	}
	return true
}
