package exec

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// fusionRank is what reciprocal rank fusion adds to every rank.
const fusionRank = 60

// rankFusionStage is $rankFusion. It opens the collection once for each input; the source that it stands on is not read.
type rankFusionStage struct {
	op    *Op
	stage *pipeline.RankFusion
	ns    namespace.NS
	in    Iterator

	fused []*fusedDoc
	held  int64
	open  bool
	next  int
}

// fusedDoc is a document with its rank in each input, 0 where it did not come.
type fusedDoc struct {
	doc   bson.Doc
	ranks []int64
	score float64
}

func (s *rankFusionStage) Next(ctx context.Context) (bson.Doc, error) {
	if !s.open {
		if err := s.fuse(ctx); err != nil {
			return nil, err
		}
		s.open = true
	}
	if s.next == len(s.fused) {
		return nil, nil
	}
	f := s.fused[s.next]
	s.next++
	s.op.Meta.Clear()
	s.op.Meta.Set("score", bson.Double(f.score))
	if s.stage.Details {
		s.op.Meta.Set("scoreDetails", s.details(f))
	}
	return f.doc, nil
}

func (s *rankFusionStage) fuse(ctx context.Context) error {
	byID := map[string]*fusedDoc{}
	for i := range s.stage.Inputs {
		if err := s.rank(ctx, i, byID); err != nil {
			return err
		}
	}
	for _, f := range s.fused {
		for i, rank := range f.ranks {
			if rank > 0 {
				f.score += s.stage.Inputs[i].Weight / float64(fusionRank+rank)
			}
		}
	}
	slices.SortStableFunc(s.fused, func(a, b *fusedDoc) int {
		if c := bson.Compare(bson.Double(b.score), bson.Double(a.score)); c != 0 {
			return c
		}
		return bson.Compare(a.doc.Lookup("_id"), b.doc.Lookup("_id"))
	})
	return nil
}

// rank runs input i. Documents that sort alike share a rank, and leave as many out behind it.
func (s *rankFusionStage) rank(ctx context.Context, i int, byID map[string]*fusedDoc) error {
	in := &s.stage.Inputs[i]
	sub := s.op.Sub()
	defer s.op.Drop(sub)
	it, err := s.op.Catalog.Open(ctx, sub, s.ns, in.Pipeline)
	if err != nil {
		return err
	}
	defer it.Close()
	var before []bson.Value
	var key []byte
	at, rank := int64(0), int64(0)
	for {
		d, err := it.Next(ctx)
		if d == nil {
			return err
		}
		if err := interrupted(ctx); err != nil {
			return err
		}
		at++
		same := false
		if in.Sort != nil {
			now, err := in.Sort.Key(nil, d, sub.Meta.Get, s.op.collator())
			if err != nil {
				return err
			}
			same = before != nil && in.Sort.Compare(before, now, s.op.collator()) == 0
			before = cloneValues(now)
		}
		if !same {
			rank = at
		}
		key = bson.AppendCanonical(key[:0], d.Lookup("_id"), nil)
		f := byID[string(key)]
		if f == nil {
			f = &fusedDoc{doc: d.Clone(), ranks: make([]int64, len(s.stage.Inputs))}
			byID[string(key)] = f
			s.fused = append(s.fused, f)
			if s.held += int64(len(d)+len(key)) + 128; s.held > s.op.maxMemory() {
				return mongoerr.New(mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed, "Exceeded memory limit for $rankFusion, which cannot spill")
			}
		}
		f.ranks[i] = rank
	}
}

func cloneValues(vs []bson.Value) []bson.Value {
	for i := range vs {
		vs[i] = vs[i].Clone()
	}
	return vs
}

// details is the scoreDetails of a document.
func (s *rankFusionStage) details(f *fusedDoc) bson.Value {
	b := bson.Build().Double("value", f.score)
	b.String("description", "value output by reciprocal rank fusion algorithm, computed as sum of (weight * (1 / (60 + rank))) across input pipelines from which this document is output, from:")
	b.Array("details")
	for i, rank := range f.ranks {
		b.Object(bson.IndexKey(i)).String("inputPipelineName", s.stage.Inputs[i].Name)
		if rank == 0 {
			b.String("rank", "NA")
		} else {
			b.Number("rank", rank).Double("weight", s.stage.Inputs[i].Weight)
		}
		b.Array("details").End().End()
	}
	return b.End().Doc().Value()
}

func (s *rankFusionStage) Close() error { return s.in.Close() }
