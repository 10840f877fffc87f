package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func elementOperators() []Operator {
	return []Operator{
		{Name: "$exists", Doc: "Matches documents that have the field, or have it not.", Since: "1.0", field: parseExists},
		{Name: "$type", Doc: "Matches values of given BSON types.", Since: "1.0", field: parseType},
	}
}

// Exists matches when Path reaches any value.
type Exists struct{ Path fieldpath.Path }

func (n *Exists) match(c run, s subject) (bool, error) {
	return matchPath(n, c, n.Path, fieldpath.Traverse, s)
}

func (n *Exists) test(_ run, v bson.Value) (bool, error) { return !v.IsMissing(), nil }

func parseExists(_ *parsing, path fieldpath.Path, arg bson.Value, _ bson.Doc) (Node, error) {
	if arg.Truthy() {
		return &Exists{path}, nil
	}
	return &Not{&Exists{path}}, nil
}

// Type matches values of one of Types.
type Type struct {
	Path  fieldpath.Path
	Types TypeSet
}

func (n *Type) match(c run, s subject) (bool, error) {
	return matchPath(n, c, n.Path, fieldpath.Traverse, s)
}

func (n *Type) test(_ run, v bson.Value) (bool, error) { return n.Types.Has(v.Type), nil }

func parseType(_ *parsing, path fieldpath.Path, arg bson.Value, _ bson.Doc) (Node, error) {
	types, err := parseTypes(arg, nil)
	if err != nil {
		return nil, err
	}
	if types.empty() {
		return nil, failedToParse("%s must match at least one type", path)
	}
	return &Type{path, types}, nil
}

// TypeSet is a set of BSON types. Numbers stands for all four numeric ones where they were asked for by that name.
type TypeSet struct {
	Numbers bool
	Types   []bson.Type // in the order in which they were given

	has [4]uint64
}

func (s *TypeSet) add(t bson.Type) {
	if s.has[t>>6]>>(t&63)&1 == 0 {
		s.has[t>>6] |= 1 << (t & 63)
		s.Types = append(s.Types, t)
	}
}

func (s *TypeSet) empty() bool { return !s.Numbers && len(s.Types) == 0 }

// Has says whether t is in the set; a missing value's type never is.
func (s *TypeSet) Has(t bson.Type) bool {
	return s.has[t>>6]>>(t&63)&1 != 0 || s.Numbers && t.IsNumber()
}

// parseTypes reads a type's name or code, or an array of such. With names given, only those are known.
func parseTypes(arg bson.Value, names map[string]bson.Type) (TypeSet, error) {
	var s TypeSet
	if arg.Type != bson.TypeArray {
		return s, s.parseOne(arg, names)
	}
	for it := arg.Doc().Iter(); it.Next(); {
		if err := s.parseOne(it.Value(), names); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *TypeSet) parseOne(v bson.Value, names map[string]bson.Type) error {
	switch {
	case v.Type == bson.TypeString && v.Str() == "number":
		s.Numbers = true
		return nil
	case v.Type == bson.TypeString:
		t, known := names[v.Str()]
		if names == nil {
			t, known = bson.TypeNamed(v.Str())
		}
		if !known {
			return badValue("Unknown type name alias: %s", v.Str())
		}
		s.add(t)
		return nil
	case !v.IsNumber():
		return mongoerr.New(mongoerr.TypeMismatch, "type must be represented as a number or a string")
	}
	code, exact := v.AsInt64()
	switch {
	case exact && code == 0:
		return badValue("Invalid numerical type code: 0. Instead use {$exists:false}.")
	case exact && code == -1:
		s.add(bson.TypeMinKey)
	case exact && code > 0 && code < 0xFF && bson.Type(code).Known():
		s.add(bson.Type(code))
	default:
		return badValue("Invalid numerical type code: %s", v)
	}
	return nil
}
