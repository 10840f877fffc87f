package expr

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func conditionalOperators() []Operator {
	return []Operator{
		{Name: "$cond", Since: "2.2", Doc: "One of two values, as a condition says; only that one is evaluated.", Shape: special(parseCond)},
		{Name: "$ifNull", Since: "2.2", Doc: "The first argument that is not null or missing, or the last one.", Shape: special(parseIfNull)},
		{Name: "$switch", Since: "3.4", Doc: "The value of the first branch whose case is true, or the default.", Shape: special(parseSwitch)},
	}
}

func parseCond(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	shape := lazy{3, 3, evalCond, simplifyCond}
	if arg.Type != bson.TypeObject {
		return shape.parse(p, op, arg, scope)
	}
	c := &call{op: op, args: make([]Expr, 3), eval: evalCond, simplify: simplifyCond}
	for it := arg.Doc().Iter(); it.Next(); {
		e, err := p.parse(it.Value(), scope)
		if err != nil {
			return nil, err
		}
		switch it.Key() {
		case "if":
			c.args[0] = e
		case "then":
			c.args[1] = e
		case "else":
			c.args[2] = e
		default:
			return nil, mongoerr.New(17083, "Unrecognized parameter to $cond: %s", it.Key())
		}
	}
	for i, name := range []string{"if", "then", "else"} {
		if c.args[i] == nil {
			return nil, mongoerr.New(mongoerr.Code(17080+i), "Missing '%s' parameter to $cond", name)
		}
	}
	return c, nil
}

func evalCond(env *Env, c *call) (bson.Value, error) {
	v, err := c.args[0].Eval(env)
	if err != nil {
		return v, err
	}
	if v.Truthy() {
		return c.args[1].Eval(env)
	}
	return c.args[2].Eval(env)
}

func simplifyCond(_ *Parser, c *call) (Expr, error) {
	v, ok := Constant(c.args[0])
	switch {
	case !ok:
		return c, nil
	case v.Truthy():
		return c.args[1], nil
	}
	return c.args[2], nil
}

func parseIfNull(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	if arg.Type != bson.TypeArray || arg.Doc().Count() < 2 {
		n := 1
		if arg.Type == bson.TypeArray {
			n = arg.Doc().Count()
		}
		return nil, mongoerr.New(1257300, "$ifNull needs at least two arguments, had: %d", n)
	}
	return lazy{2, many, evalIfNull, simplifyIfNull}.parse(p, op, arg, scope)
}

func evalIfNull(env *Env, c *call) (v bson.Value, err error) {
	for _, e := range c.args {
		if v, err = e.Eval(env); err != nil || !v.IsNullish() {
			return v, err
		}
	}
	return v, nil
}

// simplifyIfNull leaves out the constants that are null, and all behind one that is not.
func simplifyIfNull(_ *Parser, c *call) (Expr, error) {
	last := len(c.args) - 1
	rest := make([]Expr, 0, len(c.args))
	for i, e := range c.args {
		v, ok := Constant(e)
		if ok && v.IsNullish() && i < last {
			continue
		}
		rest = append(rest, e)
		if ok {
			break
		}
	}
	if len(rest) == 1 {
		return rest[0], nil
	}
	c.args = rest
	return c, nil
}

// choice is a $switch. The last of branches' pair is the default, with no case, when there is one.
type choice struct {
	cases, thens []Expr
	otherwise    Expr // nil without a default
}

func parseSwitch(p *Parser, _ *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(40060, "$switch requires an object as an argument, found: %s", arg.Type)
	}
	s := &choice{}
	for it := arg.Doc().Iter(); it.Next(); {
		var err error
		switch it.Key() {
		case "branches":
			if it.Value().Type != bson.TypeArray {
				return nil, mongoerr.New(40061, "$switch expected an array for 'branches', found: %s", it.Value().Type)
			}
			for b := it.Value().Doc().Iter(); b.Next() && err == nil; {
				err = s.parseBranch(p, b.Value(), scope)
			}
		case "default":
			s.otherwise, err = p.parse(it.Value(), scope)
		default:
			return nil, mongoerr.New(40067, "$switch found an unknown argument: %s", it.Key())
		}
		if err != nil {
			return nil, err
		}
	}
	if len(s.cases) == 0 {
		return nil, mongoerr.New(40068, "$switch requires at least one branch")
	}
	return s, nil
}

func (s *choice) parseBranch(p *Parser, branch bson.Value, scope *Scope) error {
	if branch.Type != bson.TypeObject {
		return mongoerr.New(40062, "$switch expected each branch to be an object, found: %s", branch.Type)
	}
	var when, then Expr
	for it := branch.Doc().Iter(); it.Next(); {
		e, err := p.parse(it.Value(), scope)
		switch {
		case it.Key() != "case" && it.Key() != "then":
			return mongoerr.New(40063, "$switch found an unknown argument to a branch: %s", it.Key())
		case err != nil:
			return err
		case it.Key() == "case":
			when = e
		default:
			then = e
		}
	}
	if when == nil {
		return mongoerr.New(40064, "$switch requires each branch have a 'case' expression")
	}
	if then == nil {
		return mongoerr.New(40065, "$switch requires each branch have a 'then' expression.")
	}
	s.cases, s.thens = append(s.cases, when), append(s.thens, then)
	return nil
}

func (s *choice) Eval(env *Env) (bson.Value, error) {
	for i, e := range s.cases {
		v, err := e.Eval(env)
		if err != nil {
			return v, err
		}
		if v.Truthy() {
			return s.thens[i].Eval(env)
		}
	}
	if s.otherwise == nil {
		return bson.Missing, mongoerr.New(s.unmatched(), "$switch could not find a matching branch for an input, and no default was specified.")
	}
	return s.otherwise.Eval(env)
}

// unmatched is the error that no case holds: one of its own where none ever could.
func (s *choice) unmatched() mongoerr.Code {
	for _, e := range s.cases {
		if _, constant := Constant(e); !constant {
			return 40066
		}
	}
	return 40069
}

func (s *choice) Value() bson.Value {
	b := bson.Build().Object("$switch").Array("branches")
	for i := range s.cases {
		b.Object(bson.IndexKey(i)).Value("case", s.cases[i].Value()).Value("then", s.thens[i].Value()).End()
	}
	b.End()
	if s.otherwise != nil {
		b.Value("default", s.otherwise.Value())
	}
	return b.End().Doc().Value()
}

func (s *choice) children() []Expr {
	out := append(append([]Expr(nil), s.cases...), s.thens...)
	if s.otherwise != nil {
		out = append(out, s.otherwise)
	}
	return out
}

// fold drops branches that are never taken, before it looks at their values, and all behind one that always is.
func (s *choice) fold(p *Parser) (Expr, error) {
	var err error
	if s.otherwise != nil {
		if s.otherwise, err = s.otherwise.fold(p); err != nil {
			return nil, err
		}
	}
	var cases, thens []Expr
	for i, e := range s.cases {
		if e, err = e.fold(p); err != nil {
			return nil, err
		}
		v, constant := Constant(e)
		if constant && !v.Truthy() {
			continue
		}
		then, err := s.thens[i].fold(p)
		if err != nil {
			return nil, err
		}
		if constant {
			s.otherwise = then
			break
		}
		cases, thens = append(cases, e), append(thens, then)
	}
	s.cases, s.thens = cases, thens
	switch {
	case len(cases) > 0:
		return s, nil
	case s.otherwise != nil:
		return s.otherwise, nil
	}
	return p.compute(s)
}
