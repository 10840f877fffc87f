package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Facet is $facet.
type Facet struct {
	written
	Fields []FacetField
}

// FacetField is one pipeline of a $facet and the name of its output.
type FacetField struct {
	Name     string
	Pipeline *Pipeline
}

func parseFacet(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject || arg.Doc().IsEmpty() {
		return nil, mongoerr.New(40169, "the $facet specification must be a non-empty object, but found: %s", arg)
	}
	f := &Facet{written: written{"$facet", arg}}
	if err := checkFacet(arg.Doc()); err != nil {
		return nil, err
	}
	for it := arg.Doc().Iter(); it.Next(); {
		sub, err := p.sub("$facet", it.Value(), p.NS, p.Scope)
		if err != nil {
			return nil, err
		}
		f.Fields = append(f.Fields, FacetField{it.Key(), sub})
	}
	return one(f), nil
}

func checkFacet(d bson.Doc) error {
	for it := d.Iter(); it.Next(); {
		if err := fieldpath.CheckName(it.Key()); err != nil {
			return err
		}
		if it.Value().Type != bson.TypeArray {
			return mongoerr.New(40170, "arguments to $facet must be arrays, %s is type %s", it.Key(), it.Value().Type)
		}
		for stage := it.Value().Doc().Iter(); stage.Next(); {
			if stage.Value().Type != bson.TypeObject {
				return mongoerr.New(40171, "elements of arrays in $facet spec must be non-empty objects, %s argument contained an element of type %s: %s",
					it.Key(), stage.Value().Type, stage.Value())
			}
		}
	}
	return nil
}

func (f *Facet) needs(d *Dependencies) bool {
	for _, field := range f.Fields {
		of := field.Pipeline.Dependencies()
		d.Fields = append(d.Fields, of.Fields...)
		d.Meta = append(d.Meta, of.Meta...)
		d.Whole = d.Whole || of.Whole
	}
	return false
}
