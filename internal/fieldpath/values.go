package fieldpath

import "github.com/ebbdb/ebb/internal/bson"

// Digits says what a component of digits is behind an array.
type Digits uint8

const (
	// Positions are looked up in the array, and not in its elements.
	Positions Digits = iota
	// Names are those of fields, in the elements.
	Names
)

// Values shows visit the values at p in d in the sense of distinct: an array on the way is gone through, unless it is entered by
// position, and one at the end is shown by its elements. What is missing is not shown, nor what lies in an array that is an
// element itself.
func (p Path) Values(d bson.Doc, digits Digits, visit func(bson.Value)) {
	valuesIn(p.parts, d, digits, visit)
}

func valuesIn(parts []part, d bson.Doc, digits Digits, visit func(bson.Value)) {
	v, rest := d.Lookup(parts[0].name), parts[1:]
	switch {
	case v.Type == bson.TypeArray && len(rest) == 0:
		for it := v.Doc().Iter(); it.Next(); {
			visit(it.Value())
		}
	case len(rest) == 0 && !v.IsMissing():
		visit(v)
	case len(rest) == 0:
	case v.Type == bson.TypeObject || v.Type == bson.TypeArray && rest[0].digits && digits == Positions:
		valuesIn(rest, v.Doc(), digits, visit)
	case v.Type == bson.TypeArray:
		for it := v.Doc().Iter(); it.Next(); {
			if e := it.Value(); e.Type == bson.TypeObject {
				valuesIn(rest, e.Doc(), digits, visit)
			}
		}
	}
}
