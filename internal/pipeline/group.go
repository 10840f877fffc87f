package pipeline

import (
	"github.com/ebbdb/ebb/internal/accumulator"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Group is $group.
type Group struct {
	written
	ID     expr.Expr
	Fields []GroupField
	// Lacking, unless missing, is the key where ID is an object of one field and that field is missing: it is null then. Objects of
	// several fields leave out what is missing.
	Lacking bson.Value
	// HandedOn says that MongoDB's engine for plans runs the $group and hands its documents on to the one for pipelines, on
	// which way they lose some types; see HandOn.
	HandedOn bool
}

// GroupField is an accumulated field.
type GroupField struct {
	Name string
	Spec *accumulator.Spec
}

func parseGroup(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(15947, "a group's fields must be specified in an object")
	}
	g := &Group{written: written{"$group", arg}}
	seen := map[string]bool{}
	for it := arg.Doc().Iter(); it.Next(); {
		switch name := it.Key(); {
		case name == "_id":
			if g.ID != nil {
				return nil, mongoerr.New(15948, "a group's _id may only be specified once")
			}
			id, err := p.groupID(it.Value())
			if err != nil {
				return nil, err
			}
			g.ID, g.Lacking = id, lacking(it.Value())
		case name == "$doingMerge":
			return nil, mongoerr.New(17030, "$doingMerge should be true if present")
		default:
			if seen[name] {
				return nil, mongoerr.New(16406, "duplicate field name specified in object literal: %s", arg)
			}
			seen[name] = true
			f, err := p.groupField(name, it.Value())
			if err != nil {
				return nil, err
			}
			g.Fields = append(g.Fields, f)
		}
	}
	if g.ID == nil {
		return nil, mongoerr.New(15955, "a group specification must include an _id")
	}
	return one(g), nil
}

// groupID parses the key; a document in it may not look like a projection.
func (p *parsing) groupID(v bson.Value) (expr.Expr, error) {
	if v.Type == bson.TypeObject && !v.Doc().IsEmpty() {
		if first := v.Doc().FirstKey(); first == "" || first[0] != '$' {
			for it := v.Doc().Iter(); it.Next(); {
				if it.Value().IsNumber() || it.Value().Type == bson.TypeBool {
					return nil, mongoerr.New(17390, "$group does not support inclusion-style expressions")
				}
			}
		}
	}
	return p.Exprs.Parse(v, p.Scope)
}

// lacking is what stands for a key v, of one field, that is missing.
func lacking(v bson.Value) bson.Value {
	if v.Type != bson.TypeObject || v.Doc().Count() != 1 {
		return bson.Missing
	}
	name := v.Doc().FirstKey()
	if name != "" && name[0] == '$' {
		return bson.Missing
	}
	return bson.Build().Null(name).Doc().Value()
}

// groupField parses one accumulated field of $group, $bucket or $bucketAuto.
func (p *parsing) groupField(name string, v bson.Value) (GroupField, error) {
	switch {
	case dotted(name):
		return GroupField{}, mongoerr.New(40235, "The field name '%s' cannot contain '.'", name)
	case name != "" && name[0] == '$':
		return GroupField{}, mongoerr.New(40236, "The field name '%s' cannot be an operator name", name)
	}
	s, err := p.Accumulators.Group(name, v, p.Scope)
	return GroupField{name, s}, err
}

func dotted(name string) bool { return fieldpath.Split(name).Len() > 1 }

func (g *Group) needs(d *Dependencies) bool {
	d.exprs(g.ID)
	for _, f := range g.Fields {
		d.exprs(f.Spec.Exprs()...)
	}
	return false
}
