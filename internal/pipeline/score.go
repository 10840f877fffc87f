package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Score is $score: it gives documents the metadata "score".
type Score struct {
	written
	Score         expr.Expr
	Normalization Normalization
	Weight        float64
	// Details says that scoreDetails are asked for, Text how they show the expression.
	Details bool
	Text    string
}

// Normalization says how scores are brought between 0 and 1.
type Normalization string

// The normalizations.
const (
	NotNormalized Normalization = "none"
	Sigmoid       Normalization = "sigmoid"
	MinMaxScaler  Normalization = "minMaxScaler"
)

func parseScore(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(mongoerr.FailedToParse, "The $score stage specification must be an object, found %s", arg.Type)
	}
	var score, normalization, weight, details bson.Value
	err := readStrict("$score", arg.Doc(), want{name: "score", to: &score, required: true}, want{name: "normalization", to: &normalization, types: aString},
		want{name: "weight", to: &weight, types: aNumber}, want{name: "scoreDetails", to: &details, types: aBool})
	if err != nil {
		return nil, err
	}
	s := &Score{written: written{"$score", arg}, Weight: 1, Details: !details.IsMissing() && details.Bool(), Text: scoreText(score)}
	if s.Normalization, err = readNormalization("$score.normalization", normalization); err != nil {
		return nil, err
	}
	if !weight.IsMissing() {
		s.Weight = weight.AsDouble()
		if err := checkScoreWeight(s.Weight, weight); err != nil {
			return nil, err
		}
	}
	s.Score, err = p.Exprs.Parse(score, p.Scope)
	return one(s), err
}

func checkScoreWeight(weight float64, v bson.Value) error {
	switch {
	case !(weight >= 0):
		return mongoerr.New(51024, "BSON field 'weight' value must be >= 0, actual value '%s'", v)
	case weight > 1:
		return mongoerr.New(51024, "BSON field 'weight' value must be <= 1, actual value '%s'", v)
	}
	return nil
}

func readNormalization(field string, v bson.Value) (Normalization, error) {
	if v.IsMissing() {
		return NotNormalized, nil
	}
	switch n := Normalization(v.Str()); n {
	case NotNormalized, Sigmoid, MinMaxScaler:
		return n, nil
	}
	return "", mongoerr.New(mongoerr.BadValue, "Enumeration value '%s' for field '%s' is not a valid value.", v.Str(), field)
}

func (s *Score) needs(d *Dependencies) bool {
	d.exprs(s.Score)
	return true
}
