package exec

import (
	"context"
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// scoreStage is $score. To scale by extremes it has to see all documents, and then gives out the best first.
type scoreStage struct {
	op    *Op
	stage *pipeline.Score
	in    Iterator

	rows []scoredRow // when it scales; nil until it has read them all
	held holding
	read bool
	next int
}

type scoredRow struct {
	doc, meta bson.Doc
	raw       float64
}

func (s *scoreStage) Next(ctx context.Context) (bson.Doc, error) {
	if s.stage.Normalization == pipeline.MinMaxScaler {
		return s.nextScaled(ctx)
	}
	d, err := s.in.Next(ctx)
	if d == nil {
		return nil, err
	}
	raw, err := s.raw(d)
	if err != nil {
		return nil, err
	}
	s.set(raw, normalized(s.stage.Normalization, raw))
	return d, nil
}

func (s *scoreStage) nextScaled(ctx context.Context) (bson.Doc, error) {
	if !s.read {
		if err := s.readAll(ctx); err != nil {
			return nil, err
		}
		s.read = true
	}
	if s.next == len(s.rows) {
		return nil, nil
	}
	row := &s.rows[s.next]
	s.next++
	scale := extremes{s.rows[len(s.rows)-1].raw, s.rows[0].raw}
	s.op.Meta.from(row.meta)
	s.set(row.raw, scale.scaled(row.raw))
	return row.doc, nil
}

func (s *scoreStage) readAll(ctx context.Context) error {
	err := Each(ctx, s.in, func(d bson.Doc) (err error) {
		row := scoredRow{doc: d.Clone(), meta: s.op.Meta.doc()}
		if row.raw, err = s.raw(d); err != nil {
			return err
		}
		s.rows = append(s.rows, row)
		return s.held.hold(ctx, int64(len(row.doc)+len(row.meta))+64, func() error {
			return mongoerr.New(mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed, "Exceeded memory limit for $score with minMaxScaler, which cannot spill")
		})
	})
	slices.SortStableFunc(s.rows, func(a, b scoredRow) int { return bson.Compare(bson.Double(b.raw), bson.Double(a.raw)) })
	return err
}

// raw is the score of d before it is normalized and weighed.
func (s *scoreStage) raw(d bson.Doc) (float64, error) {
	env := s.op.Env
	env.Reset()
	env.Root = d
	v, err := s.stage.Score.Eval(env)
	if err != nil {
		return 0, err
	}
	return scoreOf(v)
}

func scoreOf(v bson.Value) (float64, error) {
	if !v.IsNumber() {
		return 0, mongoerr.New(mongoerr.TypeMismatch, "Expected a number for the metadata field 'score', but got %s of type %s", v.Computed(), v.Type)
	}
	return v.AsDouble(), nil
}

func normalized(by pipeline.Normalization, raw float64) float64 {
	if by == pipeline.Sigmoid {
		return 1 / (1 + math.Exp(-raw))
	}
	return raw
}

// set gives the document at hand its score.
func (s *scoreStage) set(raw, normalized float64) {
	score := normalized * s.stage.Weight
	s.op.Meta.Set("score", bson.Double(score))
	if !s.stage.Details {
		return
	}
	b := bson.Build().Double("value", score)
	b.String("description", "the score calculated from multiplying a weight in the range [0,1] with either a normalized or nonnormalized value:")
	b.Double("rawScore", raw).String("normalization", string(s.stage.Normalization)).Double("weight", s.stage.Weight)
	b.String("expression", s.stage.Text).Array("details").End()
	s.op.Meta.Set("scoreDetails", b.Doc().Value())
}

func (s *scoreStage) Close() error {
	s.rows = nil
	s.held.empty()
	return s.in.Close()
}
