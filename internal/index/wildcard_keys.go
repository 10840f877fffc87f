package index

import (
	"encoding/binary"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// wildcardWalk goes through one document for the keys of a wildcard index.
type wildcardWalk struct {
	wild *Wild
	keys *Keys
	// values are those of a key: the other fields', and the path and the value that the wildcard stands for.
	values []bson.Value
	// path is where the walk stands, as a BSON string without its end.
	path  []byte
	depth int
	err   error
}

const stringHead = 4 // the length in front of a BSON string

// wildcardKeys adds a key for each value in the wildcard's scope: those of arrays' elements stand at the array's path,
// nested arrays and empty objects are values. A document that has none has a key in a compound index all the same, so that
// it is found by the other fields, which must not be arrays.
func (d *Definition) wildcardKeys(doc bson.Doc, k *Keys) error {
	w := &wildcardWalk{wild: d.Wild, keys: k, values: k.values[:0], path: make([]byte, stringHead, 64)}
	for i := range d.Fields {
		if i == d.Wild.Position {
			w.values = append(w.values, bson.MinKey, bson.MinKey)
			continue
		}
		v, err := regular(doc, &d.Fields[i])
		if err != nil {
			return err
		}
		w.values = append(w.values, v)
	}
	k.values = w.values
	w.object(doc, d.Wild.scope.root)
	if len(d.Fields) > 1 && len(k.keys) == 0 && w.err == nil {
		w.err = k.add(d.Wild.keys, w.values)
	}
	return w.err
}

// regular is the value of a field of its own in a compound index.
func regular(doc bson.Doc, f *Field) (bson.Value, error) {
	v := doc.Value()
	for _, part := range f.Parts {
		if v.Type != bson.TypeObject {
			return bson.Null, nil
		}
		if v = v.Doc().Lookup(part); v.Type == bson.TypeArray {
			return v, mongoerr.New(7246301, "Compound wildcard indexes do not support arrays in their other fields. Found array at path: %s", f.Path)
		}
	}
	if v.IsMissing() {
		v = bson.Null
	}
	return v, nil
}

// object walks the fields of doc. at is where it stands in the scope's tree, nil where it is wholly in the scope. A name
// with a dot in it is nothing that a query could ask for.
func (w *wildcardWalk) object(doc bson.Doc, at scopeNode) {
	parent := len(w.path)
	for it := doc.Iter(); it.Next() && w.err == nil; {
		below, in := w.wild.scope.enter(at, it.Key())
		if !in || strings.IndexByte(it.Key(), '.') >= 0 {
			continue
		}
		if w.depth > 0 {
			w.path = append(w.path, '.')
		}
		w.path = append(w.path, it.Key()...)
		w.depth++
		w.field(it.Value(), below)
		w.depth--
		w.path = w.path[:parent]
	}
}

// field adds the keys of what is at the path.
func (w *wildcardWalk) field(v bson.Value, at scopeNode) {
	before := len(w.keys.keys)
	switch {
	case v.Type == bson.TypeArray:
		w.keys.addPath(w.path[stringHead:])
		for it := v.Doc().Iter(); it.Next() && w.err == nil; {
			if it.Value().Type == bson.TypeArray {
				w.keys.addPath(append(w.path, nestedMark)[stringHead:])
			}
			w.element(it.Value(), at)
		}
		if len(w.keys.keys) == before {
			w.add(bson.Undefined)
		}
	default:
		w.element(v, at)
	}
}

// element adds the keys of a value, or of one in an array at the path. An object that has none is one itself, so that it
// is found by being there.
func (w *wildcardWalk) element(v bson.Value, at scopeNode) {
	if v.Type != bson.TypeObject {
		if at == nil || !w.wild.scope.include {
			w.add(v)
		}
		return
	}
	before := len(w.keys.keys)
	w.object(v.Doc(), at)
	if len(w.keys.keys) == before {
		w.add(bson.EmptyDoc.Value())
	}
}

func (w *wildcardWalk) add(v bson.Value) {
	if w.err != nil {
		return
	}
	w.path = append(w.path, 0)
	binary.LittleEndian.PutUint32(w.path, uint32(len(w.path)-stringHead))
	p := w.wild.Position
	w.values[p], w.values[p+1] = bson.Value{Type: bson.TypeString, Data: w.path}, v
	w.err = w.keys.add(w.wild.keys, w.values)
	w.path = w.path[:len(w.path)-1]
}
