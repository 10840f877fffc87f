// Package expr is the aggregation expression language: expressions are parsed once into trees and evaluated on raw
// documents. It knows nothing of stages, collections, storage or the clock; what an evaluation may see is in its Env.
package expr

import "github.com/ebbdb/ebb/internal/bson"

// Limits of the language. MongoDB bounds depth by the nesting of documents.
const (
	// MaxDepth is how deep expressions may nest.
	MaxDepth = 200
	// MaxValueBytes is how large one array or object may grow while it is computed.
	MaxValueBytes = bson.MaxInternalSize
	// MaxStringBytes is how long a computed string may be.
	MaxStringBytes = 16 << 20
	// MaxPatternBytes is how long a regular expression may be.
	MaxPatternBytes = 16 << 10
	// MaxArrayBytes is how much memory the elements that one operator holds at once may take.
	MaxArrayBytes = 100 << 20
	// maxComputedBytes is how large all constants that one Parser computes may be together: a few bytes of a command may
	// stand for many megabytes.
	maxComputedBytes = 32 << 20
	// smallBytes is how large a constant may be that is computed even then, as it is not much more than what it stands for.
	smallBytes = 256
)

// Expr is a parsed expression. It is immutable, so any number of goroutines may evaluate it, each with an Env of its own.
type Expr interface {
	// Eval is the expression's value for the Env's document; a missing Value where MongoDB has no value. The value may share
	// the bytes of the document, of the expression and of the Env: it is good until the Env is Reset and the document goes.
	Eval(env *Env) (bson.Value, error)
	// Value is the expression written back as a value that parses to the same, as explain shows it.
	Value() bson.Value

	// children are the expressions directly below, in order.
	children() []Expr
	// fold is the expression with all that does not depend on the document computed.
	fold(p *Parser) (Expr, error)
}

// Constant is the value of e when it does not depend on anything, and whether that is so.
func Constant(e Expr) (v bson.Value, ok bool) {
	if c, ok := e.(*constant); ok {
		return c.v, true
	}
	return bson.Missing, false
}

// Literal is the expression that always is v.
func Literal(v bson.Value) Expr { return &constant{v: v} }

func plain(v bson.Value) Expr { return &constant{v: v, plain: true} }

// constant is a value. A plain one stands where operators take no expression, so it is written as it is.
type constant struct {
	v        bson.Value
	plain    bool
	computed bool // counts as what its Parser has computed
}

func (c *constant) Eval(env *Env) (bson.Value, error) { return env.read(c.v), nil }

func (c *constant) Value() bson.Value {
	switch {
	case c.plain:
		return c.v
	case c.v.IsMissing():
		return bson.String("$$REMOVE")
	}
	return bson.Build().Value("$const", c.v).Doc().Value()
}

func (c *constant) children() []Expr           { return nil }
func (c *constant) fold(*Parser) (Expr, error) { return c, nil }
