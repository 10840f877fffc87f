package fulltext

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// wildcard finds what is asked for in all fields of a scope whose paths match a pattern. Which those are is seen in the documents.
type wildcard struct {
	slot    int32
	scope   *scope
	pattern func(path string) bool
	make    func(f *textField) (node, error)
	known   map[string]bool
	bytes   int
	nodes   []node
	r       *resolver
}

// wildcard is the node of a pattern of paths.
func (r *resolver) wildcard(pattern string, in func(f *textField) (node, error)) (node, error) {
	re, err := compile(strings.ReplaceAll(glob(strings.ReplaceAll(pattern, `\`, `\\`)), "?", "[?]"))
	if err != nil {
		return nil, err
	}
	n := &wildcard{slot: r.slot(), scope: r.scope, pattern: re.MatchString, make: in, known: map[string]bool{}, r: r}
	r.scope.wild = append(r.scope.wild, n)
	return n, nil
}

// maxWildFields bounds the fields that a pattern of paths looks at, and maxWildBytes how long their paths are together.
const (
	maxWildFields = 1 << 14
	maxWildBytes  = 4 << 20
)

// discover finds the fields of a document that have not been seen.
func (n *wildcard) discover(doc bson.Doc) {
	n.walk(doc, n.scope.root)
}

func (n *wildcard) walk(doc bson.Doc, prefix string) {
	for it := doc.Iter(); it.Next(); {
		path := it.Key()
		if prefix != "" {
			path = prefix + "." + path
		}
		n.value(it.Value(), path)
	}
}

func (n *wildcard) value(v bson.Value, path string) {
	switch v.Type {
	case bson.TypeString:
		n.found(path)
	case bson.TypeObject:
		n.walk(v.Doc(), path)
	case bson.TypeArray:
		for it := v.Doc().Iter(); it.Next(); {
			if e := it.Value(); e.Type != bson.TypeArray {
				n.value(e, path)
			}
		}
	}
}

// found makes the node of a path with a string, where there is none yet.
func (n *wildcard) found(path string) {
	if n.known[path] || len(n.known) >= maxWildFields || n.bytes+len(path) > maxWildBytes {
		return
	}
	n.bytes += len(path)
	path = strings.Clone(path)
	n.known[path] = true
	if !n.pattern(path) {
		return
	}
	outer := n.r.scope
	n.r.scope = n.scope
	defer func() { n.r.scope = outer }()
	f := n.r.text(path, "")
	if f == nil {
		return
	}
	one, err := n.make(f)
	if err != nil {
		n.r.search.failed(err)
		return
	}
	n.nodes = append(n.nodes, one)
}

func (n *wildcard) observe(counting bool) {
	for _, each := range n.nodes {
		each.observe(counting)
	}
}

// find is either's, of nodes that become more. The evidence of each is behind its number, since those that came later are not in evidence that
// was there before.
func (n *wildcard) find(ev []evidence) ([]evidence, bool) {
	found := false
	for i, each := range n.nodes {
		mark := len(ev)
		out, ok := each.find(append(ev, evidence{slot: n.slot, item: int32(i)}))
		if ev = out; !ok {
			ev = ev[:mark]
		}
		found = found || ok
	}
	return ev, found
}

func (n *wildcard) score(c *cursor) (float64, *detail, bool) {
	return c.all(n.slot, func(e evidence) (float64, *detail) {
		score, d, _ := n.nodes[e.item].score(c)
		return score, d
	})
}

func (n *wildcard) mark(f *textField, mark func(int)) {
	for _, each := range slices.Clone(n.nodes) {
		each.mark(f, mark)
	}
}
