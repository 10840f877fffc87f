package exec

import (
	"context"
	"iter"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
)

const (
	// facetBatch is how many bytes of documents are handed to each pipeline of a $facet at a time.
	facetBatch = 4 << 20
	// maxFacetBytes is how large the results of a $facet may be together.
	maxFacetBytes = 100 << 20
)

// facetStage is $facet. The source is read once, a batch at a time; each pipeline runs as a coroutine that is stopped when
// it has seen the batch and goes on with the next one.
type facetStage struct {
	op    *Op
	stage *pipeline.Facet
	in    Iterator
	done  bool
	// held is what the batch and the results take, batched the part of the batch: its largest so far.
	held    holding
	batched int64
	shared  shared // by the stages of the pipelines
}

// facetRow is a document of the source and its metadata, nil without.
type facetRow struct{ doc, meta bson.Doc }

// facetRun is one pipeline at work.
type facetRun struct {
	op    *Op // that it runs in
	batch *[]facetRow
	next  int
	ended *bool       // the source has no more
	wait  func() bool // stops until there is another batch; false means that nobody wants the result
	array arrayOf
	total *int
	err   error
	turns *turns
}

func (s *facetStage) Next(ctx context.Context) (bson.Doc, error) {
	if s.done {
		return nil, nil
	}
	s.done = true
	// The batch, and what the result takes on top of the arrays that it is made of, are held by all pipelines together.
	var batch []facetRow
	ended, total, running := false, 0, len(s.stage.Fields)
	runs := make([]*facetRun, len(s.stage.Fields))
	resume := make([]func() (struct{}, bool), len(runs))
	for i, f := range s.stage.Fields {
		r := &facetRun{batch: &batch, ended: &ended, total: &total, turns: s.op.turns()}
		runs[i] = r
		next, stop := iter.Pull(s.coroutine(ctx, f.Pipeline, r))
		defer stop()
		resume[i] = next
	}
	for !ended && running > 0 {
		var err error
		if batch, ended, err = s.readBatch(ctx, batch[:0]); err != nil {
			return nil, err
		}
		for i, r := range runs {
			r.next = 0
			if resume[i] == nil {
				continue
			}
			if _, more := resume[i](); !more {
				resume[i] = nil
				running--
			}
			if r.err != nil {
				return nil, r.err
			}
		}
	}
	if err := s.held.wait(ctx, int64(total)); err != nil {
		return nil, err
	}
	s.op.Meta.Clear() // what the pipelines made is another document than the one read last
	b := bson.BuildOn(make([]byte, 0, total+64))
	for i, f := range s.stage.Fields {
		b.Value(f.Name, runs[i].array.value())
	}
	return b.Doc(), nil
}

// readBatch copies documents, which the source would take back.
func (s *facetStage) readBatch(ctx context.Context, batch []facetRow) ([]facetRow, bool, error) {
	for n := 0; n < facetBatch; {
		d, err := s.in.Next(ctx)
		if err != nil || d == nil {
			return batch, true, err
		}
		if err := interrupted(ctx); err != nil {
			return batch, true, err
		}
		row := facetRow{d.Clone(), s.op.Meta.doc()}
		batch = append(batch, row)
		n += len(row.doc) + len(row.meta)
		if n > int(s.batched) {
			if err := s.held.wait(ctx, int64(n)-s.batched); err != nil {
				return batch, true, err
			}
			s.batched = int64(n)
		}
	}
	return batch, false, nil
}

// coroutine runs a pipeline to its end; each value it yields asks for another batch.
func (s *facetStage) coroutine(ctx context.Context, p *pipeline.Pipeline, r *facetRun) iter.Seq[struct{}] {
	return func(yield func(struct{}) bool) {
		r.wait = func() bool { return yield(struct{}{}) }
		r.err = s.run(ctx, p, r)
	}
}

func (s *facetStage) run(ctx context.Context, p *pipeline.Pipeline, r *facetRun) error {
	r.array.reset()
	r.op = s.op.Sub()
	r.op.shared = &s.shared
	defer s.op.Drop(r.op)
	it, err := Build(r.op, p, r)
	if err != nil {
		return err
	}
	defer it.Close()
	return Each(ctx, it, func(d bson.Doc) error {
		before := cap(r.array.buf)
		r.array.add(d.Value())
		if grown := cap(r.array.buf) - before; grown > 0 {
			if err := s.held.wait(ctx, int64(grown)); err != nil {
				return err
			}
		}
		if *r.total += len(d); *r.total > maxFacetBytes {
			return mongoerr.New(4031700, "document constructed by $facet is %d bytes, which exceeds the limit of %d bytes", *r.total, maxFacetBytes)
		}
		return nil
	})
}

// Next implements Iterator: a facetRun is the source of its own pipeline.
func (r *facetRun) Next(context.Context) (bson.Doc, error) {
	for r.next == len(*r.batch) {
		if *r.ended || !r.wait() {
			return nil, nil
		}
	}
	r.turns.step()
	row := (*r.batch)[r.next]
	r.next++
	r.op.restore(row.meta)
	return row.doc, nil
}

// Close implements Iterator.
func (r *facetRun) Close() error {
	r.turns.rest()
	return nil
}

func (s *facetStage) Close() error {
	s.held.empty()
	return s.in.Close()
}
