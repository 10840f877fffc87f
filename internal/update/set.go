package update

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
)

// set is values that others are looked up in. Large sets are sorted, so that a hostile pair of arrays costs no product of
// their lengths.
type set struct {
	values   []bson.Value
	sorted   bool
	collator bson.Collator
}

// linearLookups is up to how many comparisons a set is searched from front to back.
const linearLookups = 256

// newSet prepares values for a number of look-ups.
func newSet(values []bson.Value, lookups int, c bson.Collator) set {
	s := set{values: values, collator: c}
	if len(values)*lookups > linearLookups && lookups > 4 {
		s.values = slices.Clone(values)
		slices.SortFunc(s.values, s.compare)
		s.sorted = true
	}
	return s
}

func (s *set) compare(a, b bson.Value) int { return bson.CompareWith(a, b, s.collator) }

func (s *set) has(v bson.Value) bool {
	if s.sorted {
		_, ok := slices.BinarySearchFunc(s.values, v, s.compare)
		return ok
	}
	for i := range s.values {
		if s.compare(s.values[i], v) == 0 {
			return true
		}
	}
	return false
}

// distinct is values in their order without those that equal an earlier one.
func distinct(values []bson.Value, c bson.Collator) []bson.Value {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return bson.CompareWith(values[i], values[j], c) })
	order = slices.CompactFunc(order, func(i, j int) bool { return bson.CompareWith(values[i], values[j], c) == 0 })
	slices.Sort(order)
	out := make([]bson.Value, len(order))
	for i, j := range order {
		out[i] = values[j]
	}
	return out
}
