package exec

import (
	"context"
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// scoreFusionStage is $scoreFusion.
type scoreFusionStage struct {
	fusion
	stage *pipeline.ScoreFusion
}

func newScoreFusion(op *Op, stage *pipeline.ScoreFusion, ns namespace.NS, in Iterator) Iterator {
	s := &scoreFusionStage{newFusion(op, "$scoreFusion", stage.From, ns, in, len(stage.Inputs)), stage}
	s.read, s.combine = s.score, s.combination
	if stage.Details {
		s.details = s.describe
	}
	return s
}

// score runs input i. As in MongoDB the weight comes before the scaling by extremes, which so undoes it.
func (s *scoreFusionStage) score(ctx context.Context, i int) error {
	in := &s.stage.Inputs[i]
	scale := newExtremes()
	err := s.gather(ctx, i, in.Pipeline, func(sub *Op, _ bson.Doc) (fusedPart, error) {
		raw := sub.score()
		part := fusedPart{rank: 1, raw: raw, score: normalized(s.stage.Normalization, raw) * in.Weight, details: bson.ArrayOf()}
		if details := sub.Meta.Get("scoreDetails"); !details.IsMissing() {
			part.details = details.Clone()
		}
		scale.add(part.score)
		return part, nil
	})
	if err != nil || s.stage.Normalization != pipeline.MinMaxScaler {
		return err
	}
	for _, d := range s.docs {
		if part := &d.parts[i]; part.rank > 0 {
			part.score = scale.scaled(part.score)
		}
	}
	return nil
}

// score is the score that the document at hand comes with, 0 without.
func (op *Op) score() float64 {
	for _, kind := range []string{"score", "textScore"} {
		if v := op.Meta.Get(kind); v.IsNumber() {
			return v.AsDouble()
		}
	}
	return 0
}

// combination makes one score of those of all inputs; an input without the document counts as 0.
func (s *scoreFusionStage) combination(d *fusedDoc) (float64, error) {
	if s.stage.Combination == nil {
		sum := 0.0
		for _, part := range d.parts {
			sum += part.score
		}
		return sum / float64(len(d.parts)), nil
	}
	env := s.op.Env
	env.Reset()
	env.Root = d.doc
	for i, part := range d.parts {
		env.Set(s.stage.Inputs[i].Slot, bson.Double(part.score))
	}
	v, err := s.stage.Combination.Eval(env)
	if err != nil {
		return 0, err
	}
	return scoreOf(v)
}

// describe is the scoreDetails of a document.
func (s *scoreFusionStage) describe(d *fusedDoc) bson.Value {
	b := bson.Build().Double("value", d.score)
	b.String("description", "the value calculated by combining the scores (either normalized or raw) across input pipelines from which this document is output from:")
	b.String("normalization", string(s.stage.Normalization)).Object("combination")
	if s.stage.Combination == nil {
		b.String("method", "average").End()
	} else {
		b.String("method", "custom expression").String("expression", s.stage.Text).End()
	}
	b.Array("details")
	for i, part := range d.parts {
		in := &s.stage.Inputs[i]
		b.Object(bson.IndexKey(i)).String("inputPipelineName", in.Name).Double("inputPipelineRawScore", part.raw)
		b.Double("weight", in.Weight).Double("value", part.score)
		if part.rank > 0 {
			b.Value("details", part.details)
		}
		b.End()
	}
	return b.End().Doc().Value()
}

// extremes are the least and the greatest of many scores.
type extremes struct{ least, most float64 }

func newExtremes() *extremes { return &extremes{math.Inf(1), math.Inf(-1)} }

func (e *extremes) add(v float64) { e.least, e.most = min(e.least, v), max(e.most, v) }

// scaled is where v lies between the extremes, from 0 to 1; 0 when all are alike.
func (e *extremes) scaled(v float64) float64 {
	if e.least == e.most {
		return 0
	}
	return (v - e.least) / (e.most - e.least)
}
