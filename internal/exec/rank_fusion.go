package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// fusionRank is what reciprocal rank fusion adds to every rank.
const fusionRank = 60

// rankFusionStage is $rankFusion.
type rankFusionStage struct {
	fusion
	stage *pipeline.RankFusion
}

func newRankFusion(op *Op, stage *pipeline.RankFusion, ns namespace.NS, in Iterator) Iterator {
	s := &rankFusionStage{newFusion(op, "$rankFusion", stage.From, ns, in, len(stage.Inputs)), stage}
	s.read, s.combine = s.rank, s.sum
	if stage.Details {
		s.details = s.describe
	}
	return s
}

// sum is a document's score: the better its ranks, the more.
func (s *rankFusionStage) sum(d *fusedDoc) (sum float64, _ error) {
	for i, part := range d.parts {
		if part.rank > 0 {
			sum += s.stage.Inputs[i].Weight / float64(fusionRank+part.rank)
		}
	}
	return sum, nil
}

// rank runs input i. Documents that sort alike share a rank, and leave as many out behind it.
func (s *rankFusionStage) rank(ctx context.Context, i int) error {
	in := &s.stage.Inputs[i]
	var before []bson.Value
	at, rank := int64(0), int64(0)
	return s.gather(ctx, i, in.Pipeline, func(sub *Op, d bson.Doc) (fusedPart, error) {
		at++
		same := false
		if in.Sort != nil {
			now, err := in.Sort.Key(nil, d, sub.Meta.Get, s.op.collator(), s.op.Interrupted)
			if err != nil {
				return fusedPart{}, err
			}
			same = before != nil && in.Sort.Compare(before, now, s.op.collator()) == 0
			before = cloneValues(now)
		}
		if !same {
			rank = at
		}
		part := fusedPart{rank: rank}
		if s.stage.Details {
			part.details = scoreDetails(sub)
		}
		return part, nil
	})
}

// scoreDetails are those of the document at hand: what its stages tell, or its score, where it has one.
func scoreDetails(op *Op) bson.Value {
	if told := op.Meta.Get("scoreDetails"); told.Type == bson.TypeObject {
		return told.Clone()
	}
	b := bson.Build()
	if score := op.Meta.Get("score"); !score.IsMissing() {
		b.Value("value", score)
	}
	return b.Array("details").End().Doc().Value()
}

func cloneValues(vs []bson.Value) []bson.Value {
	for i := range vs {
		vs[i] = vs[i].Clone()
	}
	return vs
}

// describe is the scoreDetails of a document.
func (s *rankFusionStage) describe(d *fusedDoc) bson.Value {
	b := bson.Build().Double("value", d.score)
	b.String("description", "value output by reciprocal rank fusion algorithm, computed as sum of (weight * (1 / (60 + rank))) across input pipelines from which this document is output, from:")
	b.Array("details")
	for i, part := range d.parts {
		b.Object(bson.IndexKey(i)).String("inputPipelineName", s.stage.Inputs[i].Name)
		if part.rank == 0 {
			b.String("rank", "NA").End()
			continue
		}
		b.Number("rank", part.rank).Double("weight", s.stage.Inputs[i].Weight).Fields(part.details.Doc()).End()
	}
	return b.End().Doc().Value()
}
