package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
)

// Operator is a row of a family's table. One of the two functions may be missing: field parses the operator behind a path
// (beside are all operators behind that path), top parses it in the place of a path. Both may return no Node for operators
// that say nothing by themselves.
type Operator struct {
	Name  string
	Doc   string
	Since string
	field func(p *parsing, path fieldpath.Path, arg bson.Value, beside bson.Doc) (Node, error)
	top   func(p *parsing, arg bson.Value) (Node, error)
}

// families are the tables of all operators.
func families() [][]Operator {
	return [][]Operator{
		comparisonOperators(),
		logicalOperators(),
		elementOperators(),
		arrayOperators(),
		evaluationOperators(),
		bitwiseOperators(),
		geoOperators(),
		miscellaneousOperators(),
	}
}
