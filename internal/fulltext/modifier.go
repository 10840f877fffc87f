package fulltext

import (
	"math"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// modifier is the field "score" of an operator: what becomes of what it computes.
type modifier struct {
	op   operator
	expr *expression
}

// expression computes a score.
type expression struct {
	kind      string // constant, score, path, add, multiply, log, log1p or gauss
	value     float64
	path      string
	undefined float64
	args      []*expression

	origin, scale, offset, decay float64
}

// modified is an operator with the score that it is given.
func (p *parser) modified(a *spec.Reader, name string, op operator) operator {
	if name == "span" {
		return op // each of its parts may have one
	}
	sub := a.Inner("score")
	if sub == nil {
		return op
	}
	kinds := []string{"boost", "constant", "function"}
	switch name {
	case "compound":
		kinds = append(kinds, "dismax")
	case "embeddedDocument", "hasAncestor", "hasRoot":
		kinds = append(kinds, "embedded")
	}
	kind := sub.OneOf(kinds...)
	inner := sub.Inner(kind)
	if inner == nil {
		inner = sub.RequiredInner(kind)
	}
	switch kind {
	case "dismax":
		return p.tied(a, sub, inner, op)
	case "embedded":
		return p.aggregated(sub, inner, op)
	}
	e := p.readScore(kind, inner)
	inner.Done()
	sub.Done()
	return &modifier{op, e}
}

// readScore reads what is behind boost, constant or function.
func (p *parser) readScore(kind string, a *spec.Reader) *expression {
	switch kind {
	case "constant":
		e := &expression{kind: "constant", value: a.RequiredNumber("value")}
		if e.value < 0 {
			a.RefuseField("value", "cannot be negative")
		}
		return e
	case "boost":
		return p.readBoost(a)
	case "function":
		return p.readExpression(a)
	}
	return &expression{kind: "score"}
}

func (p *parser) readBoost(a *spec.Reader) *expression {
	by := &expression{kind: "constant"}
	if a.OneOf("value", "path") == "path" {
		by = &expression{kind: "path", path: a.Str("path"), undefined: a.Number("undefined", 0)}
		p.scorePath(a, by.path)
		a.Value("value")
	} else {
		by.value = a.Number("value", 1)
		if by.value <= 0 {
			a.RefuseField("value", "must be positive")
		}
		if a.Has("undefined") {
			a.Refuse(`"undefined" cannot be present when "value" is present`)
		}
		a.Value("undefined")
		a.Value("path")
	}
	return &expression{kind: "multiply", args: []*expression{{kind: "score"}, by}}
}

// scorePath holds a path of a score to the documents that are looked at.
func (p *parser) scorePath(a *spec.Reader, path string) {
	if p.scope.path != "" && !isBelow(path, p.scope.path) {
		a.Refuse("%s is not a subfield of %s", path, p.scope.path)
	}
}

// readExpression reads one that computes a score of others.
func (p *parser) readExpression(a *spec.Reader) *expression {
	kind := a.OneOf("add", "constant", "gauss", "log", "log1p", "multiply", "path", "score")
	p.counts(a)
	if p.depth++; p.depth > maxDepth {
		a.Refuse("expressions cannot lie in one another more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	for _, name := range []string{"add", "constant", "gauss", "log", "log1p", "multiply", "path", "score"} {
		if name != kind {
			a.Value(name)
		}
	}
	e := &expression{kind: kind}
	if a.Err() != nil {
		return e
	}
	switch kind {
	case "constant":
		e.value = a.RequiredNumber(kind)
	case "score":
		if a.RequiredStr(kind) != "relevance" {
			a.RefuseField(kind, `must be "relevance"`)
		}
	case "path":
		p.readPathValue(a, kind, e)
	case "log", "log1p":
		sub := a.RequiredInner(kind)
		e.args = []*expression{p.readExpression(sub)}
		sub.Done()
	case "add", "multiply":
		for _, each := range a.RequiredList(kind, false) {
			sub := a.Inside(each.Path, each.Value)
			e.args = append(e.args, p.readExpression(sub))
			sub.Done()
		}
		if len(e.args) < 2 {
			a.RefuseField(kind, "%s expression must have at least two arguments", kind)
		}
	case "gauss":
		p.readGauss(a.RequiredInner(kind), e)
	}
	return e
}

func (p *parser) readGauss(a *spec.Reader, e *expression) {
	value := &expression{kind: "path"}
	p.readPathValue(a, "path", value)
	e.args = []*expression{value}
	e.origin, e.scale, e.offset, e.decay = a.RequiredNumber("origin"), a.RequiredNumber("scale"), a.Number("offset", 0), a.Number("decay", 0.5)
	if e.scale == 0 {
		a.RefuseField("scale", "must be nonzero")
	}
	if e.decay <= 0 || e.decay >= 1 {
		a.RefuseField("decay", "must be between 0 and 1 (exclusive)")
	}
	a.Done()
}

// readPathValue reads a path whose number is taken, and which stands for it where there is none.
func (p *parser) readPathValue(a *spec.Reader, name string, e *expression) {
	switch v := a.Required(name); v.Type {
	case bson.TypeString:
		e.path = strings.Clone(v.Str())
	case bson.TypeObject:
		sub := a.Inside(a.Path(name), v)
		e.path, e.undefined = sub.RequiredStr("value"), sub.Number("undefined", 0)
		sub.Done()
	case bson.TypeMissing:
	default:
		a.RefuseField(name, "must be a document or string")
	}
	p.scorePath(a, e.path)
}

// tied makes the best of the should clauses of a compound count.
func (p *parser) tied(a, sub, inner *spec.Reader, op operator) operator {
	tie := inner.Number("tieBreakerScore", 1)
	if tie < 0 || tie > 1 {
		inner.RefuseField("tieBreakerScore", "must be within bounds [0.0, 1.0]")
	}
	inner.Done()
	sub.Done()
	if !a.Has("should") {
		a.Refuse("should clause must not be empty when using dismax score")
	}
	if a.Has("must") || a.Has("mustNot") || a.Has("filter") {
		a.Refuse("cannot use dismax when must, mustNot, or filter is present")
	}
	if c, ok := op.(*compoundOperator); ok {
		c.tie = &tie
	}
	return op
}

// aggregated says how the scores of the documents of an array become one.
func (p *parser) aggregated(sub, inner *spec.Reader, op operator) operator {
	aggregate := inner.Choice("aggregate", "sum", "sum", "maximum", "minimum", "mean")
	outer := inner.Inner("outerScore")
	var e *expression
	if outer != nil {
		kind := outer.OneOf("boost", "constant", "function")
		if in := outer.Inner(kind); in != nil {
			e = p.readScore(kind, in)
			in.Done()
		}
		outer.Done()
	}
	inner.Done()
	sub.Done()
	if o, ok := op.(*embeddedOperator); ok {
		o.aggregate = aggregate
	}
	if e == nil {
		return op
	}
	return &modifier{op, e}
}

func (m *modifier) resolve(r *resolver) (node, error) {
	n := &scored{slot: r.slot(), expr: m.expr, scope: r.scope}
	var err error
	if n.node, err = m.op.resolve(r); err != nil {
		return nil, err
	}
	n.collect(r, m.expr)
	return n, nil
}

// scored is a node with another score.
type scored struct {
	slot  int32
	node  node
	expr  *expression
	scope *scope
	paths []scorePath
}

// scorePath is a number that scores are computed of.
type scorePath struct {
	at    fieldpath.Path
	of    *expression
	takes func(bson.Value) (bson.Value, bool)
}

// collect finds the paths of an expression. One that is not indexed as a number has no value.
func (n *scored) collect(r *resolver, e *expression) {
	if e.kind == "path" {
		f := r.scope.field(e.path)
		n.paths = append(n.paths, scorePath{r.scope.values(e.path), e, func(v bson.Value) (bson.Value, bool) {
			if f == nil || !v.IsNumber() {
				return v, false
			}
			return indexed(f, v)
		}})
	}
	for _, each := range e.args {
		n.collect(r, each)
	}
}

func (n *scored) observe(counting bool) { n.node.observe(counting) }

func (n *scored) find(ev []evidence) ([]evidence, bool) {
	start := len(ev)
	ev = append(ev, evidence{slot: n.slot, item: -1})
	for i, p := range n.paths {
		value := p.of.undefined
		if v, ok := p.takes(p.at.Get(n.scope.view.doc)); ok { // numbers in arrays are none to take
			value = v.AsDouble()
		}
		ev = append(ev, evidence{slot: n.slot, item: int32(i), freq: float32(value)})
	}
	out, ok := n.node.find(ev)
	if !ok {
		return out[:start], false
	}
	return out, true
}

func (n *scored) score(c *cursor) (float64, *detail, bool) {
	if _, ok := c.next(n.slot); !ok {
		return 0, nil, false
	}
	values := make(map[*expression]float64, len(n.paths))
	for _, p := range n.paths {
		e, _ := c.next(n.slot)
		values[p.of] = float64(e.freq)
	}
	relevance, d, _ := n.node.score(c)
	score := n.expr.compute(relevance, values)
	if math.IsNaN(score) || score < 0 {
		score = 0 // no score is less
	}
	return score, c.detail(score, []*detail{d}, "%s", n.expr), true
}

func (n *scored) mark(f *textField, mark func(int)) { n.node.mark(f, mark) }

// compute is what an expression gives.
func (e *expression) compute(relevance float64, values map[*expression]float64) float64 {
	of := func(i int) float64 { return e.args[i].compute(relevance, values) }
	switch e.kind {
	case "constant":
		return e.value
	case "path":
		return values[e]
	case "log":
		return math.Log10(of(0))
	case "log1p":
		return math.Log10(1 + of(0))
	case "gauss":
		apart := max(0, math.Abs(of(0)-e.origin)-e.offset)
		return math.Exp(apart * apart / (e.scale * e.scale / math.Log(e.decay)))
	case "add":
		sum := 0.0
		for i := range e.args {
			sum += of(i)
		}
		return sum
	case "multiply":
		product := 1.0
		for i := range e.args {
			product *= of(i)
		}
		return product
	}
	return relevance
}

// String is the expression as scores are explained.
func (e *expression) String() string {
	list := func(sep string) string {
		parts := make([]string, len(e.args))
		for i, each := range e.args {
			parts[i] = each.String()
		}
		return "(" + strings.Join(parts, sep) + ")"
	}
	switch e.kind {
	case "constant":
		return bson.Double(e.value).String()
	case "path":
		return e.path
	case "add":
		return list(" + ")
	case "multiply":
		return list(" * ")
	case "score":
		return "scores"
	}
	return e.kind + list(", ")
}
