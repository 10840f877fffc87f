package expr

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func lambdaOperators() []Operator {
	return []Operator{
		{Name: "$filter", Since: "3.2", Doc: "The elements of an array for which a condition holds.", Shape: special(parseFilter)},
		{Name: "$map", Since: "2.6", Doc: "An array of what an expression makes of each element.", Shape: special(parseMap)},
		{Name: "$reduce", Since: "3.4", Doc: "One value that an expression makes of all elements in turn.", Shape: special(parseReduce)},
	}
}

// lambda is an operator that evaluates an expression for each element of an array.
type lambda struct {
	op    *Operator
	input Expr
	as    string
	this  Slot
	body  Expr // in, or cond
	limit Expr // of $filter; may be nil

	initial Expr // of $reduce
	value   Slot // $$value of $reduce

	eval func(env *Env, l *lambda, array bson.Value) (bson.Value, error)
	// code is the error for an input that is no array.
	code mongoerr.Code
}

// lambdaFields reads the fields of a lambda's argument by name.
func lambdaFields(op *Operator, arg bson.Value, notObject, unknown mongoerr.Code, names ...string) (map[string]bson.Value, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(notObject, "%s only supports an object as its argument", op.Name)
	}
	out := make(map[string]bson.Value, len(names))
	for it := arg.Doc().Iter(); it.Next(); {
		known := false
		for _, n := range names {
			known = known || n == it.Key()
		}
		if !known {
			return nil, mongoerr.New(unknown, "Unrecognized parameter to %s: %s", op.Name, it.Key())
		}
		out[it.Key()] = it.Value()
	}
	return out, nil
}

func missingField(op *Operator, code mongoerr.Code, name string) error {
	return mongoerr.New(code, lacksParameter, op.Name, name)
}

// parseAs defines the variable that "as" names, this without it.
func (l *lambda) parseAs(fields map[string]bson.Value, scope *Scope) (*Scope, error) {
	l.as = "this"
	if as, given := fields["as"]; given {
		l.as = ""
		if as.Type == bson.TypeString {
			l.as = as.Str()
		}
		if err := CheckVariableName(l.as); err != nil {
			return nil, err
		}
	}
	scope, l.this = scope.Define(l.as)
	return scope, nil
}

func parseMap(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	f, err := lambdaFields(op, arg, 16878, 16879, "input", "as", "in")
	if err != nil {
		return nil, err
	}
	if f["input"].IsMissing() {
		return nil, missingField(op, 16880, "input")
	}
	if f["in"].IsMissing() {
		return nil, missingField(op, 16882, "in")
	}
	l := &lambda{op: op, eval: evalMap, code: 16883}
	if l.input, err = p.parse(f["input"], scope); err != nil {
		return nil, err
	}
	inner, err := l.parseAs(f, scope)
	if err != nil {
		return nil, err
	}
	l.body, err = p.parse(f["in"], inner)
	return l, err
}

func parseFilter(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	f, err := lambdaFields(op, arg, 28646, 28647, "input", "as", "cond", "limit")
	if err != nil {
		return nil, err
	}
	if f["input"].IsMissing() {
		return nil, missingField(op, 28648, "input")
	}
	if f["cond"].IsMissing() {
		return nil, missingField(op, 28650, "cond")
	}
	l := &lambda{op: op, eval: evalFilter, code: 28651}
	if l.input, err = p.parse(f["input"], scope); err != nil {
		return nil, err
	}
	inner, err := l.parseAs(f, scope)
	if err != nil {
		return nil, err
	}
	if l.body, err = p.parse(f["cond"], inner); err != nil {
		return nil, err
	}
	if v, given := f["limit"]; given {
		l.limit, err = p.parse(v, scope)
	}
	return l, err
}

func parseReduce(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	f, err := lambdaFields(op, arg, 40075, 40076, "input", "initialValue", "in")
	if err != nil {
		return nil, err
	}
	for i, name := range []string{"input", "initialValue", "in"} {
		if f[name].IsMissing() {
			return nil, mongoerr.New(mongoerr.Code(40077+i), "%s requires '%s' to be specified", op.Name, name)
		}
	}
	l := &lambda{op: op, eval: evalReduce, code: 40080}
	if l.input, err = p.parse(f["input"], scope); err != nil {
		return nil, err
	}
	if l.initial, err = p.parse(f["initialValue"], scope); err != nil {
		return nil, err
	}
	var inner *Scope
	inner, l.this = scope.Define("this")
	inner, l.value = inner.Define("value")
	l.body, err = p.parse(f["in"], inner)
	return l, err
}

func (l *lambda) Eval(env *Env) (bson.Value, error) {
	mark, live := len(env.stack), env.live
	defer func() {
		env.cut(mark)
		env.live = live
	}()
	array, err := env.keep(l.input)
	switch {
	case err != nil:
		return array, err
	case array.IsNullish():
		return bson.Null, nil
	case array.Type != bson.TypeArray:
		return array, mongoerr.New(l.code, "input to %s must be an array not %s", l.op.Name, array.Type)
	}
	env.places.enter()
	defer env.places.leave()
	return l.eval(env, l, array)
}

func evalMap(env *Env, l *lambda, array bson.Value) (bson.Value, error) {
	mark := len(env.stack)
	size := 0
	for it := array.Doc().Iter(); it.Next(); {
		env.Set(l.this, it.Value())
		v, err := env.keep(l.body)
		if err == nil {
			err = env.tick()
		}
		if size += len(v.Data) + 16; err == nil && size > MaxArrayBytes {
			err = mongoerr.New(mongoerr.ExceededMemoryLimit,
				"$map would use too much memory (%d bytes) and cannot spill to disk. Memory limit: %d bytes", size, MaxArrayBytes)
		}
		if err != nil {
			return v, err
		}
		env.stack = append(env.stack, v)
	}
	return env.arrayFrom(mark)
}

func evalFilter(env *Env, l *lambda, array bson.Value) (bson.Value, error) {
	limit := int32(-1)
	if l.limit != nil {
		v, err := l.limit.Eval(env)
		if err != nil {
			return v, err
		}
		if !v.IsNullish() {
			n, ok := int32Of(v)
			if !ok {
				return v, mongoerr.New(327391, "$filter: limit must be represented as a 32-bit integral value: %s", v.Computed())
			}
			if n <= 0 {
				return v, mongoerr.New(327392, "$filter: limit must be greater than 0: %s", v.Computed())
			}
			limit = n
		}
	}
	mark := len(env.stack)
	for it := array.Doc().Iter(); limit != 0 && it.Next(); {
		env.Set(l.this, it.Value())
		v, err := l.body.Eval(env)
		if err == nil {
			err = env.tick()
		}
		if err != nil {
			return v, err
		}
		if v.Truthy() {
			env.stack = append(env.stack, it.Value())
			limit--
		}
	}
	return env.arrayFrom(mark)
}

const (
	// maxReducedLevels is how deep what $reduce makes may nest: MongoDB's limit.
	maxReducedLevels = 2 * bson.MaxDepth
	// turnsPerLook is after how many turns its depth is looked at. What is deeper by what they add hurts nobody.
	turnsPerLook = 100
)

func deeper(v bson.Value) bool {
	return (v.Type == bson.TypeObject || v.Type == bson.TypeArray) && v.Doc().NestsDeeper(maxReducedLevels)
}

func evalReduce(env *Env, l *lambda, array bson.Value) (bson.Value, error) {
	live := env.live
	value, err := env.keep(l.initial)
	if err != nil {
		return value, err
	}
	i := 0
	for it := array.Doc().Iter(); it.Next(); i++ {
		if i%turnsPerLook == 0 && deeper(value) {
			return value, mongoerr.New(mongoerr.Overflow, "$reduce accumulated value exceeded max allowable BSON depth")
		}
		env.Set(l.this, it.Value())
		env.Set(l.value, value)
		if value, err = env.keep(l.body); err == nil {
			err = env.tick()
		}
		env.live = min(env.live, live+len(value.Data)) // the value before is gone
		if err != nil {
			return value, err
		}
	}
	return value, nil
}

func (l *lambda) Value() bson.Value {
	b := bson.Build().Object(l.op.Name).Value("input", l.input.Value())
	switch l.op.Name {
	case "$reduce":
		b.Value("initialValue", l.initial.Value()).Value("in", l.body.Value())
	case "$map":
		b.String("as", l.as).Value("in", l.body.Value())
	default:
		b.String("as", l.as).Value("cond", l.body.Value())
		if l.limit != nil {
			b.Value("limit", l.limit.Value())
		}
	}
	return b.End().Doc().Value()
}

func (l *lambda) children() []Expr {
	out := []Expr{l.input, l.body}
	if l.limit != nil {
		out = append(out, l.limit)
	}
	if l.initial != nil {
		out = append(out, l.initial)
	}
	return out
}

// fold computes the whole when nothing in it depends on more than the variables of the lambda itself.
func (l *lambda) fold(p *Parser) (Expr, error) {
	parts := []*Expr{&l.input, &l.body}
	if l.limit != nil {
		parts = append(parts, &l.limit)
	}
	if l.initial != nil {
		parts = append(parts, &l.initial)
	}
	for _, e := range parts {
		folded, err := (*e).fold(p)
		if err != nil {
			return nil, err
		}
		*e = folded
	}
	return l, nil
}
