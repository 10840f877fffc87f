package exec

import (
	"context"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
)

// Source gives leaves the collection that they read, in the view that the operation reads now. After a park it is another
// view; an error says why the collection, or an index that the plan walks, cannot be read any more.
type Source interface {
	Reader(ctx context.Context) (*storage.Reader, error)
}

// Examined counts what leaves have looked at.
type Examined struct{ Keys, Docs int64 }

// Records finds a plan's documents with their record ids.
type Records struct {
	leaf    leaf
	filter  *match.Filter
	env     *expr.Env
	details *match.Details
	seen    *Examined
	buf     []byte
	rec     storage.Record
}

// leaf walks one access. The record is valid until the next call of next, park or close.
type leaf interface {
	next(ctx context.Context) (rec storage.Record, ok bool, err error)
	park()
	close() error
}

// OpenRecords opens plan over src. env is what $expr and $where are evaluated in; details, when not nil, is filled for each
// document found.
func OpenRecords(plan *planner.Plan, src Source, env *expr.Env, seen *Examined, details *match.Details) *Records {
	r := &Records{filter: plan.Filter, env: env, seen: seen, details: details}
	switch a := plan.Access.(type) {
	case *planner.CollScan:
		r.leaf = &collScan{src: src, seen: seen, backward: a.Backward}
	case *planner.IDHack:
		r.leaf = &idHack{src: src, seen: seen, id: a.ID}
	case *planner.IndexScan:
		r.leaf = newIndexScan(a, src, seen)
	case *planner.GeoNear:
		r.leaf = &nearScan{scan: collScan{src: src, seen: seen}, near: a.Near, matches: r.matches}
	case *planner.Nothing:
		r.leaf = nothing{}
	default:
		panic(fmt.Sprintf("exec: no leaf for %T", a))
	}
	return r
}

// Tail makes the end of a collection scan no end: see Tailing.
func (r *Records) Tail() {
	scan, ok := r.leaf.(*collScan)
	if !ok {
		panic(fmt.Sprintf("exec: %T does not tail", r.leaf))
	}
	scan.tails = true
}

// Tailing says whether records may come behind the end that NextRecord has met. Next looks again from there, once Park
// has let go of what the scan has seen already.
func (r *Records) Tailing() bool {
	scan, ok := r.leaf.(*collScan)
	return ok && scan.tails && !scan.done
}

// NextRecord gives the next record that matches; ok is false at the end. It is valid until the next call.
func (r *Records) NextRecord(ctx context.Context) (rec storage.Record, ok bool, err error) {
	for {
		if err := interrupted(ctx); err != nil {
			return storage.Record{}, false, err
		}
		rec, ok, err := r.leaf.next(ctx)
		if err != nil || !ok {
			return storage.Record{}, false, err
		}
		matched, err := r.matches(rec.Doc)
		if err != nil {
			return storage.Record{}, false, err
		}
		if matched {
			// What the engine gave is gone when the leaf parks; what is above may need the document longer.
			r.buf = append(append(r.buf[:0], rec.Doc...), rec.ID...)
			n := len(rec.Doc)
			r.rec = storage.Record{ID: r.buf[n:], Modified: rec.Modified, Doc: r.buf[:n:n]}
			return r.rec, true, nil
		}
	}
}

func (r *Records) matches(doc bson.Doc) (bool, error) {
	switch {
	case r.filter == nil:
		return true, nil
	case r.details != nil:
		return r.filter.MatchDetails(r.env, doc, r.details)
	}
	return r.filter.Match(r.env, doc)
}

// Record is the record that was given last.
func (r *Records) Record() storage.Record { return r.rec }

// Next implements Iterator.
func (r *Records) Next(ctx context.Context) (bson.Doc, error) {
	rec, ok, err := r.NextRecord(ctx)
	if !ok {
		return nil, err
	}
	return rec.Doc, nil
}

// Park implements Parker.
func (r *Records) Park() { r.leaf.park() }

// Close implements Iterator.
func (r *Records) Close() error { return r.leaf.close() }

// nothing is the leaf of a query that contradicts itself.
type nothing struct{}

func (nothing) next(context.Context) (storage.Record, bool, error) {
	return storage.Record{}, false, nil
}
func (nothing) park()        {}
func (nothing) close() error { return nil }
