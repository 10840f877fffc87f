package pipeline

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// What $rankFusion and $scoreFusion have in common.

func isFusion(name string) bool { return name == "$rankFusion" || name == "$scoreFusion" }

// hasFusion says whether one of the stages is itself a fusion.
func hasFusion(stages bson.Doc) bool {
	for it := stages.Iter(); it.Next(); {
		if it.Value().Type == bson.TypeObject && isFusion(it.Value().Doc().FirstKey()) {
			return true
		}
	}
	return false
}

// reshaping is the first of the stages that does more than to select documents, wherever it stands; "" when none does.
func (p *parsing) reshaping(stages bson.Doc) string {
	for it := stages.Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			continue // the parser of stages says what is wrong
		}
		stage := it.Value().Doc()
		name := stage.FirstKey()
		if p.table[name] != nil && !selects(name, stage.Index(0)) {
			return name
		}
	}
	return ""
}

func selects(name string, arg bson.Value) bool {
	switch name {
	case "$match", "$sort", "$limit", "$skip", "$sample", "$score", "$search", "$vectorSearch", "$rankFusion", "$scoreFusion":
		return true
	case "$geoNear":
		return arg.Type != bson.TypeObject || arg.Doc().Lookup("distanceField").IsMissing() && arg.Doc().Lookup("includeLocs").IsMissing()
	}
	return false
}

// readWeights reads combination.weights. weight finds the weight of an input, nil when there is no such input.
func readWeights(stage string, weights bson.Doc, inputs int, weight func(name string) *float64) error {
	if weights.Count() > inputs {
		return mongoerr.New(9460301, "%s has %d input pipelines, but %d weights", stage, inputs, weights.Count())
	}
	for it := weights.Iter(); it.Next(); {
		w := weight(it.Key())
		switch {
		case w == nil:
			return mongoerr.New(9967500, "%s has no input pipeline named '%s', but a weight for it", stage, it.Key())
		case !it.Value().IsNumber():
			return mongoerr.New(13118, "%s's weight of '%s' must be a number, but is %s", stage, it.Key(), it.Value().Type)
		}
		if *w = it.Value().AsDouble(); !(*w >= 0) {
			return mongoerr.New(9460300, "%s's weights must be non-negative, but that of '%s' is %s", stage, it.Key(), it.Value())
		}
	}
	return nil
}

// checkDetails refuses to read the details that a fusion or $search in front does not make.
func (p *Pipeline) checkDetails() error {
	made := true
	switch s := p.First().(type) {
	case *RankFusion:
		made = s.Details
	case *ScoreFusion:
		made = s.Details
	case *Search:
		made = s.Details || slices.ContainsFunc(p.Stages, func(s Stage) bool { score, is := s.(*Score); return is && score.Details })
	}
	if !made && slices.Contains(p.From(1).Dependencies().Meta, "scoreDetails") {
		return mongoerr.New(40218, "query requires scoreDetails metadata, but it is not available")
	}
	return nil
}
