package pipeline

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// RankFusion is $rankFusion: several pipelines over the same collection, joined by reciprocal rank.
type RankFusion struct {
	written
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
	r := &RankFusion{written: written{"$rankFusion", arg}, Details: !details.IsMissing() && details.Bool()}
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
	if err := p.checkSelection(name, v.Doc()); err != nil {
		return in, err
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
		case *GeoNear, *Search:
			ranked = true
		}
	}
	if !ranked {
		return in, mongoerr.New(9191100, "Input pipeline '%s' of $rankFusion must begin with a ranked stage or have a $sort", name)
	}
	return in, nil
}

// checkSelection refuses stages that do more than to select documents, wherever they stand.
func (p *parsing) checkSelection(name string, stages bson.Doc) error {
	for it := stages.Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			continue // the parser of stages says what is wrong
		}
		stage := it.Value().Doc()
		reshapes := p.table[stage.FirstKey()] != nil
		switch stage.FirstKey() {
		case "$match", "$sort", "$limit", "$skip", "$sample", "$search", "$vectorSearch", "$rankFusion", "$scoreFusion":
			reshapes = false
		case "$geoNear":
			if arg := stage.Index(0); arg.Type == bson.TypeObject {
				reshapes = !arg.Doc().Lookup("distanceField").IsMissing() || !arg.Doc().Lookup("includeLocs").IsMissing()
			}
		}
		if reshapes {
			return mongoerr.New(9191103, "Input pipeline '%s' of $rankFusion may only select documents, but it has the stage %s", name, stage.FirstKey())
		}
	}
	return nil
}

// checkDetails refuses to read the details that a $rankFusion in front does not make.
func (p *Pipeline) checkDetails() error {
	r, ok := p.First().(*RankFusion)
	if ok && !r.Details && slices.Contains(p.From(1).Dependencies().Meta, "scoreDetails") {
		return mongoerr.New(40218, "query requires scoreDetails metadata, but it is not available")
	}
	return nil
}

func isFusion(name string) bool { return name == "$rankFusion" || name == "$scoreFusion" }

func (r *RankFusion) weigh(weights bson.Doc) error {
	if weights.Count() > len(r.Inputs) {
		return mongoerr.New(9460301, "$rankFusion has %d input pipelines, but %d weights", len(r.Inputs), weights.Count())
	}
	for it := weights.Iter(); it.Next(); {
		found := false
		for i := range r.Inputs {
			if r.Inputs[i].Name != it.Key() {
				continue
			}
			found = true
			if !it.Value().IsNumber() {
				return mongoerr.New(13118, "$rankFusion's weight of '%s' must be a number, but is %s", it.Key(), it.Value().Type)
			}
			if r.Inputs[i].Weight = it.Value().AsDouble(); !(r.Inputs[i].Weight >= 0) {
				return mongoerr.New(9460300, "$rankFusion's weights must be non-negative, but that of '%s' is %s", it.Key(), it.Value())
			}
		}
		if !found {
			return mongoerr.New(9967500, "$rankFusion has no input pipeline named '%s', but a weight for it", it.Key())
		}
	}
	return nil
}

func (r *RankFusion) needs(*Dependencies) bool { return false }
