package expr

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/javascript"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func customOperators() []Operator {
	return []Operator{
		{Name: "$function", Since: "4.4", Doc: "What a JavaScript function returns for its arguments.", Shape: special(parseFunction), Volatile: true},
	}
}

// StoredScripts gives the functions that a database keeps for all of its JavaScript, and other values, by name.
type StoredScripts interface {
	StoredScripts() (bson.Doc, error)
}

// JavaScript is the runtime for the functions that an evaluation calls.
func (e *Env) JavaScript() *javascript.Runtime {
	if e.js == nil {
		e.js = e.scripts.Runtime(e.Interrupt)
		if e.stored != nil {
			e.js.Stored(e.stored.StoredScripts)
		}
		for it := e.globals.Iter(); it.Next(); {
			e.js.Global(it.Key(), it.Value())
		}
	}
	return e.js
}

// Script compiles a JavaScript function. The Parser must have been given Scripts.
func (p *Parser) Script(source string) (*javascript.Function, error) {
	return p.opts.Scripts.Compile(source, p.opts.Interrupt)
}

// ErrNoScripts is the error of a server without JavaScript.
func ErrNoScripts() error {
	return mongoerr.New(31264, "Cannot run server-side javascript without the javascript engine enabled")
}

// Interrupt is that of the Parser's Options; a nil Parser has none.
func (p *Parser) Interrupt() func() error {
	if p == nil {
		return nil
	}
	return p.opts.Interrupt
}

// HasScripts says whether there is JavaScript.
func (p *Parser) HasScripts() bool { return p != nil && p.opts.Scripts != nil }

func parseFunction(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	if p.opts.Validator {
		return nil, mongoerr.New(4660800, "$function cannot be used inside a validator.")
	}
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(31260, "$function requires an object as an argument, found: %s", arg.Type)
	}
	d := arg.Doc()
	body, args, lang := d.Lookup("body"), d.Lookup("args"), d.Lookup("lang")
	switch {
	case d.Count() > 3:
		return nil, mongoerr.New(31454, "$function only accepts the arguments: body, args, lang")
	case body.IsMissing():
		return nil, mongoerr.New(31261, "The body function must be specified.")
	case args.IsMissing():
		return nil, mongoerr.New(31263, "The args field must be specified.")
	case lang.IsMissing():
		return nil, mongoerr.New(31418, "The lang field must be specified.")
	case lang.Type != bson.TypeString || lang.Str() != "js":
		return nil, mongoerr.New(31419, "Currently the only supported language specifier is 'js'.")
	case body.Type != bson.TypeString && body.Type != bson.TypeCode:
		return nil, mongoerr.New(31262, "The body function must evaluate to a string or code")
	}
	if p.opts.Scripts == nil {
		return nil, ErrNoScripts()
	}
	f, err := p.Script(body.Str())
	if err != nil {
		return nil, err
	}
	e, err := p.parse(args, scope)
	if err != nil {
		return nil, err
	}
	return &call{op: op, names: []string{"body", "args", "lang"}, args: []Expr{plain(body), e, plain(lang)}, state: f, eval: evalFunction}, nil
}

func evalFunction(env *Env, c *call) (bson.Value, error) {
	args, err := c.args[1].Eval(env)
	if err != nil {
		return args, err
	}
	if args.Type != bson.TypeArray {
		return args, mongoerr.New(31266, "The args field must be of type array")
	}
	return env.JavaScript().Call(c.state.(*javascript.Function), bson.Missing, args.Doc().Values(nil)...)
}
