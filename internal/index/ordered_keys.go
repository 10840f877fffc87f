package index

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// cursor is where the walk along one field's path stands.
type cursor struct {
	value bson.Value
	depth int
	// done: value is what is indexed, array or not.
	done bool
}

// orderedKeys adds the keys of an index whose fields are all ordered. Fields that go through different arrays are
// CannotIndexParallelArrays.
func (d *Definition) orderedKeys(doc bson.Doc, k *Keys) error {
	k.fields = k.fields[:0]
	for range d.Fields {
		k.fields = append(k.fields, cursor{value: doc.Value()})
	}
	return d.expand(k, k.fields)
}

// expand walks every field to a value or to the one array that all that meet an array must share, and goes on with each
// of the array's elements.
func (d *Definition) expand(k *Keys, at []cursor) error {
	array := bson.Value{}
	for i := range at {
		if err := at[i].walk(d.Fields[i].Parts); err != nil {
			return err
		}
		c := at[i]
		if c.done {
			continue
		}
		switch {
		case array.IsMissing():
			array = c.value
		case &array.Data[0] != &c.value.Data[0]:
			return d.parallel(at)
		}
	}
	if array.IsMissing() {
		return d.emit(k, at)
	}
	return d.expandArray(k, at, array.Doc())
}

func (d *Definition) expandArray(k *Keys, at []cursor, array bson.Doc) error {
	open := make([]bool, len(at))
	for i, c := range at {
		if !c.done {
			open[i] = true
			k.Multikey[i] |= 1 << min(max(c.depth-1, 0), 63)
		}
	}
	next := make([]cursor, len(at))
	if array.IsEmpty() {
		for i, c := range at {
			next[i] = c
			if open[i] {
				next[i] = cursor{done: true}
				if c.depth == len(d.Fields[i].Parts) {
					next[i].value = bson.Undefined
				}
			}
		}
		return d.emit(k, next)
	}
	for it := array.Iter(); it.Next(); {
		for i, c := range at {
			switch {
			case !open[i]:
				next[i] = c
			case c.depth == len(d.Fields[i].Parts):
				next[i] = cursor{value: it.Value(), done: true}
			default:
				next[i] = element(it.Value(), c.depth, d.Fields[i].Parts)
			}
		}
		if err := d.expand(k, next); err != nil {
			return err
		}
	}
	return nil
}

// element starts a walk inside an array's element: documents are entered, nested arrays only by position.
func element(v bson.Value, depth int, parts []string) cursor {
	if v.Type == bson.TypeObject || v.Type == bson.TypeArray && isPosition(parts[depth]) {
		return cursor{value: v, depth: depth}
	}
	return cursor{done: true}
}

// walk goes down until a value is found (done) or an array stops it.
func (c *cursor) walk(parts []string) error {
	for !c.done {
		switch {
		case c.depth == len(parts):
			if c.value.Type == bson.TypeArray {
				return nil
			}
			c.done = true
		case c.value.Type == bson.TypeObject:
			c.value = c.value.Doc().Lookup(parts[c.depth])
			c.depth++
		case c.value.Type == bson.TypeArray:
			v, is, err := position(c.value.Doc(), parts[c.depth])
			if err != nil || !is {
				return err
			}
			c.value = v
			c.depth++
		default:
			*c = cursor{done: true}
		}
	}
	return nil
}

// position reads part as an index into array. It is none when part is no number or the array has no such element, and
// ambiguous when an element has a field of that name.
func position(array bson.Doc, part string) (v bson.Value, is bool, err error) {
	if !isPosition(part) {
		return v, false, nil
	}
	v = array.Lookup(part)
	if v.IsMissing() {
		return v, false, nil
	}
	if err := fieldpath.CheckPosition(array, part); err != nil {
		return v, false, err
	}
	return v, true, nil
}

func isPosition(part string) bool {
	if part == "" || len(part) > 1 && part[0] == '0' || len(part) > 9 {
		return false
	}
	for i := 0; i < len(part); i++ {
		if part[i] < '0' || part[i] > '9' {
			return false
		}
	}
	return true
}

func (d *Definition) parallel(at []cursor) error {
	var names []string
	for i := range at {
		if at[i].value.Type == bson.TypeArray && !at[i].done && at[i].depth > 0 {
			names = append(names, d.Fields[i].Parts[at[i].depth-1])
		}
	}
	if len(names) < 2 {
		names = append(names, "", "")
	}
	return mongoerr.New(mongoerr.CannotIndexParallelArrays, "cannot index parallel arrays [%s] [%s]", names[1], names[0])
}

// emit adds the key made of the fields' values.
func (d *Definition) emit(k *Keys, at []cursor) error {
	if d.Sparse && !slices.ContainsFunc(at, func(c cursor) bool { return !c.value.IsMissing() }) {
		return nil
	}
	k.values = k.values[:0]
	for _, c := range at {
		v := c.value
		if v.IsMissing() {
			v = bson.Null
		}
		k.values = append(k.values, v)
	}
	return k.add(d, k.values)
}
