package config

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// tree collects values under dotted keys into a nested document, in the order of their first mention.
type tree struct {
	names    []string
	values   map[string]bson.Value
	children map[string]*tree
}

func newTree() *tree {
	return &tree{values: map[string]bson.Value{}, children: map[string]*tree{}}
}

// put sets key, whose dots lead into the tree. A parameter's name is one step, dots or not.
func (t *tree) put(key string, v bson.Value) {
	name, rest, nested := strings.Cut(key, ".")
	if !nested {
		if t.values[name].IsMissing() {
			t.names = append(t.names, name)
		}
		t.values[name] = v
		return
	}
	child := t.children[name]
	if child == nil {
		child = newTree()
		t.children[name] = child
		t.names = append(t.names, name)
	}
	if name+"." == setParameterPrefix {
		child.names = append(child.names, rest)
		child.values[rest] = v
		return
	}
	child.put(rest, v)
}

func (t *tree) doc() bson.Doc {
	b := bson.Build()
	for _, name := range t.names {
		if child := t.children[name]; child != nil {
			b.Document(name, child.doc())
		} else {
			b.Value(name, t.values[name])
		}
	}
	return b.Doc()
}
