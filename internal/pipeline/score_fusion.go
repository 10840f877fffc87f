package pipeline

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// ScoreFusion is $scoreFusion: several pipelines over the same collection, joined by the scores that they give.
type ScoreFusion struct {
	written
	// From is the view that the inputs read; without a Coll they read what the pipeline is on.
	From namespace.NS
	// Inputs are sorted by name.
	Inputs        []ScoredInput
	Normalization Normalization
	// Combination makes the score out of those of the inputs, which are its variables; nil for their average. Text is how
	// scoreDetails show it.
	Combination expr.Expr
	Text        string
	// Details says that scoreDetails are asked for.
	Details bool
}

// ScoredInput is one pipeline of a $scoreFusion.
type ScoredInput struct {
	Name     string
	Pipeline *Pipeline
	Weight   float64
	// Slot is the variable of the input's score, in Combination.
	Slot expr.Slot
}

const scoredInputs = "All subpipelines to the $scoreFusion stage must begin with one of $search, $vectorSearch, or have a custom $score in the pipeline."

func parseScoreFusion(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(mongoerr.FailedToParse, "The $scoreFusion stage specification must be an object, found %s", arg.Type)
	}
	var input, combination, details, pipelines, normalization bson.Value
	err := readStrict("$scoreFusion", arg.Doc(), want{name: "input", to: &input, types: anObject, required: true},
		want{name: "combination", to: &combination, types: anObject}, want{name: "scoreDetails", to: &details, types: aBool})
	if err != nil {
		return nil, err
	}
	if err := readStrict("$scoreFusion.input", input.Doc(), want{name: "pipelines", to: &pipelines, types: anObject, required: true},
		want{name: "normalization", to: &normalization, types: aString, required: true}); err != nil {
		return nil, err
	}
	f := &ScoreFusion{written: written{"$scoreFusion", arg}, From: p.Fused, Details: !details.IsMissing() && details.Bool()}
	if f.Normalization, err = readNormalization("$scoreFusion.input.normalization", normalization); err != nil {
		return nil, err
	}
	c, err := readCombination(combination)
	if err != nil {
		return nil, err
	}
	if err := f.readInputs(p, pipelines.Doc()); err != nil {
		return nil, err
	}
	return one(f), f.combine(p, c)
}

func (f *ScoreFusion) readInputs(p *parsing, pipelines bson.Doc) error {
	if pipelines.IsEmpty() {
		return mongoerr.New(mongoerr.BadValue, "$scoreFusion requires at least one pipeline in 'input.pipelines'")
	}
	for it := pipelines.Iter(); it.Next(); {
		in, err := p.scoredInput(it.Key(), it.Value())
		if err != nil {
			return err
		}
		if slices.ContainsFunc(f.Inputs, func(other ScoredInput) bool { return other.Name == in.Name }) {
			return mongoerr.New(9402203, "$scoreFusion pipeline names must be unique, but found duplicate name '%s'.", in.Name)
		}
		f.Inputs = append(f.Inputs, in)
	}
	slices.SortFunc(f.Inputs, func(a, b ScoredInput) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

func (p *parsing) scoredInput(name string, v bson.Value) (ScoredInput, error) {
	in := ScoredInput{Name: name, Weight: 1}
	if v.Type != bson.TypeArray {
		return in, wrongType("$scoreFusion.input.pipelines."+name, v.Type, anArray)
	}
	if v.Doc().IsEmpty() {
		return in, mongoerr.New(9402503, "$scoreFusion input pipeline cannot be empty. %s", scoredInputs)
	}
	if hasFusion(v.Doc()) {
		return in, mongoerr.New(10473003, "$scoreFusion input pipeline has a nested hybrid search stage ($rankFusion/$scoreFusion). %s", scoredInputs)
	}
	sub, err := p.sub("$scoreFusion", v, p.NS, p.Scope)
	if err != nil {
		return in, err
	}
	if !sub.scored() {
		return in, mongoerr.New(9402500, "%s Pipeline did not begin with a scored stage and did not contain an explicit $score stage.", scoredInputs)
	}
	if stage := p.reshaping(v.Doc()); stage != "" {
		return in, mongoerr.New(9402502, "%s is not a selection stage because it modifies or transforms the input documents. Only stages that retrieve, limit, or order documents are allowed.", stage)
	}
	in.Pipeline = sub
	if err := fieldpath.CheckName(name); err != nil {
		return in, err
	}
	return in, nil
}

// scored says whether p's documents come with a score.
func (p *Pipeline) scored() bool {
	switch s := p.First().(type) {
	case *Search, *VectorSearch:
		return true
	case *Match:
		if usesText(s.Filter.Root) {
			return true
		}
	}
	return slices.ContainsFunc(p.Stages, func(s Stage) bool { _, is := s.(*Score); return is })
}

// combination is what a $scoreFusion's combination says.
type combination struct {
	weights, expression bson.Value
}

func readCombination(v bson.Value) (c combination, err error) {
	if v.IsMissing() {
		return c, nil
	}
	var method, expression bson.Value
	if err := readStrict("$scoreFusion.combination", v.Doc(), want{name: "weights", to: &c.weights, types: anObject},
		want{name: "method", to: &method, types: aString}, want{name: "expression", to: &expression}); err != nil {
		return c, err
	}
	if method.IsMissing() { // an expression alone means nothing
		return c, nil
	}
	switch m := method.Str(); {
	case m != "avg" && m != "expression":
		return c, mongoerr.New(mongoerr.BadValue, "Enumeration value '%s' for field '$scoreFusion.combination.method' is not a valid value.", m)
	case (m == "expression") == expression.IsMissing():
		return c, mongoerr.New(10017300, `combination.expression should only be specified when combination.method has the value "expression"`)
	case !expression.IsMissing() && !c.weights.IsMissing():
		return c, mongoerr.New(10017301, "both combination.expression and combination.weights cannot be specified")
	}
	c.expression = expression
	return c, nil
}

// combine takes the weights and the expression of c.
func (f *ScoreFusion) combine(p *parsing, c combination) error {
	if !c.weights.IsMissing() {
		if err := readWeights("$scoreFusion", c.weights.Doc(), len(f.Inputs), f.weight); err != nil {
			return err
		}
	}
	if c.expression.IsMissing() {
		return nil
	}
	scope := p.Scope
	for i := range f.Inputs {
		if err := expr.CheckVariableName(f.Inputs[i].Name); err != nil {
			return err
		}
		scope, f.Inputs[i].Slot = scope.Define(f.Inputs[i].Name)
	}
	var err error
	f.Combination, err = p.Exprs.Parse(c.expression, scope)
	f.Text = scoreText(c.expression)
	return err
}

func (f *ScoreFusion) weight(name string) *float64 {
	for i := range f.Inputs {
		if f.Inputs[i].Name == name {
			return &f.Inputs[i].Weight
		}
	}
	return nil
}

// scoreText is how scoreDetails show an expression.
func scoreText(v bson.Value) string {
	return strings.ReplaceAll(bson.Build().Value("string", v).Doc().String(), `"`, "'")
}

func (f *ScoreFusion) needs(d *Dependencies) bool {
	if f.Combination != nil {
		d.draws(f.Combination)
	}
	for _, in := range f.Inputs {
		d.random = d.random || in.Pipeline.Random()
	}
	return false
}
