package pipeline

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/projection"
)

// Project is $project, $addFields, $set and $unset: what reshapes documents field by field.
type Project struct {
	written
	Projection *projection.Projection
}

func parseProject(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(15969, "$project specification must be an object")
	}
	pr, err := p.projection(arg.Doc(), projection.Project)
	if err != nil {
		return nil, mongoerr.Prefix("Invalid $project :: caused by :: ", err)
	}
	return one(&Project{written{"$project", arg}, pr}), nil
}

func parseAddFields(p *parsing, arg bson.Value) ([]Stage, error) {
	name := p.name
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(40272, "%s specification stage must be an object, got %s", name, arg.Type)
	}
	pr, err := p.projection(arg.Doc(), projection.AddFields)
	if err != nil {
		return nil, mongoerr.Prefix("Invalid "+name+" :: caused by :: ", err)
	}
	return one(&Project{written{name, arg}, pr}), nil
}

func parseUnset(p *parsing, arg bson.Value) ([]Stage, error) {
	paths, err := unsetPaths(arg)
	if err != nil {
		return nil, err
	}
	pr, err := p.Projections.Unset(paths)
	if err != nil {
		return nil, mongoerr.Prefix("Invalid $unset :: caused by :: ", err)
	}
	return one(&Project{written{"$unset", arg}, pr}), nil
}

func unsetPaths(arg bson.Value) ([]string, error) {
	var paths []string
	switch arg.Type {
	case bson.TypeString:
		paths = append(paths, arg.Str())
	case bson.TypeArray:
		if arg.Doc().IsEmpty() {
			return nil, mongoerr.New(31119, "$unset specification must be a string or an array with at least one field")
		}
		for it := arg.Doc().Iter(); it.Next(); {
			if it.Value().Type != bson.TypeString {
				return nil, mongoerr.New(31120, "$unset specification must be a string or an array containing only string values")
			}
			paths = append(paths, it.Value().Str())
		}
	default:
		return nil, mongoerr.New(31002, "$unset specification must be a string or an array")
	}
	for _, path := range paths {
		if strings.IndexByte(path, 0) >= 0 {
			return nil, mongoerr.New(9527900, "Field names may not contain embedded null bytes")
		}
	}
	return paths, nil
}

func (s *Project) needs(d *Dependencies) bool {
	of := s.Projection.Dependencies()
	d.Meta = append(d.Meta, of.Meta...)
	d.random = d.random || s.Projection.Random()
	if s.Projection.Kind() == projection.Inclusion {
		d.Fields = append(d.Fields, of.Fields...)
		d.Whole = d.Whole || of.Whole
		return false
	}
	d.Fields = append(d.Fields, of.Fields...)
	return true
}
