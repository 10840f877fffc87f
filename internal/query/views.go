package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
)

// views holds the one view that all leaves of an operation read. It is opened when the first leaf reads and released
// between batches; the first is of the operation's own time, each later one of its own moment, unless all are of one Past.
type views struct {
	store *storage.Store
	txn   *storage.Txn  // whose view it is; nil outside of transactions
	past  *storage.Past // that it is of; nil where it reads what is there
	now   int64
	view  *storage.View
	later bool
}

func (e *Engine) views(call *Call) *views {
	return &views{store: e.Store, txn: call.Txn, past: call.Past, now: call.Now}
}

func (v *views) open(ctx context.Context) (*storage.View, error) {
	if v.view != nil {
		return v.view, nil
	}
	if v.txn != nil {
		v.view = v.txn.Statement(ctx)
		return v.view, nil
	}
	var err error
	switch {
	case v.past != nil:
		v.view, err = v.store.ViewPast(ctx, v.past, v.now)
	case v.later:
		v.view, err = v.store.View(ctx)
	default:
		v.view, err = v.store.ViewAt(ctx, v.now)
	}
	return v.view, err
}

func (v *views) release() {
	switch {
	case v.view == nil:
	case v.txn != nil: // ends by itself
		v.view = nil
	default:
		_ = v.view.Close() // what a snapshot says when it is given back changes nothing for the reader
		v.view, v.later = nil, true
	}
}

// park lets go of the store between two batches: what reads next reads at the time that it is then, also where nothing was read yet.
func (v *views) park() {
	v.release()
	v.later = true
}

// renew has what reads next read what is there then, at the time that the view was of.
func (v *views) renew() {
	v.release()
	v.later = false
}

// collSource reads one collection in whatever view the operation reads now, by number, so that a rename does not matter.
type collSource struct {
	views  *views
	id     uint32
	ns     namespace.NS
	view   *storage.View
	reader *storage.Reader
}

// Reader implements exec.Source.
func (s *collSource) Reader(ctx context.Context) (*storage.Reader, error) {
	view, err := s.views.open(ctx)
	if err != nil {
		return nil, err
	}
	if s.reader != nil && s.view == view {
		return s.reader, nil
	}
	r, ok := view.CollectionByID(s.id)
	if !ok {
		return nil, mongoerr.New(mongoerr.QueryPlanKilled, "collection dropped: %s", s.ns)
	}
	s.view, s.reader = view, r
	return r, nil
}

// fixed reads one collection in one view: what a transaction sees.
type fixed struct{ reader *storage.Reader }

// Reader implements exec.Source.
func (f fixed) Reader(context.Context) (*storage.Reader, error) { return f.reader, nil }

// Running is an operation that gives documents: the source of a cursor.
type Running struct {
	exec.Iterator
	op      *exec.Op
	records *exec.Records // what the plan of a find gives
	views   *views
	lang    *language
	// Seen counts what was looked at so far.
	Seen *exec.Examined
	// PlanSummary names the plan.
	PlanSummary string
	// Sorted says that a stage had to sort.
	Sorted bool
	// Empty says that a find can give nothing, as where there is no collection.
	Empty bool
	tail  *tail // nil where the end is the end
	// changes is the leaf of a change stream; nil otherwise.
	changes *exec.Changes
	memory  memory.Account
}

// Next implements cursor.Source.
func (r *Running) Next(ctx context.Context) (bson.Doc, error) {
	r.lang.ctx = ctx
	r.memory.Move(memory.Operators)
	return r.Iterator.Next(ctx)
}

// lend has r give documents without a copy where nothing above its records keeps one.
func (r *Running) lend() {
	in := r.Iterator
	if p, ok := in.(*projected); ok {
		in = p.in
	}
	if records, ok := in.(*exec.Records); ok {
		records.Lend()
	}
}

// Park lets go of the store until the next document is wanted.
func (r *Running) Park() {
	r.op.Park()
	r.views.park()
	r.memory.Move(memory.Cursors)
	if r.memory.Used() >= minParked && r.memory.Short() {
		_ = r.Shrink() // what it could not write it keeps
	}
}

// minParked is from which size on what is parked goes to files as soon as memory is short.
const minParked = 1 << 20

// Held implements cursor.Source.
func (r *Running) Held() int64 { return r.memory.Used() }

// Shrink implements cursor.Source.
func (r *Running) Shrink() error { return r.op.Shrink() }

// Close ends the operation.
func (r *Running) Close() error {
	err := r.Iterator.Close()
	r.views.release()
	r.memory.Close()
	return err
}

// All hands every document to f, and closes r.
func (r *Running) All(ctx context.Context, f func(doc bson.Doc) error) (err error) {
	defer func() {
		if e := r.Close(); err == nil {
			err = e
		}
	}()
	return exec.Each(ctx, r, f)
}
