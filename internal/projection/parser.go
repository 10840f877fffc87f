package projection

import (
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Mode is where a projection stands, and so what it may hold.
type Mode uint8

// The modes.
const (
	Find      Mode = iota // the projection of a find: also "$", $slice, $elemMatch
	Project               // a $project stage, or a find on a view
	AddFields             // $addFields and $set: every value is an expression
	Wildcard              // a wildcardProjection: nothing computed, and no _id unless it is named
)

// Options are what a projection is parsed under.
type Options struct {
	Mode Mode
	// Filter is the query that a find's projection goes with; nil when there is none, and then no "$" may be used.
	Filter    bson.Doc
	Collation *collation.Collation
	// Exprs reads the expressions; nil will do for a Wildcard.
	Exprs *expr.Parser
	// Scope declares the variables that expressions may use; nil for the system's alone.
	Scope *expr.Scope
}

// Parser reads projections. It is made once and may be used by many goroutines at once.
type Parser struct{ matches *match.Parser }

// NewParser makes a parser that reads the conditions of $elemMatch with matches.
func NewParser(matches *match.Parser) *Parser { return &Parser{matches} }

// parsing is one run of the parser.
type parsing struct {
	*Parser
	Options
	out *Projection

	typed                  bool // an inclusion or exclusion was met, which out.kind tells
	idNamed                bool // by _id or a path below it
	idIncluded, idExcluded bool // entirely
	hasElemMatch, hasMeta  bool
	hasPositional          bool
}

// Parse reads a projection, with MongoDB's errors for what is wrong with it. The result keeps a copy of its own of the
// bytes. An empty specification of a find is the Identity.
func (p *Parser) Parse(spec bson.Doc, o Options) (*Projection, error) {
	spec = spec.Clone()
	run := &parsing{Parser: p, Options: o, out: &Projection{source: spec, root: &node{}}}
	if o.Mode == AddFields {
		if err := run.addFields(spec); err != nil {
			return nil, err
		}
		return run.finish(), nil
	}
	if spec.IsEmpty() && o.Mode != Find {
		return nil, mongoerr.New(51272, "projection specification must have at least one field")
	}
	for it := spec.Iter(); it.Next(); {
		if err := run.element("", it.Key(), it.Value()); err != nil {
			return nil, err
		}
	}
	run.decide()
	return run.finish(), nil
}

// Unset is the projection that leaves out the given paths.
func (p *Parser) Unset(paths []string) (*Projection, error) {
	b := bson.Build()
	for _, path := range paths {
		b.Bool(path, false)
	}
	return p.Parse(b.Doc(), Options{Mode: Project})
}

// isPositional says whether a path ends in the positional operator.
func isPositional(name string) bool { return strings.HasSuffix(name, ".$") }

// element parses one field of a document of the specification; prefix is the path to that document.
func (p *parsing) element(prefix, name string, v bson.Value) error {
	if isPositional(name) && p.Mode != Find {
		return mongoerr.New(31324, "Cannot use positional projection in aggregation projection")
	}
	if strings.Contains(name, ".$.") {
		return mongoerr.New(31394, "As of 4.4, it's illegal to specify positional operator in the middle of a path."+
			"Positional projection may only be used at the end, for example: a.b.$. If the query previously used a form like a.b.$.d, "+
			"remove the parts following the '$' and the results will be equivalent.")
	}
	switch {
	case v.Type == bson.TypeObject:
		return p.object(prefix, name, v.Doc())
	case v.IsNumber() || v.Type == bson.TypeBool:
		if v.Truthy() {
			return p.include(prefix, name)
		}
		return p.exclude(prefix, name)
	}
	return p.literal(prefix, name, v)
}

func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// path checks a component of the specification and returns the whole path to it.
func path(prefix, name string) (fieldpath.Path, error) {
	p, err := fieldpath.New(name)
	if err != nil || prefix == "" {
		return p, err
	}
	return fieldpath.New(join(prefix, name))
}

// insert puts f at the end of a path.
func (p *parsing) insert(at fieldpath.Path, f field) error {
	if at.First() == "_id" {
		p.idNamed = true
	}
	n := p.out.root
	for i := 0; i < at.Len()-1; i++ {
		j := n.find(at.Part(i))
		if j < 0 {
			n.add(field{name: at.Part(i), action: nested, node: &node{}})
			j = len(n.fields) - 1
		}
		if n.fields[j].action != nested {
			return mongoerr.New(31249, "Path collision at %s remaining portion %s", at, at.Suffix(1))
		}
		n = n.fields[j].node
	}
	if n.find(at.Last()) >= 0 {
		return mongoerr.New(31250, "Path collision at %s", at)
	}
	f.name = at.Last()
	n.add(f)
	return nil
}

func (p *parsing) include(prefix, name string) error {
	f := field{action: include}
	if isPositional(name) {
		if err := p.checkPositional(); err != nil {
			return err
		}
		name = strings.TrimSuffix(name, ".$")
		f.action = positional
	}
	at, err := path(prefix, name)
	if err != nil {
		return err
	}
	if err := p.insert(at, f); err != nil {
		return err
	}
	if at.String() == "_id" && f.action == include {
		p.idIncluded = true
		return nil
	}
	if p.typed && p.out.kind != Inclusion {
		return mongoerr.New(31253, "Cannot do inclusion on field %s in exclusion projection", name)
	}
	p.decided(Inclusion)
	return nil
}

func (p *parsing) decided(k Kind) { p.typed, p.out.kind = true, k }

func (p *parsing) checkPositional() error {
	switch {
	case p.hasPositional:
		return mongoerr.New(31276, "Cannot specify more than one positional projection per query.")
	case p.hasElemMatch:
		return mongoerr.New(31256, "Cannot specify positional operator and $elemMatch.")
	case p.Filter == nil:
		return mongoerr.New(51050, "Projections with a positional operator require a matcher")
	}
	p.hasPositional = true
	// The query must also be good without all that only a find may say.
	_, err := p.matches.Parse(p.Filter, match.Options{Collation: p.Collation, Exprs: p.Exprs, Scope: p.Scope})
	return err
}

func (p *parsing) exclude(prefix, name string) error {
	if isPositional(name) {
		return mongoerr.New(31395, "positional projection cannot be used with exclusion")
	}
	at, err := path(prefix, name)
	if err != nil {
		return err
	}
	if err := p.insert(at, field{action: exclude}); err != nil {
		return err
	}
	if at.String() == "_id" {
		p.idExcluded = true
		return nil
	}
	if p.typed && p.out.kind != Exclusion {
		return mongoerr.New(31254, "Cannot do exclusion on field %s in inclusion projection", name)
	}
	p.decided(Exclusion)
	return nil
}

func (p *parsing) literal(prefix, name string, v bson.Value) error {
	if isPositional(name) {
		return mongoerr.New(31308, "positional projection cannot be used with a literal")
	}
	if err := p.checkComputed(); err != nil {
		return err
	}
	e, err := p.Exprs.Parse(v, p.Scope)
	if err != nil {
		return err
	}
	at, err := path(prefix, name)
	if err != nil {
		return err
	}
	if err := p.insert(at, field{action: compute, expr: e}); err != nil {
		return err
	}
	if p.typed && p.out.kind == Exclusion {
		return mongoerr.New(31310, "Cannot use an expression %s: %s in an exclusion projection", name, v)
	}
	p.decided(Inclusion)
	return nil
}

func (p *parsing) checkComputed() error {
	if p.Mode == Wildcard {
		return mongoerr.New(51271, "Bad projection specification, cannot use computed fields when parsing a spec in kBanComputedFields mode")
	}
	return nil
}

// object parses a field whose value is a document: an operator, or further fields.
func (p *parsing) object(prefix, name string, d bson.Doc) error {
	if isPositional(name) {
		return mongoerr.New(31271, "positional projection cannot be used with an expression or sub object")
	}
	at, err := path(prefix, name)
	if err != nil {
		return err
	}
	if d.IsEmpty() {
		return mongoerr.New(51270, "Invalid empty sub-projection: %s", name)
	}
	if op := d.FirstKey(); op != "" && op[0] == '$' && d.Count() == 1 {
		return p.operator(at, name, op, d)
	}
	for it := d.Iter(); it.Next(); {
		if err := p.element(at.String(), it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return nil
}

// operator parses a field whose value is a document of one operator.
func (p *parsing) operator(at fieldpath.Path, name, op string, d bson.Doc) error {
	arg := d.Lookup(op)
	var notFind error // why a $slice is not that of a find
	switch {
	case p.Mode == Find && op == "$slice":
		var f field
		if f, notFind = findSlice(arg); notFind == nil {
			notFind = p.insert(at, f)
		}
		if notFind == nil {
			return nil
		}
	case p.Mode == Find && op == "$elemMatch":
		return p.elemMatch(at, d, arg)
	case op == "$elemMatch":
		return mongoerr.New(mongoerr.InvalidPipelineOperator, "Unrecognized expression '%s'", op)
	}
	if err := p.checkComputed(); err != nil {
		return err
	}
	if !p.Exprs.Has(op) {
		return mongoerr.New(31325, "Unknown expression %s", op)
	}
	if op != "$meta" && p.typed && p.out.kind == Exclusion {
		return mongoerr.New(31252, "Cannot use expression other than $meta in exclusion projection")
	}
	e, err := p.Exprs.Parse(d.Value(), p.Scope)
	switch {
	case err != nil && notFind != nil:
		return neitherSlice(d, notFind, err)
	case err != nil:
		return err
	}
	if err := p.insert(at, field{action: compute, expr: e}); err != nil {
		return err
	}
	if op == "$meta" {
		p.hasMeta = true
	} else {
		p.decided(Inclusion)
	}
	return nil
}

func (p *parsing) elemMatch(at fieldpath.Path, d bson.Doc, arg bson.Value) error {
	switch {
	case arg.Type != bson.TypeObject:
		return mongoerr.New(31274, "elemMatch: Invalid argument, object required, but got %s", arg.Type)
	case p.hasPositional:
		return mongoerr.New(31255, "Cannot specify positional operator and $elemMatch.")
	case at.Len() > 1:
		return mongoerr.New(31275, "Cannot use $elemMatch projection on a nested field")
	}
	p.hasElemMatch = true
	f, err := p.matches.Parse(bson.Build().Document(at.String(), d).Doc(), match.Options{Collation: p.Collation, Exprs: p.Exprs, Scope: p.Scope})
	if err != nil {
		return err
	}
	return p.insert(at, field{action: elemMatch, filter: f})
}

// findSlice parses the $slice of a find, which is tried before the expression of that name.
func findSlice(arg bson.Value) (field, error) {
	f := field{action: slice}
	switch {
	case arg.IsNumber():
		f.limit = clampInt(arg)
	case arg.Type == bson.TypeArray && arg.Doc().Count() != 2:
		return f, mongoerr.New(31272, "$slice array argument should be of form [skip, limit]")
	case arg.Type == bson.TypeArray:
		skip, limit := arg.Doc().Index(0), arg.Doc().Index(1)
		if !skip.IsNumber() || !limit.IsNumber() || clampInt(limit) <= 0 {
			return f, mongoerr.New(31259, "$slice needs [<skip>, <limit>] with a positive limit")
		}
		f.skip, f.limit, f.window = clampInt(skip), clampInt(limit), true
	default:
		return f, mongoerr.New(31273, "$slice only supports numbers and [skip, limit] arrays")
	}
	return f, nil
}

// neitherSlice is the error of a $slice that is neither that of a find nor the expression.
func neitherSlice(d bson.Doc, find, expression error) error {
	of := mongoerr.From(find)
	return mongoerr.Prefix(fmt.Sprintf("Invalid $slice syntax. The given syntax %s did not match the find() syntax because :: %s: %s :: The given syntax did not match the expression $slice syntax. :: caused by :: ",
		d, of.Code.Name(), of.Message), expression)
}

// clampInt is a number cut to the range of an int.
func clampInt(v bson.Value) int64 {
	const low, high = -1 << 31, 1<<31 - 1
	return max(low, min(high, v.TruncInt64()))
}

// decide settles the kind, and what that means for _id.
func (p *parsing) decide() {
	root := p.out.root
	if !p.typed {
		p.out.kind = Exclusion
		if p.idIncluded || p.hasElemMatch || p.hasMeta && p.Mode != Find {
			p.out.kind = Inclusion
		}
	}
	switch i := root.find("_id"); {
	case p.out.kind == Inclusion && p.idExcluded, p.out.kind == Exclusion && p.idIncluded:
		root.remove(i) // it is left out, or stays, by itself
	case p.Mode == Wildcard: // where _id is only what is said of it
		if p.out.kind == Exclusion && !p.idNamed {
			root.add(field{name: "_id", action: exclude})
		}
	case p.out.kind == Inclusion && !p.idNamed:
		root.add(field{name: "_id", action: include})
	}
}

// finish notes what the tree holds.
func (p *parsing) finish() *Projection {
	p.out.note(p.out.root)
	return p.out
}

func (out *Projection) note(n *node) {
	for i := range n.fields {
		switch f := &n.fields[i]; f.action {
		case nested:
			out.note(f.node)
			n.computes = n.computes || f.node.computes
			n.positional = n.positional || f.node.positional
		case compute:
			n.computes = true
			out.exprs = append(out.exprs, f.expr)
		case elemMatch:
			n.computes = true
		case positional:
			n.positional = true
		}
	}
	if n == out.root {
		out.positional = n.positional
	}
}
