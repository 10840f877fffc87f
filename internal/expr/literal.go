package expr

import "github.com/ebbdb/ebb/internal/bson"

// object builds a document of expressions: {a: <e>, b: <e>}.
type object struct {
	keys []string
	of   []Expr
}

func (o *object) Eval(env *Env) (bson.Value, error) {
	vs, mark, err := env.evalAll(o.of)
	if err != nil {
		return bson.Missing, err
	}
	v, err := env.Object(o.keys, vs)
	env.stack = env.stack[:mark]
	return v, err
}

func (o *object) Value() bson.Value {
	b := bson.Build()
	for i, e := range o.of {
		b.Value(o.keys[i], e.Value())
	}
	return b.Doc().Value()
}

func (o *object) children() []Expr { return o.of }

func (o *object) fold(p *Parser) (Expr, error) {
	if all, err := p.foldAll(o.of); err != nil || !all {
		return o, err
	}
	return p.compute(o)
}

// array builds an array of expressions: [<e>, <e>].
type array struct{ of []Expr }

func (a *array) Eval(env *Env) (bson.Value, error) {
	vs, mark, err := env.evalAll(a.of)
	if err != nil {
		return bson.Missing, err
	}
	v, err := env.Array(vs)
	env.stack = env.stack[:mark]
	return v, err
}

func (a *array) Value() bson.Value { return valuesOf(a.of) }
func (a *array) children() []Expr  { return a.of }

func (a *array) fold(p *Parser) (Expr, error) {
	if all, err := p.foldAll(a.of); err != nil || !all {
		return a, err
	}
	return p.compute(a)
}

// tuple is an array that stays one when it is written: operators want the list itself.
type tuple struct {
	array
	constant bool
}

func (t *tuple) fold(p *Parser) (Expr, error) {
	var err error
	t.constant, err = p.foldAll(t.of)
	return t, err
}

func valuesOf(es []Expr) bson.Value {
	vs := make([]bson.Value, len(es))
	for i, e := range es {
		vs[i] = e.Value()
	}
	return bson.ArrayOf(vs...)
}

// evalAll evaluates es onto the stack. The caller cuts the stack back to mark when it is done with the values.
func (e *Env) evalAll(es []Expr) (vs []bson.Value, mark int, err error) {
	live := e.live
	vs, mark, err = e.keepAll(es)
	e.live = live
	return vs, mark, err
}

// keepAll is evalAll for a caller that evaluates more beside the values, and sets live back itself.
func (e *Env) keepAll(es []Expr) (vs []bson.Value, mark int, err error) {
	mark = len(e.stack)
	for _, x := range es {
		v := bson.Missing
		if x != nil {
			if v, err = e.keep(x); err != nil {
				e.stack = e.stack[:mark]
				return nil, mark, err
			}
		}
		e.stack = append(e.stack, v)
	}
	return e.stack[mark:len(e.stack):len(e.stack)], mark, nil
}
