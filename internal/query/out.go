package query

import (
	"bytes"
	"context"
	"encoding/hex"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// Out implements exec.Catalog: the documents go into a collection of their own, with the options and indexes of the one
// that it takes the place of at the end.
func (c *stageCatalog) Out(ctx context.Context, _ *exec.Op, stage *pipeline.Out) (exec.Writer, error) {
	e := c.engine
	target := lookup(e.Store.Catalog(), stage.To)
	switch {
	case target != nil && stage.TimeSeries != nil && !target.IsTimeSeries():
		return nil, mongoerr.New(7268700, "Cannot create a time series collection from a non time-series collection or view: %s", stage.To)
	case target != nil && stage.TimeSeries != nil && !sameSeries(target, stage.TimeSeries):
		return nil, mongoerr.New(7406103, "Time field and meta field, granularity and bucket parameters must be those of the existing time series collection %s", stage.To)
	case target != nil && target.IsView():
		return nil, mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", stage.To)
	case target != nil && target.Options.Capped:
		return nil, mongoerr.New(17152, "namespace '%s' is capped so it can't be used for $out", stage.To)
	}
	id := e.ids.objectID(c.call.Now)
	w := &outWriter{engine: e, call: c.call, to: stage.To, temp: namespace.NS{DB: stage.To.DB, Coll: "tmp.agg_out." + hex.EncodeToString(id[:])}}
	options := bson.EmptyDoc
	switch {
	case target != nil:
		options = target.Options.Doc
	case stage.TimeSeries != nil:
		options = bson.Build().Document("timeseries", catalog.ReadSeriesSpec(stage.TimeSeries).Doc()).Doc()
	}
	within := c.call.patiently(ctx)
	if _, err := e.Store.CreateCollection(within, w.temp, catalog.WithTemp(options, true)); err != nil {
		return nil, err
	}
	if target != nil {
		if err := w.copyIndexes(within, target); err != nil {
			w.Abort(ctx)
			return nil, err
		}
	}
	return w, nil
}

// sameSeries says whether the time series coll is what spec asks for.
func sameSeries(coll *catalog.Collection, spec bson.Doc) bool {
	return bytes.Equal(catalog.ReadSeriesSpec(spec).Doc(), coll.Options.Doc.Lookup("timeseries").Doc())
}

// outWriter fills the collection temp and renames it.
type outWriter struct {
	engine   *Engine
	call     *Call
	to, temp namespace.NS
	batch    batch
}

func (w *outWriter) copyIndexes(ctx context.Context, target *catalog.Collection) error {
	_, err := w.engine.DDL.CreateIndexes(ctx, w.temp, func(*catalog.Collection) ([]*index.Definition, error) {
		var defs []*index.Definition
		for _, d := range target.Indexes {
			if !d.IsID() {
				defs = append(defs, d)
			}
		}
		return defs, nil
	})
	return err
}

func (w *outWriter) Write(ctx context.Context, doc bson.Doc) error {
	if w.batch.add(doc) {
		return w.flush(ctx)
	}
	return nil
}

func (w *outWriter) flush(ctx context.Context) error {
	_, refused, err := w.engine.Insert(ctx, w.temp, w.batch.take(), true, w.call)
	if err == nil && len(refused) > 0 {
		err = refused[0].Err
	}
	return err
}

func (w *outWriter) Finish(ctx context.Context) error {
	err := w.flush(ctx)
	if err == nil {
		err = w.engine.Store.Rename(w.call.patiently(ctx), w.temp, w.to, true)
	}
	if err != nil {
		w.Abort(ctx)
	}
	return err
}

// Abort drops what was written. A failure leaves a temporary collection.
func (w *outWriter) Abort(ctx context.Context) {
	w.engine.Store.Afterwards(w.call.patiently(ctx), func(ctx context.Context) { _, _ = w.engine.Store.DropCollection(ctx, w.temp) })
}

// batch collects documents up to what goes well into one commit.
type batch struct {
	docs []bson.Doc
	size int
}

// add keeps a copy of doc and says whether the batch is full.
func (b *batch) add(doc bson.Doc) (full bool) {
	b.docs = append(b.docs, doc.Clone())
	b.size += len(doc)
	return len(b.docs) >= maxBatchDocs || b.size >= maxBatchBytes/2
}

func (b *batch) take() []bson.Doc {
	docs := b.docs
	b.docs, b.size = nil, 0
	return docs
}
