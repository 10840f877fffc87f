package expr

import (
	"math/rand/v2"
	"sync"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/javascript"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pcre"
)

// Options are what expressions are parsed for.
type Options struct {
	// Operators is the table of operators; nil means Operators().
	Operators Table
	// Collation compares strings, in constants too; nil compares bytes.
	Collation bson.Collator
	// Now is $$NOW in milliseconds since the epoch.
	Now int64
	// ClusterTime is $$CLUSTER_TIME, the seconds in its upper half; 0 on a server that has none.
	ClusterTime uint64
	// NoNow says that the operation has no $$NOW, no $$CLUSTER_TIME and no $$USER_ROLES, as count and distinct have none.
	NoNow bool
	// Definition says that the expressions are kept for later, in a view or a validator, when the system's variables will
	// have values.
	Definition bool
	// Validator says that the expressions are a validator's, which has no JavaScript.
	Validator bool
	// Stable refuses what is outside of the first version of the stable API.
	Stable bool
	// UserRoles is $$USER_ROLES; Missing where there is none.
	UserRoles bson.Value
	// Interrupt ends long loops, see Env.
	Interrupt func() error
	// Rand gives numbers in [0, 1); nil means a source of its own.
	Rand func() float64
	// Scripts is where JavaScript runs; nil refuses it.
	Scripts *javascript.Engine
	// Stored are the functions that JavaScript finds beside its own; nil: none.
	Stored StoredScripts
	// Globals are variables that all of JavaScript sees.
	Globals bson.Doc
}

// Parser turns values into expressions. It is not for several goroutines at once.
type Parser struct {
	opts  Options
	table Table
	env   *Env // computes constants
	depth int
	// defers says that what cannot be computed fails when documents come; see Defer.
	defers   bool
	computed int // bytes of the constants that were computed and are in use
	patterns pcre.Budget
}

// NewParser returns a Parser.
func NewParser(opts Options) *Parser {
	p := &Parser{opts: opts, table: opts.Operators}
	if p.table == nil {
		p.table = standardTable()
	}
	p.env = p.NewEnv()
	return p
}

// NewEnv is an Env with what the Parser's Options say.
func (p *Parser) NewEnv() *Env {
	env := &Env{
		Root:        bson.EmptyDoc,
		Now:         p.opts.Now,
		ClusterTime: p.opts.ClusterTime,
		UserRoles:   p.opts.UserRoles,
		Collation:   p.opts.Collation,
		Interrupt:   p.opts.Interrupt,
		Rand:        p.opts.Rand,
		scripts:     p.opts.Scripts,
		stored:      p.opts.Stored,
		globals:     p.opts.Globals,
	}
	if env.Rand == nil {
		env.Rand = rand.Float64
	}
	return env
}

// Defer says whether expressions parsed from now on whose constants cannot be computed fail only when they are evaluated, if
// they ever are.
func (p *Parser) Defer(defers bool) { p.defers = defers }

// Table is the operators by name.
type Table map[string]*Operator

// NewTable makes a Table of rows.
func NewTable(rows []Operator) Table {
	t := make(Table, len(rows))
	for i := range rows {
		t[rows[i].Name] = &rows[i]
	}
	return t
}

var standardTable = sync.OnceValue(func() Table { return NewTable(Operators()) })

// Parse parses any value as an expression, with all computed that does not depend on the document. Scope names the
// variables that it may use beside the system's.
func (p *Parser) Parse(v bson.Value, scope *Scope) (Expr, error) {
	e, err := p.parse(v, scope)
	if err != nil {
		return nil, err
	}
	return e.fold(p)
}

// ParseOperator parses the operator name with argument arg, as where {name: arg} stands.
func (p *Parser) ParseOperator(name string, arg bson.Value, scope *Scope) (Expr, error) {
	e, err := p.parseOperator(name, arg, scope)
	if err != nil {
		return nil, err
	}
	return e.fold(p)
}

// Patterns bounds the regular expressions of the operation, in filters too; nil for a nil Parser.
func (p *Parser) Patterns() *pcre.Budget {
	if p == nil {
		return nil
	}
	return &p.patterns
}

// Has says whether there is an operator of that name.
func (p *Parser) Has(name string) bool { return p.table[name] != nil }

// parse parses without computing.
func (p *Parser) parse(v bson.Value, scope *Scope) (Expr, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > MaxDepth {
		return nil, mongoerr.New(mongoerr.Overflow, "expression nests deeper than %d levels", MaxDepth)
	}
	if err := p.env.tick(); err != nil {
		return nil, err
	}
	switch v.Type {
	case bson.TypeString:
		if s := v.Str(); s != "" && s[0] == '$' {
			return p.parsePath(s, scope)
		} else if len(s) >= MaxStringBytes {
			return nil, errStringTooLong()
		}
	case bson.TypeObject:
		return p.parseObject(v.Doc(), scope)
	case bson.TypeArray:
		return p.parseArray(v.Doc(), scope)
	}
	return Literal(v), nil
}

func (p *Parser) parseObject(d bson.Doc, scope *Scope) (Expr, error) {
	name := d.FirstKey()
	if name == "" || name[0] != '$' {
		return p.parseFields(d, scope)
	}
	if d.Count() != 1 {
		return nil, mongoerr.New(15983, "An object representing an expression must have exactly one field: %s", d)
	}
	return p.parseOperator(name, d.Lookup(name), scope)
}

func (p *Parser) parseOperator(name string, arg bson.Value, scope *Scope) (Expr, error) {
	op := p.table[name]
	if op == nil {
		return nil, mongoerr.New(mongoerr.InvalidPipelineOperator, "Unrecognized expression '%s'", name)
	}
	return op.Shape.parse(p, op, arg, scope)
}

func (p *Parser) parseFields(d bson.Doc, scope *Scope) (Expr, error) {
	o := &object{}
	seen := make(map[string]bool)
	for it := d.Iter(); it.Next(); {
		if err := fieldpath.CheckName(it.Key()); err != nil {
			return nil, err
		}
		if seen[it.Key()] {
			return nil, mongoerr.New(16406, "duplicate field name specified in object literal: %s", d)
		}
		seen[it.Key()] = true
		e, err := p.parse(it.Value(), scope)
		if err != nil {
			return nil, err
		}
		o.keys = append(o.keys, it.Key())
		o.of = append(o.of, e)
	}
	return o, nil
}

func (p *Parser) parseArray(d bson.Doc, scope *Scope) (Expr, error) {
	a := &array{}
	for it := d.Iter(); it.Next(); {
		e, err := p.parse(it.Value(), scope)
		if err != nil {
			return nil, err
		}
		a.of = append(a.of, e)
	}
	return a, nil
}

// parseAll parses the elements of an array, or the one operand that stands in its place.
func (p *Parser) parseAll(arg bson.Value, scope *Scope) ([]Expr, error) {
	if arg.Type != bson.TypeArray {
		e, err := p.parse(arg, scope)
		if err != nil {
			return nil, err
		}
		return []Expr{e}, nil
	}
	a, err := p.parseArray(arg.Doc(), scope)
	if err != nil {
		return nil, err
	}
	return a.(*array).of, nil
}

// compute evaluates an expression that does not depend on the document. It stays as it is, to be evaluated anew for each
// document, where the Parser's constants would be too large together.
func (p *Parser) compute(e Expr) (Expr, error) {
	p.env.Reset()
	v, err := e.Eval(p.env)
	if err != nil && p.defers {
		return e, nil
	}
	if err != nil {
		return nil, err
	}
	computed := p.computed - computedIn(e) + len(v.Data)
	if computed > maxComputedBytes && len(v.Data) > smallBytes {
		return e, nil
	}
	p.computed = computed
	return &constant{v: v.Clone(), computed: true}, nil
}

// computedIn is how large the constants in e are that were computed.
func computedIn(e Expr) int {
	if c, ok := e.(*constant); ok {
		if c.computed {
			return len(c.v.Data)
		}
		return 0
	}
	n := 0
	for _, c := range e.children() {
		n += computedIn(c)
	}
	return n
}

// foldAll folds each of es in place and says whether all are constants now.
func (p *Parser) foldAll(es []Expr) (constants bool, err error) {
	constants = true
	for i, e := range es {
		if e == nil { // a named argument that was not given
			continue
		}
		if es[i], err = e.fold(p); err != nil {
			return false, err
		}
		switch e := es[i].(type) {
		case *constant:
		case *tuple:
			constants = constants && e.constant
		default:
			constants = false
		}
	}
	return constants, nil
}
