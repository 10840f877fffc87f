package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/fieldpath"
)

func comparisonOperators() []Operator {
	return []Operator{
		{Name: "$eq", Doc: "Matches values that are equal to a value.", Since: "3.0", field: compareWith(Eq)},
		{Name: "$gt", Doc: "Matches values that are greater than a value of the same type.", Since: "1.0", field: compareWith(Gt)},
		{Name: "$gte", Doc: "Matches values that are greater than or equal to a value of the same type.", Since: "1.0", field: compareWith(Gte)},
		{Name: "$lt", Doc: "Matches values that are less than a value of the same type.", Since: "1.0", field: compareWith(Lt)},
		{Name: "$lte", Doc: "Matches values that are less than or equal to a value of the same type.", Since: "1.0", field: compareWith(Lte)},
		{Name: "$ne", Doc: "Matches what $eq does not.", Since: "1.0", field: parseNe},
		{Name: "$in", Doc: "Matches values that equal one in an array, or match a regular expression in it.", Since: "1.0", field: parseIn},
		{Name: "$nin", Doc: "Matches what $in does not.", Since: "1.0", field: parseNin},
	}
}

// CompareOp is how a Compare compares.
type CompareOp uint8

// The comparisons.
const (
	Eq CompareOp = iota
	Lt
	Lte
	Gt
	Gte
)

// String is the operator's name.
func (op CompareOp) String() string { return [...]string{"$eq", "$lt", "$lte", "$gt", "$gte"}[op] }

// Compare compares what Path reaches with Value. Only values of the same class compare, but for MinKey and MaxKey as Value,
// with which every value does, and a missing value, which equals null.
type Compare struct {
	Path      fieldpath.Path
	Op        CompareOp
	Value     bson.Value
	Collation *collation.Collation
}

func (n *Compare) match(c run, s subject) (bool, error) {
	return matchPath(n, c, n.Path, fieldpath.Traverse, s)
}

func (n *Compare) test(_ run, v bson.Value) (bool, error) {
	if v.Type != n.Value.Type && v.Type.Class() != n.Value.Type.Class() {
		return n.testAcrossTypes(v), nil
	}
	if n.Op != Eq && v.IsNumber() {
		if a, b := v.IsNaN(), n.Value.IsNaN(); a || b {
			return a && b && (n.Op == Lte || n.Op == Gte), nil
		}
	}
	return n.Op.holds(compareUnder(n.Collation, v, n.Value)), nil
}

func compareUnder(c *collation.Collation, a, b bson.Value) int {
	if c == nil {
		return bson.Compare(a, b)
	}
	return bson.CompareWith(a, b, c)
}

func (op CompareOp) holds(order int) bool {
	switch op {
	case Lt:
		return order < 0
	case Lte:
		return order <= 0
	case Gt:
		return order > 0
	case Gte:
		return order >= 0
	}
	return order == 0
}

func (n *Compare) testAcrossTypes(v bson.Value) bool {
	switch n.Value.Type {
	case bson.TypeNull:
		return v.IsMissing() && n.Op != Lt && n.Op != Gt
	case bson.TypeMaxKey:
		return n.Op == Lt || n.Op == Lte
	case bson.TypeMinKey:
		return n.Op == Gt || n.Op == Gte
	}
	return false
}

func compareWith(op CompareOp) func(*parsing, fieldpath.Path, bson.Value, bson.Doc) (Node, error) {
	return func(p *parsing, path fieldpath.Path, arg bson.Value, _ bson.Doc) (Node, error) {
		return p.compare(path, op, arg)
	}
}

func (p *parsing) compare(path fieldpath.Path, op CompareOp, v bson.Value) (Node, error) {
	switch {
	case v.Type == bson.TypeUndefined:
		return nil, badValue("cannot compare to undefined")
	case v.Type == bson.TypeRegex && op != Eq:
		return nil, badValue("Can't have RegEx as arg to predicate over field '%s'.", path)
	}
	return &Compare{path, op, v, p.Collation}, nil
}

func parseNe(p *parsing, path fieldpath.Path, arg bson.Value, _ bson.Doc) (Node, error) {
	if arg.Type == bson.TypeRegex {
		return nil, badValue("Can't have regex as arg to $ne.")
	}
	n, err := p.compare(path, Eq, arg)
	if err != nil {
		return nil, err
	}
	return &Not{n}, nil
}
