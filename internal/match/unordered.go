package match

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// compareUnordered is bson.Compare but for the order of fields in documents, which plays no part.
func compareUnordered(a, b bson.Value) int {
	if a.Type != b.Type || a.Type != bson.TypeObject && a.Type != bson.TypeArray {
		return bson.Compare(a, b)
	}
	as, bs := elements(a), elements(b)
	for i := range min(len(as), len(bs)) {
		if d := strings.Compare(as[i].key, bs[i].key); d != 0 {
			return d
		}
		if d := compareUnordered(as[i].value, bs[i].value); d != 0 {
			return d
		}
	}
	return len(as) - len(bs)
}

type element struct {
	key   string
	value bson.Value
}

// elements are the elements of a document by name, or of an array in order and without names.
func elements(v bson.Value) []element {
	var out []element
	for it := v.Doc().Iter(); it.Next(); {
		e := element{value: it.Value()}
		if v.Type == bson.TypeObject {
			e.key = it.Key()
		}
		out = append(out, e)
	}
	if v.Type == bson.TypeObject {
		slices.SortStableFunc(out, func(a, b element) int { return strings.Compare(a.key, b.key) })
	}
	return out
}

// duplicate finds two values that are equal, field order apart.
func duplicate(values []bson.Value) (a, b bson.Value, found bool) {
	sorted := slices.Clone(values)
	slices.SortFunc(sorted, compareUnordered)
	for i := 1; i < len(sorted); i++ {
		if compareUnordered(sorted[i-1], sorted[i]) == 0 {
			return sorted[i-1], sorted[i], true
		}
	}
	return a, b, false
}
