package index

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// scope is which fields a wildcard stands for: a tree of the paths that it is made of, or that it leaves out.
type scope struct {
	include bool
	root    scopeNode
}

// scopeNode is a field in a scope's tree. One without fields of its own ends a path: it is in, or out, with all below it.
type scopeNode map[string]scopeNode

func (n scopeNode) add(path string) {
	for _, part := range strings.Split(path, ".") {
		if n[part] == nil {
			n[part] = scopeNode{}
		}
		n = n[part]
	}
}

// newScope is what the wildcard called field stands for: what is below the path that it follows, what the projection says,
// or everything. _id is in only where it is named.
func newScope(field string, projection bson.Doc) *scope {
	s := &scope{root: scopeNode{}}
	switch below := strings.TrimSuffix(field, "$**"); {
	case below != "":
		s.include = true
		s.root.add(strings.TrimSuffix(below, "."))
	case projection != nil:
		p := readProjection(projection)
		s.include = p.include || !p.known && p.id
		for _, path := range p.paths {
			s.root.add(path)
		}
		if s.include == p.id {
			s.root.add("_id")
		}
	default:
		s.root.add("_id")
	}
	return s
}

// enter is where a field called name stands in the tree, below a node; nil where it is wholly in the scope. in is false
// when it is wholly out of it.
func (s *scope) enter(at scopeNode, name string) (below scopeNode, in bool) {
	if at == nil {
		return nil, true
	}
	next, named := at[name]
	switch {
	case !named:
		return nil, !s.include
	case len(next) == 0:
		return nil, s.include
	}
	return next, true
}

// has says whether a value at path is in the scope, whatever it is.
func (s *scope) has(path []string) bool {
	at := s.root
	for _, part := range path {
		below, in := s.enter(at, part)
		if !in || below == nil {
			return in
		}
		at = below
	}
	return !s.include
}
