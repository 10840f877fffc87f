package expr

import "github.com/ebbdb/ebb/internal/fieldpath"

// Comparison is that of a field of the document with a value that no document decides.
type Comparison struct {
	// Op is $eq, $lt, $lte, $gt or $gte, with the field on the left.
	Op   string
	Path fieldpath.Path
	// Than is a constant, or read from variables.
	Than Expr
}

// Comparisons are some of those that hold where e is true: e itself, or what it joins by $and.
func Comparisons(e Expr) []Comparison { return comparisons(nil, e) }

func comparisons(dst []Comparison, e Expr) []Comparison {
	c, ok := e.(*call)
	switch {
	case !ok:
	case c.op.Name == "$and":
		for _, arg := range c.args {
			dst = comparisons(dst, arg)
		}
	case mirrored(c.op.Name) != "":
		if f, ok := c.args[0].(*field); ok && isGiven(c.args[1]) {
			return append(dst, Comparison{c.op.Name, f.path, c.args[1]})
		}
		if f, ok := c.args[1].(*field); ok && isGiven(c.args[0]) {
			return append(dst, Comparison{mirrored(c.op.Name), f.path, c.args[0]})
		}
	}
	return dst
}

// mirrored is the operator that says the same with its arguments swapped; "" for those that bound nothing.
func mirrored(op string) string {
	switch op {
	case "$eq":
		return "$eq"
	case "$lt":
		return "$gt"
	case "$lte":
		return "$gte"
	case "$gt":
		return "$lt"
	case "$gte":
		return "$lte"
	}
	return ""
}

// isGiven says whether e is a constant or read from a variable.
func isGiven(e Expr) bool {
	switch e := e.(type) {
	case *constant, *variable:
		return true
	case *subField:
		return isGiven(e.of)
	}
	return false
}
