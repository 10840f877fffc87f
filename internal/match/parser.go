package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Feature is something that a filter may hold only where it makes sense.
type Feature uint8

// The features.
const (
	AllowText       Feature = 1 << iota // $text
	AllowNear                           // $near, $nearSphere
	AllowWhere                          // $where
	AllowExpr                           // $expr
	AllowJSONSchema                     // $jsonSchema
	AllowEncrypt                        // encrypt and encryptMetadata in $jsonSchema

	// AllowAll is what the filter of a find may hold.
	AllowAll = AllowText | AllowNear | AllowWhere | AllowExpr | AllowJSONSchema | AllowEncrypt
	// AllowMatch is what a $match stage may hold, but for $text in the first one.
	AllowMatch = AllowExpr | AllowJSONSchema | AllowEncrypt
)

// Options are what a filter is parsed under.
type Options struct {
	Collation *collation.Collation
	// Exprs reads the expressions of $expr, which is refused without it.
	Exprs *expr.Parser
	// Scope declares the variables that $expr may use; nil for the system's alone.
	Scope *expr.Scope
	Allow Feature
	// AsWritten keeps the tree as the user wrote it, for filters whose failures are explained (WhyNot): validators.
	AsWritten bool
}

// Parser reads filters. It is made once and may be used by many goroutines at once.
type Parser struct {
	fields map[string]*Operator // that stand below a path
	tops   map[string]*Operator // that stand in place of one
	all    []*Operator
}

// NewParser makes a parser of all operators.
func NewParser() *Parser {
	p := &Parser{fields: map[string]*Operator{}, tops: map[string]*Operator{}}
	for _, family := range families() {
		for i := range family {
			op := &family[i]
			p.all = append(p.all, op)
			if op.field != nil {
				p.fields[op.Name] = op
			}
			if op.top != nil {
				p.tops[op.Name] = op
			}
		}
	}
	return p
}

// Operators are all rows of all tables.
func (p *Parser) Operators() []*Operator { return p.all }

// Parse reads a filter, with MongoDB's errors for what is wrong with it. The filter keeps a copy of its own of the bytes.
func (p *Parser) Parse(filter bson.Doc, o Options) (*Filter, error) {
	filter = filter.Clone()
	root, err := (&parsing{Parser: p, Options: o}).document(filter, topLevel)
	if err != nil {
		return nil, err
	}
	if err := checkPlaces(root); err != nil {
		return nil, err
	}
	if !o.AsWritten {
		root = Simplify(root)
	}
	return &Filter{Root: root, Source: filter, Collation: o.Collation}, nil
}

// level is how deep below the filter's top a document of conditions stands.
type level uint8

const (
	topLevel level = iota // also inside $and, $or and $nor
	subLevel              // inside $elemMatch and the like: paths start from an element
)

// parsing is one run of the parser.
type parsing struct {
	*Parser
	Options
	level level
	read  int // conditions
}

// conditionsPerAsk is how many conditions are parsed between two questions whether somebody still wants them.
const conditionsPerAsk = 1024

// ask says, now and then, that nobody does.
func (p *parsing) ask() error {
	if p.read++; p.read%conditionsPerAsk != 0 {
		return nil
	}
	if interrupt := p.Exprs.Interrupt(); interrupt != nil {
		return interrupt()
	}
	return nil
}

func badValue(format string, args ...any) error {
	return mongoerr.New(mongoerr.BadValue, format, args...)
}

func failedToParse(format string, args ...any) error {
	return mongoerr.New(mongoerr.FailedToParse, format, args...)
}

// document parses a document of conditions, all of which must hold.
func (p *parsing) document(d bson.Doc, at level) (Node, error) {
	outer := p.level
	p.level = at
	defer func() { p.level = outer }()
	and := &And{}
	for it := d.Iter(); it.Next(); {
		if err := p.condition(and, it.Key(), it.Value()); err != nil {
			return nil, err
		}
	}
	return and.simple(), nil
}

// condition parses one element of a document of conditions into and.
func (p *parsing) condition(and *And, key string, v bson.Value) error {
	if err := p.ask(); err != nil {
		return err
	}
	if len(key) > 0 && key[0] == '$' {
		op, known := p.tops[key]
		if !known {
			return badValue("unknown top level operator: %s. If you have a field name that starts with a '$' symbol, "+
				"consider using $getField or $setField.", key)
		}
		n, err := op.top(p, v)
		if n != nil && err == nil {
			and.Children = append(and.Children, n)
		}
		return err
	}
	path := fieldpath.Split(key)
	switch {
	case isOperators(v, false):
		return p.operators(and, path, v.Doc())
	case v.Type == bson.TypeRegex:
		n, err := p.regexValue(path, v)
		if err == nil {
			and.Children = append(and.Children, n)
		}
		return err
	default:
		n, err := p.compare(path, Eq, v)
		if err == nil {
			and.Children = append(and.Children, n)
		}
		return err
	}
}

// operators parses what stands behind a path: { $gt: 1, $lt: 5 }.
func (p *parsing) operators(and *And, path fieldpath.Path, d bson.Doc) error {
	if n, err := p.near(path, d); n != nil || err != nil {
		if err == nil {
			and.Children = append(and.Children, n)
		}
		return err
	}
	for it := d.Iter(); it.Next(); {
		op, known := p.fields[it.Key()]
		if !known {
			if it.Key() == "$where" {
				return badValue("$where cannot be applied to a field")
			}
			return badValue("unknown operator: %s", it.Key())
		}
		n, err := op.field(p, path, it.Value(), d)
		if err != nil {
			return err
		}
		if n != nil {
			and.Children = append(and.Children, n)
		}
	}
	return nil
}

// isOperators says whether v is a document of operators: not empty, the first name starts with '$', and no DBRef. A DBRef
// has $ref and $id, or any of $ref, $id and $db where partial ones count.
func isOperators(v bson.Value, partialRefs bool) bool {
	if v.Type != bson.TypeObject {
		return false
	}
	first := v.Doc().FirstKey()
	if first == "" || first[0] != '$' {
		return false
	}
	var ref, id, db bool
	for it := v.Doc().Iter(); it.Next(); {
		switch it.Key() {
		case "$ref":
			ref = true
		case "$id":
			id = true
		case "$db":
			db = true
		}
	}
	if partialRefs {
		return !(ref || id || db)
	}
	return !(ref && id)
}
