package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// ReplaceRoot is $replaceRoot and $replaceWith.
type ReplaceRoot struct {
	written
	NewRoot expr.Expr
}

func parseReplaceRoot(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(40229, "expected an object as specification for $replaceRoot stage, got %s", arg.Type)
	}
	newRoot := bson.Missing
	if err := readStrict("$replaceRoot", arg.Doc(), want{name: "newRoot", to: &newRoot}); err != nil {
		return nil, err
	}
	if newRoot.IsMissing() {
		return nil, mongoerr.New(40414, "BSON field '$replaceRoot.newRoot' is missing but a required field")
	}
	return p.replaceRoot("$replaceRoot", arg, newRoot)
}

func parseReplaceWith(p *parsing, arg bson.Value) ([]Stage, error) {
	return p.replaceRoot("$replaceWith", arg, arg)
}

func (p *parsing) replaceRoot(name string, spec, newRoot bson.Value) ([]Stage, error) {
	e, err := p.Exprs.Parse(newRoot, p.Scope)
	if err != nil {
		return nil, err
	}
	return one(&ReplaceRoot{written{name, spec}, e}), nil
}

func (r *ReplaceRoot) needs(d *Dependencies) bool {
	d.exprs(r.NewRoot)
	return false
}
