package update

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/projection"
)

// Parser reads updates. It is made once and may be used by many goroutines at once.
type Parser struct {
	matches     *match.Parser
	projections *projection.Parser
	operators   map[string]*Operator
}

// NewParser makes a parser that reads conditions and stages with those given.
func NewParser(matches *match.Parser, projections *projection.Parser) *Parser {
	p := &Parser{matches, projections, map[string]*Operator{}}
	rows := Operators()
	for i := range rows {
		p.operators[rows[i].Name] = &rows[i]
	}
	return p
}

// Operators are all rows of all tables.
func Operators() []Operator {
	return slices.Concat(fieldOperators(), arrayOperators(), cullOperators(), bitwiseOperators())
}

// Operator is a row of a family's table.
type Operator struct {
	Name, Doc, Since string
	// Creates says that the field is made when it does not exist.
	Creates bool
	// AnyPath says that a path which cannot exist is as good as one that does not.
	AnyPath bool
	// WholeValue says that an _id may be set to what compares equal to it.
	WholeValue bool
	// InsertOnly says that only the insert of an upsert is affected.
	InsertOnly bool

	parse func(p *parser, path string, v bson.Value) (modifier, error)
}

// parser is one run of the Parser over modifiers.
type parser struct {
	*Parser
	Options
	collator bson.Collator
	filters  map[string]*arrayFilter
	used     map[string]bool
	root     *node
	renames  []renaming
}

// Parse reads an update, with MongoDB's errors for what is wrong with it. The update keeps a copy of its own of the bytes.
func (p *Parser) Parse(u bson.Value, o Options) (*Update, error) {
	u = u.Clone()
	switch {
	case u.Type == bson.TypeArray:
		return p.parsePipeline(u, o)
	case u.Type != bson.TypeObject:
		return nil, mongoerr.New(mongoerr.FailedToParse, "Update argument must be either an object or an array")
	}
	if first := u.Doc().FirstKey(); first == "" || first[0] != '$' {
		return p.parseReplacement(u, o)
	}
	return p.parseModifiers(u, o)
}

func (p *Parser) parseModifiers(u bson.Value, o Options) (*Update, error) {
	run := &parser{Parser: p, Options: o, root: &node{kind: objectNode}, used: map[string]bool{}}
	if o.Collation != nil {
		run.collator = o.Collation
	}
	var err error
	if run.filters, err = p.parseArrayFilters(o); err != nil {
		return nil, err
	}
	out := &Update{kind: Modifiers, source: u, root: run.root, filters: run.filters}
	for it := u.Doc().Iter(); it.Next(); {
		if err := run.operator(it.Key(), it.Value(), out); err != nil {
			return nil, err
		}
	}
	for id := range run.filters {
		if !run.used[id] {
			return nil, mongoerr.New(mongoerr.FailedToParse,
				"The array filter for identifier '%s' was not used in the update %s", id, u)
		}
	}
	run.root.sort()
	out.renames = run.renames
	return out, nil
}

// operator parses one operator with all its fields into the tree.
func (p *parser) operator(name string, v bson.Value, out *Update) error {
	op, known := p.operators[name]
	if !known {
		return mongoerr.New(mongoerr.FailedToParse, "Unknown modifier: %s. Expected a valid update modifier or pipeline-style"+
			" update specified as an array", name)
	}
	if v.Type != bson.TypeObject {
		return mongoerr.New(mongoerr.FailedToParse, "Modifiers operate on fields but we found type %s instead. For example: "+
			"{$mod: {<field>: ...}} not {%s}", v.Type, element(name, v))
	}
	for it := v.Doc().Iter(); it.Next(); {
		positional, err := p.field(op, it.Key(), it.Value())
		if err != nil {
			return err
		}
		out.positional = out.positional || positional
	}
	return nil
}

// field parses one field of an operator.
func (p *parser) field(op *Operator, path string, v bson.Value) (positional bool, err error) {
	target := path
	rename := op.Name == "$rename"
	source := &node{operator: op, modifier: unset{}, rename: len(p.renames) + 1}
	if rename {
		if target, err = p.renameSource(source, path, v); err != nil {
			return false, err
		}
	}
	if positional, err = checkPath(target); err != nil {
		return false, err
	}
	leaf := &node{operator: op}
	if leaf.modifier, err = op.parse(p, path, v); err != nil {
		return false, err
	}
	if rename {
		leaf.rename = source.rename
	}
	return positional, p.insert(target, leaf)
}

// renameSource hangs the removal of a $rename's source into the tree and returns the target's path.
func (p *parser) renameSource(source *node, path string, v bson.Value) (string, error) {
	if _, err := checkPath(path); err != nil {
		return "", err
	}
	if err := p.insert(path, source); err != nil {
		return "", err
	}
	if v.Type != bson.TypeString {
		return "", mongoerr.New(mongoerr.BadValue, "The 'to' field for $rename must be a string: %s", element(path, v))
	}
	return v.Str(), nil
}
