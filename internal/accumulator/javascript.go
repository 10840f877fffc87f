package accumulator

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/javascript"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func javascriptOperators() []Operator {
	return []Operator{
		{Name: "$accumulator", Since: "4.4", Doc: "What JavaScript functions make of all values.", Group: parseAccumulator},
	}
}

// scripted is the functions of one $accumulator.
type scripted struct {
	init, accumulate, merge, finalize *javascript.Function
	runtime                           *javascript.Runtime
}

func parseAccumulator(p *Parser, op *Operator, arg bson.Value, scope *expr.Scope) (*Spec, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(4544703, "$accumulator expects an object as an argument; found: %s", arg.Type)
	}
	if !p.exprs.HasScripts() {
		return nil, expr.ErrNoScripts()
	}
	js := &scripted{}
	s := &Spec{Op: op, Grows: true, Init: expr.Literal(bson.EmptyArr)}
	lang := false
	for it := arg.Doc().Iter(); it.Next(); {
		var err error
		switch v := it.Value(); it.Key() {
		case "init":
			js.init, err = p.script(it.Key(), v)
		case "accumulate":
			js.accumulate, err = p.script(it.Key(), v)
		case "merge":
			js.merge, err = p.script(it.Key(), v)
		case "finalize":
			js.finalize, err = p.script(it.Key(), v)
		case "initArgs":
			s.Init, err = p.exprs.Parse(v, scope)
		case "accumulateArgs":
			var e expr.Expr
			e, err = p.exprs.Parse(v, scope)
			s.Args = []expr.Expr{e}
		case "lang":
			if v.Type != bson.TypeString || v.Str() != "js" {
				err = mongoerr.New(4544704, "$accumulator only supports lang: 'js'")
			}
			lang = true
		default:
			err = mongoerr.New(4544706, "$accumulator got an unexpected field: %s", it.Key())
		}
		if err != nil {
			return nil, err
		}
	}
	if err := js.check(s, lang); err != nil {
		return nil, err
	}
	s.make = func(init bson.Value) (Fold, error) {
		if js.runtime == nil {
			js.runtime = p.exprs.NewEnv().JavaScript()
		}
		return newScript(js, init)
	}
	s.print = func(*Spec) bson.Value { return arg }
	return s, nil
}

func (p *Parser) script(name string, v bson.Value) (*javascript.Function, error) {
	if v.Type != bson.TypeString && v.Type != bson.TypeCode {
		return nil, mongoerr.New(4544702, "$accumulator '%s' must be a string or code, but found %s", name, v.Type)
	}
	return p.exprs.Script(v.Str())
}

func (js *scripted) check(s *Spec, lang bool) error {
	switch {
	case js.init == nil:
		return mongoerr.New(4544707, "$accumulator missing required argument 'init'")
	case js.accumulate == nil:
		return mongoerr.New(4544708, "$accumulator missing required argument 'accumulate'")
	case s.Args == nil:
		return mongoerr.New(4544710, "$accumulator missing required argument 'accumulateArgs'")
	case js.merge == nil:
		return mongoerr.New(4544709, "$accumulator missing required argument 'merge'")
	case !lang:
		return mongoerr.New(4544711, "$accumulator missing required argument 'lang'")
	}
	return nil
}

// script is an $accumulator at work: its state goes through the functions as a value.
type script struct {
	*scripted
	state bson.Value
	fresh bool // nothing was added to state
}

func newScript(js *scripted, init bson.Value) (*script, error) {
	if init.Type != bson.TypeArray {
		return nil, mongoerr.New(4544711, "$accumulator initArgs must evaluate to an array: %s", init)
	}
	s := &script{scripted: js, fresh: true}
	return s, s.set(js.runtime.Call(js.init, bson.Missing, init.Doc().Values(nil)...))
}

func (s *script) set(v bson.Value, err error) error {
	if err != nil {
		return err
	}
	s.state = orNull(v).Clone()
	if len(s.state.Data) > MaxArrayBytes {
		return tooMuchMemory("$accumulator")
	}
	return nil
}

func (s *script) Add(args []bson.Value) error {
	if args[0].Type != bson.TypeArray {
		return mongoerr.New(4544712, "$accumulator accumulateArgs must evaluate to an array: %s", args[0].Computed())
	}
	s.fresh = false
	with := append([]bson.Value{s.state}, args[0].Doc().Values(nil)...)
	return s.set(s.runtime.Call(s.accumulate, bson.Missing, with...))
}

func (s *script) Value() (bson.Value, error) {
	if s.finalize == nil {
		return s.state, nil
	}
	v, err := s.runtime.Call(s.finalize, bson.Missing, s.state)
	return v.Clone(), err
}

func (s *script) Partial() bson.Value { return s.state }

func (s *script) Merge(partial bson.Value) error {
	if s.fresh {
		s.fresh = false
		return s.set(partial, nil)
	}
	return s.set(s.runtime.Call(s.merge, bson.Missing, s.state, partial))
}

func (s *script) Size() int { return len(s.state.Data) + 128 }
