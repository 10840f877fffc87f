package expr

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/ordering"
)

func setOperators() []Operator {
	return []Operator{
		{Name: "$allElementsTrue", Since: "2.6", Doc: "True when no element of an array is false.", Shape: special(parseElementsTrue(17040, false))},
		{Name: "$anyElementTrue", Since: "2.6", Doc: "True when any element of an array is true.", Shape: special(parseElementsTrue(17041, true))},
		{Name: "$setDifference", Since: "2.6", Doc: "The elements of one array that are not in another.", Shape: dyadic(evalSetDifference)},
		{Name: "$setEquals", Since: "2.6", Doc: "True when arrays have the same distinct elements.", Shape: special(parseSetEquals)},
		{Name: "$setIntersection", Since: "2.6", Doc: "The elements that are in all arrays.", Shape: lazy{0, many, evalSetIntersection, foldConstants}},
		{Name: "$setIsSubset", Since: "2.6", Doc: "True when all elements of an array are in another.", Shape: dyadic(evalSetIsSubset)},
		{Name: "$setUnion", Since: "2.6", Doc: "The distinct elements of all arrays.", Shape: commutative{nary{0, many, evalSetUnion}}},
	}
}

func parseElementsTrue(code mongoerr.Code, stop bool) func(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	eval := unary(func(_ *Env, v bson.Value) (bson.Value, error) {
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(code, "%s's argument must be an array, but is %s", without(code), v.Type)
		}
		for it := v.Doc().Iter(); it.Next(); {
			if it.Value().Truthy() == stop {
				return bson.Bool(stop), nil
			}
		}
		return bson.Bool(!stop), nil
	})
	return func(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
		return eval.parse(p, op, arg, scope)
	}
}

func without(code mongoerr.Code) string {
	if code == 17040 {
		return "$allElementsTrue"
	}
	return "$anyElementTrue"
}

func sizeOf(v bson.Value) int { return len(v.Data) }

// distinct sorts vs and leaves one of each in its place.
func (e *Env) distinct(vs []bson.Value) ([]bson.Value, error) {
	if err := ordering.StableSized(vs, e.Compare, sizeOf, e.Interrupt); err != nil {
		return nil, err
	}
	return slices.CompactFunc(vs, func(a, b bson.Value) bool { return e.Compare(a, b) == 0 }), nil
}

func (e *Env) contains(sorted []bson.Value, v bson.Value) bool {
	_, found := slices.BinarySearchFunc(sorted, v, e.Compare)
	return found
}

// manyElements is how many elements of a union may wait before those that are there twice are taken out.
const manyElements = 1 << 16

func evalSetUnion(env *Env, args []bson.Value) (bson.Value, error) {
	for _, v := range args {
		if v.IsNullish() {
			return bson.Null, nil
		}
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(17043, "All operands of $setUnion must be arrays. One argument is of type: %s", v.Type)
		}
	}
	mark := len(env.stack)
	distinct := 0
	for i, v := range args {
		env.elements(v)
		if all := len(env.stack) - mark; i < len(args)-1 && all < 2*distinct+manyElements {
			continue
		}
		all, err := env.distinct(env.stack[mark:])
		if err == nil {
			err = checkElements(all)
		}
		if err != nil {
			return bson.Missing, err
		}
		distinct = len(all)
		env.cut(mark + distinct)
	}
	return env.arrayFrom(mark)
}

// checkElements refuses what no array can hold.
func checkElements(vs []bson.Value) error {
	size := 0
	for _, v := range vs {
		size += len(v.Data)
	}
	return checkSize(size)
}

// evalSetIntersection stops at an empty intersection, as MongoDB does: a null or an error in a later argument does not matter.
func evalSetIntersection(env *Env, c *call) (bson.Value, error) {
	mark, live := len(env.stack), env.live
	defer func() {
		env.cut(mark)
		env.live = live
	}()
	var common []bson.Value
	var kept int // what is live with the first argument, of which the common elements are
	for i, arg := range c.args {
		v, err := env.keep(arg)
		if err != nil {
			return v, err
		}
		if v.IsNullish() {
			return bson.Null, nil
		}
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(17047, "All operands of $setIntersection must be arrays. One argument is of type: %s", v.Type)
		}
		vs, _ := env.elements(v)
		if vs, err = env.distinct(vs); err != nil {
			return v, err
		}
		if i == 0 {
			common, kept = vs, env.live
		} else {
			common = slices.DeleteFunc(common, func(x bson.Value) bool { return !env.contains(vs, x) })
		}
		env.stack, env.live = append(env.stack[:mark], common...), kept
		if len(common) == 0 {
			break
		}
	}
	return env.Array(common)
}

func evalSetDifference(env *Env, a, b bson.Value) (bson.Value, error) {
	if a.IsNullish() || b.IsNullish() {
		return bson.Null, nil
	}
	if a.Type != bson.TypeArray {
		return a, mongoerr.New(17048, "both operands of $setDifference must be arrays. First argument is of type: %s", a.Type)
	}
	if b.Type != bson.TypeArray {
		return b, mongoerr.New(17049, "both operands of $setDifference must be arrays. Second argument is of type: %s", b.Type)
	}
	mark := len(env.stack)
	defer env.cut(mark)
	taken, _ := env.elements(b)
	taken, err := env.distinct(taken)
	if err != nil {
		return b, err
	}
	vs, _ := env.elements(a)
	order := make([]int, len(vs))
	for i := range order {
		order[i] = i
	}
	if err := ordering.StableSized(order, func(i, j int) int { return env.Compare(vs[i], vs[j]) }, func(i int) int { return len(vs[i].Data) }, env.Interrupt); err != nil {
		return a, err
	}
	order = slices.CompactFunc(order, func(i, j int) bool { return env.Compare(vs[i], vs[j]) == 0 })
	order = slices.DeleteFunc(order, func(i int) bool { return env.contains(taken, vs[i]) })
	slices.Sort(order)
	rest := make([]bson.Value, len(order))
	for i, at := range order {
		rest[i] = vs[at]
	}
	return env.Array(rest)
}

func evalSetIsSubset(env *Env, a, b bson.Value) (bson.Value, error) {
	if a.Type != bson.TypeArray {
		return a, mongoerr.New(17046, "both operands of $setIsSubset must be arrays. First argument is of type: %s", a.Type)
	}
	if b.Type != bson.TypeArray {
		return b, mongoerr.New(17042, "both operands of $setIsSubset must be arrays. Second argument is of type: %s", b.Type)
	}
	vs, mark := env.elements(b)
	defer env.cut(mark)
	vs, err := env.distinct(vs)
	if err != nil {
		return b, err
	}
	for it := a.Doc().Iter(); it.Next(); {
		if !env.contains(vs, it.Value()) {
			return bson.False, nil
		}
	}
	return bson.True, nil
}

func parseSetEquals(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	args, err := p.parseAll(arg, scope)
	if err != nil {
		return nil, err
	}
	if len(args) < 2 {
		return nil, mongoerr.New(17045, "$setEquals needs at least two arguments had: %d", len(args))
	}
	return &call{op: op, args: args, eval: evalSetEquals, prepare: func(_ *Parser, c *call) error {
		for i, e := range c.args {
			if v, ok := Constant(e); ok && v.Type != bson.TypeArray {
				return mongoerr.New(5887502, "All operands of $setEquals must be arrays. %d-th argument is of type: %s", i+1, v.Type)
			}
		}
		return nil
	}}, nil
}

func evalSetEquals(env *Env, c *call) (bson.Value, error) {
	args, mark, err := env.evalAll(c.args)
	if err != nil {
		return bson.Missing, err
	}
	defer env.cut(mark)
	var first []bson.Value
	for i, v := range args {
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(17044, "All operands of $setEquals must be arrays. %d-th argument is of type: %s", i+1, v.Type)
		}
	}
	for i, v := range args {
		vs, at := env.elements(v)
		if vs, err = env.distinct(vs); err != nil {
			return v, err
		}
		if i == 0 {
			first = vs
			continue
		}
		env.cut(at)
		if !slices.EqualFunc(first, vs, func(a, b bson.Value) bool { return env.Compare(a, b) == 0 }) {
			return bson.False, nil
		}
	}
	return bson.True, nil
}
