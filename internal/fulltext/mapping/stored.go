package mapping

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// storedSource reads which fields are stored.
func storedSource(r *spec.Reader) *Stored {
	switch v := r.Value("storedSource"); v.Type {
	case bson.TypeMissing:
	case bson.TypeBool:
		if v.Bool() {
			return &Stored{}
		}
	case bson.TypeObject:
		sub := spec.New(r.Path("storedSource"), v.Doc())
		include, included := sub.Texts("include", false, maxStored)
		exclude, excluded := sub.Texts("exclude", false, maxStored)
		s := &Stored{Include: included, Paths: append(include, exclude...)}
		for i, path := range s.Paths {
			if strings.TrimSpace(path) == "" {
				name := "exclude"
				if included {
					name = "include"
				}
				sub.RefuseField(name+"["+bson.IndexKey(i)+"]", "cannot be blank")
			}
		}
		switch {
		case sub.Err() != nil:
		case included && excluded:
			sub.Refuse("only one of [include, exclude] may be present")
		case !included && !excluded:
			sub.Refuse("one of [include, exclude] must be present")
		case len(s.Paths) == 0 && included:
			sub.RefuseField("include", "cannot be empty")
		case len(s.Paths) == 0:
			sub.RefuseField("exclude", "cannot be empty")
		default:
			var ok bool
			if s.tree, ok = treeOf(s.Paths); !ok {
				sub.Refuse("path collision is not allowed")
			}
		}
		r.Keep(sub.Done())
		return s
	default:
		r.RefuseField("storedSource", "must be a boolean or document")
	}
	return nil
}

// pathTree are paths by their parts; a nil tree is the end of one.
type pathTree map[string]pathTree

// treeOf is the tree of paths; ok is false where one ends above another, and is not the same.
func treeOf(paths []string) (root pathTree, ok bool) {
	root = pathTree{}
	for _, path := range paths {
		at := root
		for {
			name, rest, more := strings.Cut(path, ".")
			below, there := at[name]
			if !more {
				if there && below != nil {
					return root, false
				}
				at[name] = nil
				break
			}
			if there && below == nil {
				return root, false
			}
			if below == nil {
				below = pathTree{}
				at[name] = below
			}
			at, path = below, rest
		}
	}
	return root, true
}

// Project is what is stored of a document, which always has its _id. Paths go through arrays. Of a path that is stored, documents and arrays
// that it leads through stay, even if they are empty then.
func (s *Stored) Project(d bson.Doc) bson.Doc {
	if len(s.Paths) == 0 && !s.Include {
		return d
	}
	tree := s.tree
	if tree == nil {
		tree, _ = treeOf(s.Paths)
	}
	p := projection{bson.Build(), s.Include}
	for it := d.Iter(); it.Next(); {
		if it.Key() == "_id" {
			p.out.Value("_id", it.Value())
		} else {
			p.field(it.Key(), it.Value(), tree)
		}
	}
	return p.out.Doc()
}

type projection struct {
	out     *bson.Builder
	include bool
}

func (p projection) field(name string, v bson.Value, tree pathTree) {
	below, there := tree[name]
	switch {
	case there && below != nil:
		p.value(name, v, below)
	case there == p.include:
		p.out.Value(name, v)
	}
}

// value writes what is stored of a value that paths lead through.
func (p projection) value(name string, v bson.Value, tree pathTree) {
	switch v.Type {
	case bson.TypeObject:
		p.out.Object(name)
		for it := v.Doc().Iter(); it.Next(); {
			p.field(it.Key(), it.Value(), tree)
		}
		p.out.End()
	case bson.TypeArray:
		p.out.Array(name)
		n := 0
		for it := v.Doc().Iter(); it.Next(); {
			e := it.Value()
			if p.include && e.Type != bson.TypeObject && e.Type != bson.TypeArray {
				continue
			}
			p.value(bson.IndexKey(n), e, tree)
			n++
		}
		p.out.End()
	default:
		if !p.include {
			p.out.Value(name, v)
		}
	}
}
