package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// RankFusion is $rankFusion: several pipelines over the same collection, joined by reciprocal rank.
type RankFusion struct {
	written
	// From is the view that the inputs read; without a Coll they read what the pipeline is on.
	From   namespace.NS
	Inputs []RankedInput
	// Details says that scoreDetails are asked for.
	Details bool
}

// RankedInput is one pipeline of a $rankFusion.
type RankedInput struct {
	Name     string
	Pipeline *Pipeline
	Weight   float64
	// Sort is what equal documents of the result are told by, nil when all are different.
	Sort *sortpattern.Pattern
}

func parseRankFusion(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(mongoerr.FailedToParse, "the $rankFusion stage specification must be an object, found %s", arg.Type)
	}
	var input, combination, details, pipelines, weights bson.Value
	err := readStrict("$rankFusion", arg.Doc(), want{name: "input", to: &input, types: anObject, required: true},
		want{name: "combination", to: &combination, types: anObject}, want{name: "scoreDetails", to: &details, types: aBool})
	if err != nil {
		return nil, err
	}
	if err := readStrict("$rankFusion.input", input.Doc(), want{name: "pipelines", to: &pipelines, types: anObject, required: true}); err != nil {
		return nil, err
	}
	if !combination.IsMissing() {
		if err := readStrict("$rankFusion.combination", combination.Doc(), want{name: "weights", to: &weights, types: anObject, required: true}); err != nil {
			return nil, err
		}
	}
	if pipelines.Doc().IsEmpty() {
		return nil, mongoerr.New(mongoerr.BadValue, "$rankFusion requires at least one pipeline in 'input.pipelines'")
	}
	r := &RankFusion{written: written{"$rankFusion", arg}, From: p.Fused, Details: !details.IsMissing() && details.Bool()}
	for it := pipelines.Doc().Iter(); it.Next(); {
		in, err := p.rankedInput(it.Key(), it.Value())
		if err != nil {
			return nil, err
		}
		r.Inputs = append(r.Inputs, in)
	}
	if !weights.IsMissing() {
		err = r.weigh(weights.Doc())
	}
	return one(r), err
}

func (p *parsing) rankedInput(name string, v bson.Value) (RankedInput, error) {
	in := RankedInput{Name: name, Weight: 1}
	if err := fieldpath.CheckName(name); err != nil {
		return in, err
	}
	if v.Type != bson.TypeArray {
		return in, wrongType("$rankFusion.input.pipelines."+name, v.Type, anArray)
	}
	if v.Doc().IsEmpty() {
		return in, mongoerr.New(9834300, "Input pipeline '%s' of $rankFusion must not be empty", name)
	}
	if first := v.Doc().Index(0); first.Type == bson.TypeObject && isFusion(first.Doc().FirstKey()) {
		return in, mongoerr.New(10473002, "Input pipeline '%s' of $rankFusion may not have a nested hybrid search stage", name)
	}
	if stage := p.reshaping(v.Doc()); stage != "" {
		return in, mongoerr.New(9191103, "Input pipeline '%s' of $rankFusion may only select documents, but it has the stage %s", name, stage)
	}
	var err error
	if in.Pipeline, err = p.sub("$rankFusion", v, p.NS, p.Scope); err != nil {
		return in, err
	}
	ranked := false
	for _, s := range in.Pipeline.Stages {
		switch s := s.(type) {
		case *Match, *Limit, *Skip:
		case *Sort:
			in.Sort, ranked = s.Pattern, true
		case *Sample:
			in.Sort = nil
		case *GeoNear, *Search, *VectorSearch:
			ranked = true
		}
	}
	if !ranked {
		return in, mongoerr.New(9191100, "Input pipeline '%s' of $rankFusion must begin with a ranked stage or have a $sort", name)
	}
	return in, nil
}

func (r *RankFusion) weigh(weights bson.Doc) error {
	return readWeights("$rankFusion", weights, len(r.Inputs), func(name string) *float64 {
		for i := range r.Inputs {
			if r.Inputs[i].Name == name {
				return &r.Inputs[i].Weight
			}
		}
		return nil
	})
}

func (r *RankFusion) needs(d *Dependencies) bool {
	for _, in := range r.Inputs {
		d.random = d.random || in.Pipeline.Random()
	}
	return false
}
