package update

import (
	"math"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/ordering"
)

// arrayOperators are the operators on arrays that add elements or take them by position.
func arrayOperators() []Operator {
	return []Operator{
		{Name: "$push", Doc: "Adds elements to an array; $each, $position, $sort and $slice say how.", Since: "1.0", Creates: true, parse: parsePush},
		{Name: "$addToSet", Doc: "Adds elements that an array does not hold yet.", Since: "1.3", Creates: true, parse: parseAddToSet},
		{Name: "$pop", Doc: "Removes the first or the last element of an array.", Since: "1.1", parse: parsePop},
	}
}

// arrayOf appends an array of the values.
func arrayOf(dst []byte, values []bson.Value) []byte {
	dst, start := openDoc(dst)
	for i, v := range values {
		dst, _ = head(dst, v.Type, bson.IndexKey(i))
		dst = append(dst, v.Data...)
	}
	return closeDoc(dst, start)
}

// values are the elements of an array, in a slice that the next call uses again.
func (a *applier) values(array bson.Value) []bson.Value {
	a.elements = array.Doc().Values(a.elements[:0])
	return a.elements
}

// push is $push: values go in at position, then the array is sorted, then cut.
type push struct {
	values   []bson.Value
	position int64
	slice    int64
	sort     *arraySort
}

const noLimit = math.MaxInt64

func parsePush(p *parser, path string, v bson.Value) (modifier, error) {
	m := &push{position: noLimit, slice: noLimit}
	if v.Type != bson.TypeObject || v.Doc().Lookup("$each").IsMissing() {
		m.values = []bson.Value{v}
		return m, nil
	}
	seen := map[string]bool{}
	for it := v.Doc().Iter(); it.Next(); {
		name, arg := it.Key(), it.Value()
		if seen[name] {
			return nil, mongoerr.New(mongoerr.BadValue, "Only one %s is supported.", name)
		}
		seen[name] = true
		var err error
		switch name {
		case "$each":
			if arg.Type != bson.TypeArray {
				return nil, mongoerr.New(mongoerr.BadValue, "The argument to $each in $push must be an array but it was of type: %s", arg.Type)
			}
			m.values = arg.Doc().Values(nil)
		case "$slice":
			m.slice, err = clauseInt(name, arg)
		case "$position":
			m.position, err = clauseInt(name, arg)
		case "$sort":
			m.sort, err = parseArraySort(arg, p.collator)
		default:
			return nil, mongoerr.New(mongoerr.BadValue, "Unrecognized clause in $push: %s", name)
		}
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// clauseInt reads the number of a $push clause.
func clauseInt(name string, v bson.Value) (int64, error) {
	if !v.IsNumber() {
		return 0, mongoerr.New(mongoerr.BadValue, "The value for %s must be an integer value but was given type: %s", name, v.Type)
	}
	n, exact := v.AsInt64()
	if !exact {
		return 0, mongoerr.New(mongoerr.BadValue, "The value for %s must be an integer value but was given: {%s}", name, element(name, v))
	}
	return n, nil
}

func (m *push) apply(a *applier, dst []byte, old bson.Value) ([]byte, bson.Type, effect, error) {
	existed := old.Type == bson.TypeArray
	switch {
	case existed:
	case old.IsMissing():
		old = bson.EmptyArr
	default:
		return dst, 0, unchanged, mongoerr.New(mongoerr.BadValue, "The field '%s' must be an array but is of type %s in document {%s}",
			a.dotted(), old.Type, a.idText())
	}
	if m.position == noLimit && m.slice == noLimit && m.sort == nil && len(m.values) > 0 {
		return m.append(dst, old.Doc()), bson.TypeArray, replaced, nil
	}
	values := a.values(old)
	count := len(values)
	values = slices.Insert(values, m.at(count), m.values...)
	a.elements = values
	if m.sort != nil {
		if err := m.sort.sort(values, a.ask()); err != nil {
			return dst, 0, unchanged, err
		}
	}
	switch n := int64(len(values)); {
	case m.slice >= 0 && n > m.slice:
		values = values[:m.slice]
	case m.slice < 0 && m.slice > -n:
		values = values[n+m.slice:]
	}
	if existed && len(m.values) == 0 && m.sort == nil && len(values) == count {
		return keep(dst)
	}
	return arrayOf(dst, values), bson.TypeArray, replaced, nil
}

// append is the common case, which takes the array as it is.
func (m *push) append(dst []byte, array bson.Doc) []byte {
	start, n := len(dst), array.Count()
	dst = append(dst, array[:len(array)-1]...)
	for i, v := range m.values {
		dst, _ = head(dst, v.Type, bson.IndexKey(n+i))
		dst = append(dst, v.Data...)
	}
	return closeDoc(dst, start)
}

// at is where in an array of n elements the new ones go.
func (m *push) at(n int) int {
	switch {
	case m.position >= int64(n):
		return n
	case m.position >= 0:
		return int(m.position)
	case m.position <= -int64(n):
		return 0
	}
	return n + int(m.position)
}

// arraySort is the order that a $sort clause asks for.
type arraySort struct {
	whole    int // 1 or -1 when elements are compared as a whole
	fields   []sortField
	collator bson.Collator
}

type sortField struct {
	parts []string
	sign  int
}

func parseArraySort(v bson.Value, c bson.Collator) (*arraySort, error) {
	bad := func(text string) (*arraySort, error) { return nil, mongoerr.New(mongoerr.BadValue, "%s", text) }
	const badValue = "The $sort element value must be either 1 or -1"
	switch {
	case v.IsNumber():
		sign := signOf(v)
		if sign == 0 {
			return bad(badValue)
		}
		return &arraySort{whole: sign, collator: c}, nil
	case v.Type != bson.TypeObject:
		return bad("The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields")
	case v.Doc().IsEmpty():
		return bad("The $sort pattern is empty when it should be a set of fields.")
	}
	s := &arraySort{collator: c}
	for it := v.Doc().Iter(); it.Next(); {
		f := sortField{strings.Split(it.Key(), "."), signOf(it.Value())}
		switch {
		case f.sign == 0:
			return bad(badValue)
		case it.Key() == "":
			return bad("The $sort field cannot be empty")
		case slices.Contains(f.parts, ""):
			return nil, mongoerr.New(mongoerr.BadValue, "The $sort field is a dotted field but has an empty part: %s", it.Key())
		}
		s.fields = append(s.fields, f)
	}
	return s, nil
}

// signOf is 1 or -1 for these numbers, else 0.
func signOf(v bson.Value) int {
	if !v.IsNumber() {
		return 0
	}
	switch v.AsDouble() {
	case 1:
		return 1
	case -1:
		return -1
	}
	return 0
}

func (s *arraySort) sort(values []bson.Value, ask func() error) error {
	size := func(v bson.Value) int { return len(v.Data) }
	if s.whole != 0 {
		return ordering.StableSized(values, func(a, b bson.Value) int { return s.whole * bson.CompareWith(a, b, s.collator) }, size, ask)
	}
	return ordering.StableSized(values, func(a, b bson.Value) int {
		for i := range s.fields {
			f := &s.fields[i]
			if c := bson.CompareWith(f.of(a), f.of(b), s.collator); c != 0 {
				return c * f.sign
			}
		}
		return 0
	}, size, ask)
}

// of is the field in v, null when it is not there.
func (f *sortField) of(v bson.Value) bson.Value {
	for _, part := range f.parts {
		switch n := position(part); {
		case v.Type == bson.TypeObject:
			v = v.Doc().Lookup(part)
		case v.Type == bson.TypeArray && n >= 0:
			v = v.Doc().Index(n)
		default:
			return bson.Null
		}
	}
	if v.IsMissing() {
		return bson.Null
	}
	return v
}

// addToSet is $addToSet with values that differ from each other.
type addToSet struct {
	values   []bson.Value
	collator bson.Collator
}

func parseAddToSet(p *parser, path string, v bson.Value) (modifier, error) {
	m := &addToSet{collator: p.collator}
	if v.Type != bson.TypeObject || v.Doc().FirstKey() != "$each" {
		m.values = []bson.Value{v}
		return m, nil
	}
	each := v.Doc().Lookup("$each")
	if each.Type != bson.TypeArray {
		return nil, mongoerr.New(mongoerr.TypeMismatch, "The argument to $each in $addToSet must be an array but it was of type %s", each.Type)
	}
	if v.Doc().Count() > 1 {
		return nil, mongoerr.New(mongoerr.BadValue, "Found unexpected fields after $each in $addToSet: %s", v)
	}
	m.values = distinct(each.Doc().Values(nil), m.collator)
	return m, nil
}

func (m *addToSet) apply(a *applier, dst []byte, old bson.Value) ([]byte, bson.Type, effect, error) {
	switch old.Type {
	case bson.TypeMissing:
		return arrayOf(dst, m.values), bson.TypeArray, replaced, nil
	case bson.TypeArray:
	default:
		return dst, 0, unchanged, mongoerr.New(mongoerr.BadValue,
			"Cannot apply $addToSet to non-array field. Field named '%s' has non-array type %s", a.path[len(a.path)-1], old.Type)
	}
	values := a.values(old)
	count := len(values)
	there := newSet(values, len(m.values), m.collator)
	for _, v := range m.values {
		if !there.has(v) {
			values = append(values, v)
		}
	}
	a.elements = values
	if len(values) == count {
		return keep(dst)
	}
	return arrayOf(dst, values), bson.TypeArray, replaced, nil
}

// pop is $pop.
type pop struct{ first bool }

func parsePop(_ *parser, path string, v bson.Value) (modifier, error) {
	n, err := parseInteger(path, v)
	if err != nil {
		return nil, err
	}
	if n != 1 && n != -1 {
		return nil, mongoerr.New(mongoerr.FailedToParse, "$pop expects 1 or -1, found: %d", n)
	}
	return pop{n == -1}, nil
}

// parseInteger reads a number that must be integral.
func parseInteger(path string, v bson.Value) (int64, error) {
	n, exact := v.AsInt64()
	switch {
	case exact:
		return n, nil
	case !v.IsNumber():
		return 0, mongoerr.New(mongoerr.FailedToParse, "Expected a number in: %s", element(path, v))
	case v.IsNaN():
		return 0, mongoerr.New(mongoerr.FailedToParse, "Expected an integer, but found NaN in: %s", element(path, v))
	case v.IsIntegral():
		return 0, mongoerr.New(mongoerr.FailedToParse, "Cannot represent as a 64-bit integer: %s", element(path, v))
	}
	return 0, mongoerr.New(mongoerr.FailedToParse, "Expected an integer: %s", element(path, v))
}

func (m pop) apply(a *applier, dst []byte, old bson.Value) ([]byte, bson.Type, effect, error) {
	if old.Type != bson.TypeArray {
		return dst, 0, unchanged, mongoerr.New(mongoerr.TypeMismatch, "Path '%s' contains an element of non-array type '%s'", a.dotted(), old.Type)
	}
	values := a.values(old)
	switch {
	case len(values) == 0:
		return keep(dst)
	case m.first:
		values = values[1:]
	default:
		values = values[:len(values)-1]
	}
	return arrayOf(dst, values), bson.TypeArray, replaced, nil
}
