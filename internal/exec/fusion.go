package exec

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// fusion is what $rankFusion and $scoreFusion share: it opens the collection once for each input, keeps every document once
// with what each input says of it, and gives them out by score. The source that the stage stands on is not read.
type fusion struct {
	op     *Op
	name   string
	ns     namespace.NS
	in     Iterator
	inputs int
	// read gathers an input, and combine makes a score of what all of them say; details are the scoreDetails of a document, nil
	// where they are not asked for.
	read    func(ctx context.Context, input int) error
	combine func(*fusedDoc) (float64, error)
	details func(*fusedDoc) bson.Value

	docs []*fusedDoc
	byID map[string]*fusedDoc
	held holding
	next int
}

// fusedDoc is a document with a part for each input.
type fusedDoc struct {
	doc   bson.Doc
	parts []fusedPart
	score float64
}

// fusedPart is what an input says of a document; the zero value when it did not come there.
type fusedPart struct {
	rank       int64
	raw, score float64
	details    bson.Value
}

// newFusion reads from a view, or from what the pipeline is on.
func newFusion(op *Op, name string, view, on namespace.NS, in Iterator, inputs int) fusion {
	if view.Coll == "" {
		view = on
	}
	return fusion{op: op, name: name, ns: view, in: in, inputs: inputs, held: holding{op: op}}
}

func (f *fusion) Next(ctx context.Context) (bson.Doc, error) {
	if f.byID == nil {
		if err := f.fuse(ctx); err != nil {
			return nil, err
		}
	}
	if f.next == len(f.docs) {
		return nil, nil
	}
	d := f.docs[f.next]
	f.next++
	f.op.Meta.Clear()
	f.op.Meta.Set("score", bson.Double(d.score))
	if f.details != nil {
		f.op.Meta.Set("scoreDetails", f.details(d))
	}
	return d.doc, nil
}

// fuse reads all inputs, and puts the documents in the order of their scores.
func (f *fusion) fuse(ctx context.Context) error {
	f.byID = map[string]*fusedDoc{}
	for i := range f.inputs {
		if err := f.read(ctx, i); err != nil {
			return err
		}
	}
	for _, d := range f.docs {
		var err error
		if d.score, err = f.combine(d); err != nil {
			return err
		}
	}
	slices.SortStableFunc(f.docs, func(a, b *fusedDoc) int {
		if c := bson.Compare(bson.Double(b.score), bson.Double(a.score)); c != 0 {
			return c
		}
		return bson.Compare(a.doc.Lookup("_id"), b.doc.Lookup("_id"))
	})
	return nil
}

// gather runs input i. part is called with each document while its metadata is in sub.
func (f *fusion) gather(ctx context.Context, i int, p *pipeline.Pipeline, part func(sub *Op, d bson.Doc) (fusedPart, error)) error {
	sub := f.op.Sub()
	defer f.op.Drop(sub)
	it, err := f.op.Catalog.Open(ctx, sub, f.ns, p)
	if err != nil {
		return err
	}
	defer it.Close()
	return Each(ctx, it, func(d bson.Doc) error {
		what, err := part(sub, d)
		if err != nil {
			return err
		}
		kept, err := f.keep(ctx, d)
		if err != nil {
			return err
		}
		kept.parts[i] = what
		return nil
	})
}

// keep is the place of d, which has come already or not.
func (f *fusion) keep(ctx context.Context, d bson.Doc) (*fusedDoc, error) {
	key := bson.AppendCanonical(nil, d.Lookup("_id"), nil)
	if kept := f.byID[string(key)]; kept != nil {
		return kept, nil
	}
	kept := &fusedDoc{doc: d.Clone(), parts: make([]fusedPart, f.inputs)}
	f.byID[string(key)] = kept
	f.docs = append(f.docs, kept)
	err := f.held.hold(ctx, int64(len(d)+len(key)+64*f.inputs)+128, func() error {
		return mongoerr.New(mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed, "Exceeded memory limit for %s, which cannot spill", f.name)
	})
	return kept, err
}

func (f *fusion) Close() error {
	f.docs, f.byID = nil, nil
	f.held.empty()
	return f.in.Close()
}
