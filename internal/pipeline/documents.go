package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Documents is $documents.
type Documents struct {
	written
	// Array comes to an array of documents.
	Array expr.Expr
}

func parseDocuments(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type == bson.TypeObject && arg.Doc().IsEmpty() { // MongoDB makes it a field of a projection
		return nil, mongoerr.New(51270, "Invalid empty sub-projection: _tempDocumentsField")
	}
	e, err := p.Exprs.Parse(arg, p.Scope)
	if err != nil {
		return nil, err
	}
	if v, constant := expr.Constant(e); constant && v.Type != bson.TypeArray && p.NS.Coll == "" { // on a collection it is refused for that
		return nil, mongoerr.New(5858203, "an array is expected")
	}
	return one(&Documents{written{"$documents", arg}, e}), nil
}

func (s *Documents) needs(d *Dependencies) bool {
	d.draws(s.Array)
	return false
}
