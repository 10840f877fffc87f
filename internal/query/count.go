package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// Count is what a count asks for.
type Count struct {
	NS          namespace.NS
	Filter      bson.Doc
	Hint        bson.Value
	Skip, Limit int64
	// HasLimit tells a limit of 0 from none, which is the same but on views.
	HasLimit bool
}

// Count is the number of matching documents. Without a filter the store knows it.
func (e *Engine) Count(ctx context.Context, c Count, call *Call) (int64, error) {
	if n, ok, err := e.fastCount(ctx, c, call); ok || err != nil {
		call.stage("RECORD_STORE_FAST_COUNT", clampCount(n, c), min(c.Skip, n))
		return clampCount(n, c), err
	}
	f := Find{NS: c.NS, Filter: c.Filter, Hint: c.Hint}
	if coll := e.lookup(c.NS, call); coll != nil && coll.IsView() {
		return e.countView(ctx, f, c, call)
	}
	call.NoNow = true
	p, err := e.prepareFor(ctx, &prepared{Find: f, call: call, counting: true, enough: c.enough()})
	if err != nil {
		return 0, err
	}
	r, err := e.open(ctx, p)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	n, err := r.records.Count(ctx, p.enough)
	call.stage("COUNT", clampCount(n, c), min(c.Skip, n))
	return clampCount(n, c), err
}

// all says whether every document matches: a comment asks for nothing.
func (c Count) all() bool {
	for it := c.Filter.Iter(); it.Next(); {
		if it.Key() != "$comment" {
			return false
		}
	}
	return true
}

// enough is how many documents need be counted, 0 for all.
func (c Count) enough() int64 {
	if c.Limit <= 0 {
		return 0
	}
	return c.Skip + c.Limit
}

func (e *Engine) countView(ctx context.Context, f Find, c Count, call *Call) (n int64, err error) {
	r, err := e.find(ctx, f, call)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	if c.HasLimit && c.Limit == 0 { // which counts by a pipeline, of which this is a $limit
		return 0, mongoerr.New(15958, "the limit must be positive")
	}
	for stop := c.enough(); stop == 0 || n < stop; n++ {
		doc, err := r.Next(ctx)
		if err != nil {
			return 0, err
		}
		if doc == nil {
			break
		}
	}
	return clampCount(n, c), nil
}

func clampCount(n int64, c Count) int64 {
	n = max(0, n-c.Skip)
	if c.Limit > 0 {
		n = min(n, c.Limit)
	}
	return n
}

func (e *Engine) fastCount(ctx context.Context, c Count, call *Call) (n int64, ok bool, err error) {
	if !c.all() || !c.Hint.IsNullish() || call.Expected != nil {
		return 0, false, nil
	}
	v := e.views(call)
	defer v.release()
	view, err := v.open(ctx)
	if err != nil {
		return 0, false, err
	}
	r, ok := view.Collection(c.NS)
	if !ok {
		return 0, false, nil
	}
	call.PlanSummary = "RECORD_STORE_FAST_COUNT"
	n, err = r.Count()
	return n, true, err
}
