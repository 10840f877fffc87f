package update

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// kind says what a node of the tree stands for.
type kind uint8

const (
	// leafNode changes the value that it is applied to.
	leafNode kind = iota
	// objectNode goes into fields of a document, or positions of an array, by name.
	objectNode
	// arrayNode goes into the elements of an array that pass array filters; its children's names are the identifiers.
	arrayNode
)

// node is a part of the tree that all modifiers of an update make together: one path, one node.
type node struct {
	kind     kind
	children []child // in the order of compareNames, in which new fields appear, once the tree is sorted
	// positional is the child named "$", or nil.
	positional *node

	operator *Operator
	modifier modifier
	rename   int // 1 + position in Update.renames for both ends of a $rename, else 0

	// named has the children of a node with many, while the tree is put together.
	named map[string]*node
}

// manyChildren is from how many children on those of a node are looked up by a map while the tree is put together.
const manyChildren = 16

type child struct {
	name string
	// index is the position in an array that the name means, or -1.
	index int
	node  *node
}

// compareNames is the order of fields in the tree: names of digits by their number and before all others, the rest by
// bytes.
func compareNames(a, b string) int {
	na, nb := isDigits(a), isDigits(b)
	switch {
	case na && nb:
		ta, tb := strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		return cmp.Or(cmp.Compare(len(ta), len(tb)), strings.Compare(ta, tb), cmp.Compare(len(a), len(b)))
	case na:
		return -1
	case nb:
		return 1
	}
	return strings.Compare(a, b)
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// position is the array position that a path component means, or -1.
func position(name string) int {
	if n, ok := fieldpath.Position(name); ok {
		return n
	}
	return -1
}

func (n *node) find(name string) (int, bool) {
	return slices.BinarySearchFunc(n.children, name, func(c child, name string) int { return compareNames(c.name, name) })
}

// get is the child of the given name, or nil, while the tree is put together; "$" is the positional one.
func (n *node) get(name string) *node {
	if n.kind == objectNode && name == "$" {
		return n.positional
	}
	if n.named != nil {
		return n.named[name]
	}
	for i := range n.children {
		if n.children[i].name == name {
			return n.children[i].node
		}
	}
	return nil
}

// set adds a child that is not there. The children are in order when the tree has been sorted.
func (n *node) set(name string, c *node) {
	if n.kind == objectNode && name == "$" {
		n.positional = c
		return
	}
	n.children = append(n.children, child{name, position(name), c})
	switch {
	case n.named != nil:
		n.named[name] = c
	case len(n.children) == manyChildren:
		n.named = make(map[string]*node, 2*manyChildren)
		for _, c := range n.children {
			n.named[c.name] = c.node
		}
	}
}

// sort puts the children of n and of all nodes below in order.
func (n *node) sort() {
	n.named = nil
	slices.SortFunc(n.children, func(a, b child) int { return compareNames(a.name, b.name) })
	for _, c := range n.children {
		c.node.sort()
	}
	if n.positional != nil {
		n.positional.sort()
	}
}

// isIdentifier says whether a path component is $[] or $[id].
func isIdentifier(part string) bool {
	return strings.HasPrefix(part, "$[") && strings.HasSuffix(part, "]")
}

// insert hangs leaf into the tree at path.
func (p *parser) insert(path string, leaf *node) error {
	parts := strings.Split(path, ".")
	current := p.root
	for i := range parts {
		name, err := p.childName(parts, i, path)
		if err != nil {
			return err
		}
		next := current.get(name)
		if i == len(parts)-1 {
			if next != nil {
				return conflict(path, path)
			}
			current.set(name, leaf)
			break
		}
		want := objectNode
		if isIdentifier(parts[i+1]) {
			want = arrayNode
		}
		if next == nil {
			next = &node{kind: want}
			current.set(name, next)
		} else if next.kind != want {
			return conflict(path, strings.Join(parts[:i+1], "."))
		}
		current = next
	}
	return nil
}

func conflict(path, at string) error {
	return mongoerr.New(mongoerr.ConflictingUpdateOperators, "Updating the path '%s' would create a conflict at '%s'", path, at)
}

// childName is the name under which component i of a path stands in the tree: identifiers lose their brackets.
func (p *parser) childName(parts []string, i int, path string) (string, error) {
	part := parts[i]
	if !isIdentifier(part) {
		return part, nil
	}
	if i == 0 {
		return "", mongoerr.New(mongoerr.BadValue,
			"Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path '%s'", path)
	}
	id := part[2 : len(part)-1]
	if id != "" {
		if _, ok := p.filters[id]; !ok {
			return "", mongoerr.New(mongoerr.BadValue, "No array filter found for identifier '%s' in path '%s'", id, path)
		}
		p.used[id] = true
	}
	return id, nil
}

// checkPath refuses paths that no update may name.
func checkPath(path string) (positional bool, err error) {
	if path == "" {
		return false, mongoerr.New(mongoerr.EmptyFieldName, "An empty update path is not valid.")
	}
	parts := strings.Split(path, ".")
	if len(parts) > bson.MaxDepth {
		return false, mongoerr.New(mongoerr.Overflow, "FieldPath is too long")
	}
	count, first := 0, -1
	for i, part := range parts {
		switch part {
		case "":
			return false, mongoerr.New(mongoerr.EmptyFieldName,
				"The update path '%s' contains an empty field name, which is not allowed.", path)
		case "$":
			if count++; first < 0 {
				first = i
			}
		}
	}
	switch {
	case count > 1:
		return false, mongoerr.New(mongoerr.BadValue, "Too many positional (i.e. '$') elements found in path '%s'", path)
	case first == 0:
		return false, mongoerr.New(mongoerr.BadValue,
			"Cannot have positional (i.e. '$') element in the first position in path '%s'", path)
	}
	return count == 1, nil
}

// merge is the tree that does what a and b do, both of which came to stand at path.
func merge(a, b *node, path []string) (*node, error) {
	if a.kind == leafNode || a.kind != b.kind {
		return nil, mongoerr.New(mongoerr.ConflictingUpdateOperators, "Update created a conflict at '%s'", strings.Join(path, "."))
	}
	m := &node{kind: a.kind, children: slices.Clone(a.children), positional: a.positional}
	for _, c := range b.children {
		i, ok := m.find(c.name)
		if !ok {
			m.children = slices.Insert(m.children, i, c)
			continue
		}
		both, err := merge(m.children[i].node, c.node, append(path[:len(path):len(path)], c.name))
		if err != nil {
			return nil, err
		}
		m.children[i].node = both
	}
	switch {
	case m.positional == nil:
		m.positional = b.positional
	case b.positional != nil:
		both, err := merge(m.positional, b.positional, append(path[:len(path):len(path)], "$"))
		if err != nil {
			return nil, err
		}
		m.positional = both
	}
	return m, nil
}
