package vectorsearch

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
)

// condition is a part of a filter. It sees the values that an index of filter fields has: elements of arrays one by one, and a field that
// is missing is none, where null is a value.
type condition interface {
	holds(d bson.Doc) bool
}

type (
	all  []condition
	some []condition
	not  struct{ c condition }
	// none is of a field that is not where the filter looks.
	none struct{}
	// exists is of a field that is there.
	exists struct{ path fieldpath.Path }
	// within holds where a value of the field has one of those values.
	within struct {
		path   fieldpath.Path
		values []bson.Value
	}
	// comparison holds where a value of the field compares so with one of the same kind.
	comparison struct {
		path  fieldpath.Path
		than  bson.Value
		right func(order int) bool
	}
)

func (cs all) holds(d bson.Doc) bool {
	for _, c := range cs {
		if !c.holds(d) {
			return false
		}
	}
	return true
}

func (cs some) holds(d bson.Doc) bool {
	for _, c := range cs {
		if c.holds(d) {
			return true
		}
	}
	return false
}

func (n not) holds(d bson.Doc) bool { return !n.c.holds(d) }

func (none) holds(bson.Doc) bool { return false }

func (e exists) holds(d bson.Doc) (found bool) {
	e.path.Values(d, fieldpath.Names, func(bson.Value) { found = true })
	return found
}

func (w within) holds(d bson.Doc) (found bool) {
	w.path.Values(d, fieldpath.Names, func(v bson.Value) {
		for _, want := range w.values {
			found = found || alike(v, want) && bson.Compare(v, want) == 0
		}
	})
	return found
}

func (o comparison) holds(d bson.Doc) (found bool) {
	o.path.Values(d, fieldpath.Names, func(v bson.Value) {
		found = found || alike(v, o.than) && !v.IsNaN() && o.right(bson.Compare(v, o.than))
	})
	return found
}

// alike says whether two values are of the same kind: numbers are, whatever their types.
func alike(a, b bson.Value) bool { return a.Type == b.Type || a.IsNumber() && b.IsNumber() }

// filterParser reads a filter of one index.
type filterParser struct {
	definition *Definition
	// nested says that the filter is about the documents of the root's array, and not about the one around.
	nested bool
}

func (p *filterParser) filter(d bson.Doc) (condition, error) {
	var cs all
	for it := d.Iter(); it.Next(); {
		c, err := p.part(it.Key(), it.Value())
		if err != nil {
			return nil, err
		}
		cs = append(cs, c)
	}
	return cs, nil
}

// part reads one field of a filter.
func (p *filterParser) part(name string, v bson.Value) (condition, error) {
	switch name {
	case "$and", "$or", "$nor":
		return p.combination(name, v)
	}
	if strings.HasPrefix(name, "$") {
		return nil, wrong(`the operator %s is not supported in a filter of $vectorSearch`, name)
	}
	if !p.definition.filters[name] {
		return nil, wrong(`Path '%s' needs to be indexed as filter`, name)
	}
	path, err := p.path(name)
	if err != nil {
		return nil, err
	}
	if v.Type != bson.TypeObject || !strings.HasPrefix(v.Doc().FirstKey(), "$") {
		return p.operator(path, "$eq", v)
	}
	return p.operators(path, v.Doc())
}

// path is where the filter finds a field; nil where that is not in what it looks at.
func (p *filterParser) path(name string) (*fieldpath.Path, error) {
	if p.definition.NestedRoot != "" {
		rest, below := p.definition.below(name)
		if below != p.nested {
			return nil, nil
		}
		if below {
			name = rest
		}
	}
	path, err := fieldpath.New(name)
	return &path, err
}

func (p *filterParser) combination(name string, v bson.Value) (condition, error) {
	if v.Type != bson.TypeArray || v.Doc().IsEmpty() {
		return nil, wrong(`%s must be a nonempty array`, name)
	}
	var cs []condition
	for it := v.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			return nil, wrong(`%s must have documents`, name)
		}
		c, err := p.filter(it.Value().Doc())
		if err != nil {
			return nil, err
		}
		cs = append(cs, c)
	}
	switch name {
	case "$and":
		return all(cs), nil
	case "$or":
		return some(cs), nil
	}
	return not{some(cs)}, nil
}

func (p *filterParser) operators(path *fieldpath.Path, d bson.Doc) (condition, error) {
	var cs all
	for it := d.Iter(); it.Next(); {
		c, err := p.operator(path, it.Key(), it.Value())
		if err != nil {
			return nil, err
		}
		cs = append(cs, c)
	}
	return cs, nil
}

func (p *filterParser) operator(path *fieldpath.Path, name string, v bson.Value) (condition, error) {
	c, negated, err := p.positive(path, name, v)
	if err != nil {
		return nil, err
	}
	if path == nil {
		c = none{}
	}
	if negated {
		return not{c}, nil
	}
	return c, nil
}

// positive reads an operator as one that holds where something is there, or the opposite of that.
func (p *filterParser) positive(path *fieldpath.Path, name string, v bson.Value) (c condition, negated bool, err error) {
	var at fieldpath.Path
	if path != nil {
		at = *path
	}
	switch name {
	case "$eq", "$ne":
		return within{at, []bson.Value{v.Clone()}}, name == "$ne", checkValue(v)
	case "$in", "$nin":
		values, err := list(name, v)
		return within{at, values}, name == "$nin", err
	case "$exists":
		if v.Type != bson.TypeBool {
			return nil, false, wrong(`$exists must be a boolean in a filter of $vectorSearch`)
		}
		return exists{at}, !v.Bool(), nil
	case "$not":
		if v.Type != bson.TypeObject || v.Doc().IsEmpty() {
			return nil, false, wrong(`$not must be a document with operators in a filter of $vectorSearch`)
		}
		c, err := p.operators(path, v.Doc())
		return c, true, err
	case "$gt", "$gte", "$lt", "$lte":
		if err := checkValue(v); err != nil {
			return nil, false, err
		}
		return comparison{at, v.Clone(), orders[name]}, false, nil
	}
	return nil, false, wrong(`the operator %s is not supported in a filter of $vectorSearch`, name)
}

var orders = map[string]func(int) bool{
	"$gt":  func(order int) bool { return order > 0 },
	"$gte": func(order int) bool { return order >= 0 },
	"$lt":  func(order int) bool { return order < 0 },
	"$lte": func(order int) bool { return order <= 0 },
}

// uuidSubtype is of the binaries that an index of filter fields has.
const uuidSubtype = 4

// checkValue refuses what an index of filter fields does not have.
func checkValue(v bson.Value) error {
	switch v.Type {
	case bson.TypeNull, bson.TypeBool, bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeString, bson.TypeDate, bson.TypeObjectID:
		return nil
	case bson.TypeBinary:
		if subtype, _ := v.Binary(); subtype == uuidSubtype {
			return nil
		}
	}
	return wrong(`a value of type %s is not supported in a filter of $vectorSearch`, v.Type)
}

// list reads the values of $in and $nin, which are of one kind.
func list(name string, v bson.Value) (values []bson.Value, err error) {
	if v.Type != bson.TypeArray || v.Doc().IsEmpty() {
		return nil, wrong(`%s must be a nonempty array in a filter of $vectorSearch`, name)
	}
	for it := v.Doc().Iter(); it.Next(); {
		e := it.Value()
		if err := checkValue(e); err != nil {
			return nil, err
		}
		if e.Type == bson.TypeNull {
			return nil, wrong(`%s cannot contain null in a filter of $vectorSearch`, name)
		}
		if len(values) > 0 && !alike(values[0], e) {
			return nil, wrong(`%s must contain values of one type in a filter of $vectorSearch`, name)
		}
		values = append(values, e.Clone())
	}
	return values, nil
}
