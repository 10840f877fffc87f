package update

import (
	"maps"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// equalities are the paths that a filter says to have one value.
type equalities map[string]bson.Value

// UpsertSeed is the document that an upsert starts from: the equalities of the query; for a replacement, its _id alone.
func (u *Update) UpsertSeed(filter *match.Filter) (bson.Doc, error) {
	eq := equalities{}
	if err := eq.collect(filter.Root, u.kind == Replacement); err != nil {
		return nil, err
	}
	root := &seed{}
	for _, path := range slices.Sorted(maps.Keys(eq)) {
		root.set(strings.Split(path, "."), eq[path])
	}
	b := bson.Build()
	root.build(b)
	return b.Doc(), nil
}

// collect adds the equalities of n; onlyID those that tell the _id.
func (eq equalities) collect(n match.Node, onlyID bool) error {
	switch n := n.(type) {
	case *match.And:
		for _, child := range n.Children {
			if err := eq.collect(child, onlyID); err != nil {
				return err
			}
		}
	case *match.Or:
		if len(n.Children) == 1 {
			return eq.collect(n.Children[0], onlyID)
		}
	case *match.In:
		if len(n.Values) == 1 && len(n.Regexes) == 0 {
			return eq.add(n.Path.String(), n.Values[0], onlyID)
		}
	case *match.Compare:
		if n.Op == match.Eq {
			return eq.add(n.Path.String(), n.Value, onlyID)
		}
	}
	return nil
}

func (eq equalities) add(path string, v bson.Value, onlyID bool) error {
	if onlyID {
		if strings.HasPrefix(path, "_id.") {
			return mongoerr.New(mongoerr.NotExactValueField,
				"field at '_id' must be exactly specified, field at sub-path '%s'found", path)
		}
		if path != "_id" {
			return nil
		}
	}
	for other := range eq {
		switch {
		case other == path:
			return mongoerr.New(mongoerr.NotSingleValueField, "cannot infer query fields to set, path '%s' is matched twice", path)
		case strings.HasPrefix(other, path+".") || strings.HasPrefix(path, other+"."):
			return mongoerr.New(mongoerr.NotSingleValueField,
				"cannot infer query fields to set, both paths '%s' and '%s' are matched", path, other)
		}
	}
	eq[path] = v
	return nil
}

// seed is a document that is made of paths; a leaf has a value.
type seed struct {
	names  []string
	fields []*seed
	value  bson.Value
}

func (s *seed) set(path []string, v bson.Value) {
	if len(path) == 0 {
		s.value = v
		return
	}
	i := slices.Index(s.names, path[0])
	if i < 0 {
		i = len(s.names)
		s.names, s.fields = append(s.names, path[0]), append(s.fields, &seed{})
	}
	s.fields[i].set(path[1:], v)
}

func (s *seed) build(b *bson.Builder) {
	for i, f := range s.fields {
		if !f.value.IsMissing() {
			b.Value(s.names[i], f.value)
			continue
		}
		b.Object(s.names[i])
		f.build(b)
		b.End()
	}
}
