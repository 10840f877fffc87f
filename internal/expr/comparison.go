package expr

import (
	"slices"

	"github.com/ebbdb/ebb/internal/fieldpath"
)

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
	if name, args := Operation(e); name == "$and" {
		for _, arg := range args {
			dst = comparisons(dst, arg)
		}
	} else if c, ok := ComparisonOf(e); ok {
		dst = append(dst, c)
	}
	return dst
}

// ComparisonOf is the comparison that e itself is.
func ComparisonOf(e Expr) (Comparison, bool) {
	name, args := Operation(e)
	if mirrored(name) == "" {
		return Comparison{}, false
	}
	if path, ok := FieldOf(args[0]); ok && isBound(args[1]) {
		return Comparison{name, path, args[1]}, true
	}
	if path, ok := FieldOf(args[1]); ok && isBound(args[0]) {
		return Comparison{mirrored(name), path, args[0]}, true
	}
	return Comparison{}, false
}

// Operation is the operator that e calls, and the arguments; "" when it calls none.
func Operation(e Expr) (name string, args []Expr) {
	if c, ok := e.(*call); ok {
		return c.op.Name, c.args
	}
	return "", nil
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

// isBound says whether e is a constant or read from a variable.
func isBound(e Expr) bool {
	switch e := e.(type) {
	case *constant, *variable:
		return true
	case *subField:
		return isBound(e.of)
	}
	return false
}

// IsGiven says whether e is a constant, read from a variable, or an array of such.
func IsGiven(e Expr) bool {
	if a, ok := e.(*array); ok {
		return !slices.ContainsFunc(a.of, func(e Expr) bool { return !IsGiven(e) })
	}
	return isBound(e)
}
