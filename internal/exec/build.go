package exec

import (
	"context"
	"fmt"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// Build stacks the stages of p on source, which it takes over: it is closed with the result, and when Build fails. source
// may be nil when the first stage brings the documents. Nothing is read before the first Next.
func Build(op *Op, p *pipeline.Pipeline, source Iterator) (Iterator, error) {
	if op.Env == nil {
		op.Env = op.newEnv()
	}
	op.Env.Meta = op.Meta.Get
	it := source
	if it == nil {
		it = empty{}
	}
	for i, s := range p.Stages {
		next, err := stage(op, p, i, s, it)
		if err != nil {
			_ = it.Close() // the first error is the one that matters
			return nil, err
		}
		it = next
		if op.Explain {
			c := &Counted{Iterator: it, Name: s.Name()}
			op.Counts = append(op.Counts, c)
			it = c
		}
	}
	if op.parent == nil {
		it = &whole{op, it, slices.ContainsFunc(p.Stages, deepens)}
	}
	return it, nil
}

// stage is the iterator of one stage. Stages whose second half is done by the iterator of another are passed through.
func stage(op *Op, p *pipeline.Pipeline, i int, s pipeline.Stage, in Iterator) (Iterator, error) {
	switch s := s.(type) {
	case *pipeline.Match:
		return &matchStage{op, s.Filter, in}, nil
	case *pipeline.Project:
		return &projectStage{op: op, projection: s.Projection, in: in}, nil
	case *pipeline.Sort:
		return newSort(op, s, in), nil
	case *pipeline.Limit:
		return &limitStage{n: s.N, in: in}, nil
	case *pipeline.Skip:
		return &skipStage{n: s.N, in: in}, nil
	case *pipeline.Count:
		return &countStage{op: op, field: s.Field, in: in}, nil
	case *pipeline.Unwind:
		return &unwindStage{stage: s, in: in, pinned: pinned{holding{op: op}}}, nil
	case *pipeline.Group:
		return newGroup(op, s, in), nil
	case *pipeline.BucketAuto:
		return newBucketAuto(op, s, in), nil
	case *pipeline.SetWindowFields:
		return newWindow(op, s, in), nil
	case *pipeline.Densify:
		return newDensify(op, s, in), nil
	case *pipeline.ReplaceRoot:
		return &replaceRootStage{op: op, stage: s, in: in}, nil
	case *pipeline.Redact:
		return &redactStage{op: op, stage: s, in: in}, nil
	case *pipeline.Sample:
		return newSample(op, s, in), nil
	case *pipeline.Documents:
		return &documentsStage{op: op, stage: s}, nil
	case *pipeline.Facet:
		return &facetStage{op: op, stage: s, in: in, held: holding{op: op}}, nil
	case *pipeline.Lookup:
		return newLookup(op, s, in), nil
	case *pipeline.GraphLookup:
		return newGraphLookup(op, s, in), nil
	case *pipeline.UnionWith:
		scored := op.TextScores || slices.Contains(p.From(i+1).Dependencies().Meta, "textScore")
		return &unionStage{op: op, stage: s, in: in, scored: scored}, nil
	case *pipeline.Out:
		return &writeStage{op: op, in: in, open: func(ctx context.Context) (Writer, error) { return op.Catalog.Out(ctx, op, s) }}, nil
	case *pipeline.Merge:
		return &writeStage{op: op, in: in, open: func(ctx context.Context) (Writer, error) { return op.Catalog.Merge(ctx, op, s) }}, nil
	case *pipeline.Server:
		return &serverStage{op: op, open: func(ctx context.Context) (Iterator, error) { return op.Catalog.Server(ctx, op, p.NS, s) }}, nil
	case *pipeline.ChangeStream, *pipeline.Expiring, *pipeline.VectorSearch, *pipeline.Search: // what they bring is opened beforehand
		return in, nil
	case *pipeline.SplitLargeEvent:
		return &splitStage{op: op, stage: s, in: in}, nil
	case *pipeline.RankFusion:
		return newRankFusion(op, s, p.NS, in), nil
	case *pipeline.ScoreFusion:
		return newScoreFusion(op, s, p.NS, in), nil
	case *pipeline.Emit:
		return &emitStage{op: op, stage: s, in: in}, nil
	case *pipeline.Score:
		return &scoreStage{op: op, stage: s, in: in, held: holding{op: op}}, nil
	case *pipeline.GeoNear: // where there is no collection whose plan could take it over
		return nil, mongoerr.New(mongoerr.IndexNotFound, "$geoNear requires a 2d or 2dsphere index, but none were found")
	}
	panic(fmt.Sprintf("exec: no iterator for stage %d, %s", i, s.Name()))
}

// whole is around a whole pipeline: it tells the Op which call is under way and holds results to the size of a document, and
// to its levels.
type whole struct {
	op *Op
	in Iterator
	// deepens says that results may nest deeper than what is stored.
	deepens bool
}

func (w *whole) Next(ctx context.Context) (bson.Doc, error) {
	w.op.ctx = ctx
	d, err := w.in.Next(ctx)
	if len(d) > MaxDocumentSize {
		return nil, tooLarge(len(d))
	}
	if err == nil && w.deepens {
		if err := CheckDepth(d); err != nil {
			return nil, err
		}
	}
	return d, err
}

// deepens says whether a stage may put what documents hold into something else.
func deepens(s pipeline.Stage) bool {
	switch s.(type) {
	case *pipeline.Match, *pipeline.Sort, *pipeline.Limit, *pipeline.Skip, *pipeline.Unwind, *pipeline.Count, *pipeline.Redact:
		return false
	}
	return true
}

// CheckDepth refuses a result that nests deeper than clients read.
func CheckDepth(d bson.Doc) error {
	if d.NestsDeeper(bson.MaxDepth) {
		return mongoerr.New(mongoerr.Overflow,
			"cannot convert document to BSON because it exceeds the limit of %d levels of nesting", bson.MaxDepth)
	}
	return nil
}

func (w *whole) Close() error { return w.in.Close() }

func tooLarge(n int) error {
	return mongoerr.New(mongoerr.BSONObjectTooLarge,
		"BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB)", n, n, MaxDocumentSize)
}

// empty has no documents.
type empty struct{}

func (empty) Next(context.Context) (bson.Doc, error) { return nil, nil }
func (empty) Close() error                           { return nil }

// serverStage opens its documents at the first Next.
type serverStage struct {
	op   *Op
	open func(context.Context) (Iterator, error)
	in   Iterator
}

func (s *serverStage) Next(ctx context.Context) (bson.Doc, error) {
	if s.in == nil {
		var err error
		if s.in, err = s.open(ctx); err != nil {
			s.in = nil
			return nil, err
		}
	}
	return s.in.Next(ctx)
}

func (s *serverStage) Close() error {
	if s.in == nil {
		return nil
	}
	return s.in.Close()
}
