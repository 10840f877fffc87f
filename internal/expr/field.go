package expr

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// field is a path into the current document: "$a.b".
type field struct{ path fieldpath.Path }

func (f *field) Eval(env *Env) (bson.Value, error) {
	env.ticks += len(env.Root) / bytesPerTick // among which the path is looked for
	return env.read(f.path.Eval(env.Root)), nil
}

func (f *field) Value() bson.Value          { return bson.String("$" + f.path.String()) }
func (f *field) children() []Expr           { return nil }
func (f *field) fold(*Parser) (Expr, error) { return f, nil }

// subField is a path into the value of a variable: "$$x.a.b", or "$a" where CURRENT has been set.
type subField struct {
	of   Expr
	path fieldpath.Path
	text string
}

func (f *subField) Eval(env *Env) (bson.Value, error) {
	v, err := f.of.Eval(env)
	if err != nil {
		return v, err
	}
	return env.read(f.path.EvalValue(v)), nil
}

func (f *subField) Value() bson.Value { return bson.String(f.text) }
func (f *subField) children() []Expr  { return []Expr{f.of} }

func (f *subField) fold(p *Parser) (Expr, error) {
	if _, ok := Constant(f.of); !ok {
		return f, nil
	}
	return p.compute(f)
}

// parsePath parses a string that starts with '$'.
func (p *Parser) parsePath(text string, scope *Scope) (Expr, error) {
	if len(text) < 2 {
		return nil, mongoerr.New(16872, "'$' by itself is not a valid FieldPath")
	}
	if text[1] != '$' {
		path, err := fieldpath.New(text[1:])
		if err != nil {
			return nil, err
		}
		if current := scope.find("CURRENT"); current != nil {
			return &subField{of: current.read(), path: path, text: "$$CURRENT." + text[1:]}, nil
		}
		return &field{path}, nil
	}
	name, rest, dotted := strings.Cut(text[2:], ".")
	if err := checkVariable(name, true); err != nil {
		return nil, err
	}
	base, err := p.parseVariable(name, scope)
	if err != nil || !dotted {
		return base, err
	}
	if rest == "" {
		return nil, mongoerr.New(40353, "FieldPath must not end with a '.'.")
	}
	path, err := fieldpath.New(rest)
	if err != nil {
		return nil, err
	}
	if root, ok := base.(*systemRead); ok && root.kind == varRoot {
		return &field{path}, nil
	}
	return &subField{of: base, path: path, text: text}, nil
}

func (s *Scope) read() Expr {
	if s.fixed {
		return Literal(s.value)
	}
	return &variable{name: s.name, slot: s.slot}
}

func (p *Parser) parseVariable(name string, scope *Scope) (Expr, error) {
	if s := scope.find(name); s != nil {
		return s.read(), nil
	}
	switch kind := systemVariableNamed(name); kind {
	case varNone:
		return nil, mongoerr.New(17276, "Use of undefined variable: %s", name)
	case varRemove:
		return Literal(bson.Missing), nil
	default:
		read := &systemRead{name, kind}
		return read, read.check(p)
	}
}
