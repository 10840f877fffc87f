package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
)

// Redact is $redact.
type Redact struct {
	written
	Expr expr.Expr
	// Current is where the document at hand goes: $$CURRENT is the level that is looked at.
	Current expr.Slot
}

// The values that $$DESCEND, $$PRUNE and $$KEEP stand for.
const (
	RedactDescend = "descend"
	RedactPrune   = "prune"
	RedactKeep    = "keep"
)

func parseRedact(p *parsing, arg bson.Value) ([]Stage, error) {
	scope, current := p.Scope.Define("CURRENT")
	scope = scope.Constant("DESCEND", bson.String(RedactDescend))
	scope = scope.Constant("PRUNE", bson.String(RedactPrune))
	scope = scope.Constant("KEEP", bson.String(RedactKeep))
	e, err := p.Exprs.Parse(arg, scope)
	if err != nil {
		return nil, err
	}
	return one(&Redact{written: written{"$redact", arg}, Expr: e, Current: current}), nil
}

func (r *Redact) needs(d *Dependencies) bool {
	d.exprs(r.Expr)
	return d.everything()
}
