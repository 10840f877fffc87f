package fieldpath

import "github.com/ebbdb/ebb/internal/bson"

// Leaf says what a walk shows of an array at the path's end.
type Leaf uint8

const (
	// Traverse shows each element and then the array as a whole: most query operators.
	Traverse Leaf = iota
	// Whole shows the array only: $size, $elemMatch, $all of those, JSON Schema.
	Whole
	// Elements shows the elements only.
	Elements
)

// NoIndex is the index that a walk gives when no array was implicitly traversed.
const NoIndex = -1

// Visit is called with each value that a path reaches (missing ones too) and the position in the outermost array that was
// implicitly traversed on the way, or NoIndex. It returns true to end the walk.
type Visit func(v bson.Value, index int) bool

// Walk shows visit all that p reaches in d in the sense of query filters, and says whether visit ended the walk:
//
//   - an array on the way is traversed: the rest of the path is looked up in each element that is a document;
//   - a component of digits also is a position in such an array, beside being a field name of its documents, and the element
//     there is taken as it is;
//   - a document without the field shows a missing value, also when it is an element of an array; anything else on the way
//     shows a missing value at the top, and nothing inside of an array.
//
// Walk does not allocate, nor does a closure over local variables that is passed as visit.
func (p Path) Walk(d bson.Doc, leaf Leaf, visit Visit) bool {
	return walkDoc(p.parts, d, leaf, NoIndex, visit)
}

// WalkFrom is Walk from a value that stands for the first skip components: the rest of the path is looked up in it, and an
// array among them counts as one that was reached on the way.
func (p Path) WalkFrom(skip int, v bson.Value, leaf Leaf, visit Visit) bool {
	parts := p.parts[min(skip, len(p.parts)):]
	switch {
	case len(parts) == 0 && v.Type == bson.TypeArray:
		return walkLeafArray(v, leaf, NoIndex, visit)
	case len(parts) == 0:
		return visit(v, NoIndex)
	case v.Type == bson.TypeObject:
		return walkDoc(parts, v.Doc(), leaf, NoIndex, visit)
	case v.Type == bson.TypeArray:
		return walkArray(parts, v.Doc(), leaf, NoIndex, visit)
	}
	return visit(bson.Missing, NoIndex)
}

func walkDoc(parts []part, d bson.Doc, leaf Leaf, index int, visit Visit) bool {
	for i := range parts {
		v := d.Lookup(parts[i].name)
		rest := parts[i+1:]
		switch {
		case v.Type == bson.TypeArray && len(rest) == 0:
			return walkLeafArray(v, leaf, index, visit)
		case v.Type == bson.TypeArray:
			return walkArray(rest, v.Doc(), leaf, index, visit)
		case len(rest) == 0:
			return visit(v, index)
		case v.Type != bson.TypeObject:
			return visit(bson.Missing, index)
		}
		d = v.Doc()
	}
	return false
}

func walkLeafArray(v bson.Value, leaf Leaf, index int, visit Visit) bool {
	if leaf != Whole {
		i := 0
		for it := v.Doc().Iter(); it.Next(); i++ {
			if visit(it.Value(), outer(index, i)) {
				return true
			}
		}
	}
	return leaf != Elements && visit(v, index)
}

// walkArray looks parts up in the elements of an array that stands on the way.
func walkArray(parts []part, array bson.Doc, leaf Leaf, index int, visit Visit) bool {
	i := 0
	for it := array.Iter(); it.Next(); i++ {
		v := it.Value()
		if v.Type == bson.TypeObject && walkDoc(parts, v.Doc(), leaf, outer(index, i), visit) {
			return true
		}
		if !parts[0].digits || parts[0].name != it.Key() {
			continue
		}
		rest := parts[1:]
		switch {
		case len(rest) == 0:
			if visit(v, index) {
				return true
			}
		case v.Type == bson.TypeObject:
			if walkDoc(rest, v.Doc(), leaf, index, visit) {
				return true
			}
		case v.Type == bson.TypeArray:
			if walkArray(rest, v.Doc(), leaf, index, visit) {
				return true
			}
		}
	}
	return false
}

func outer(index, i int) int {
	if index != NoIndex {
		return index
	}
	return i
}
