package exec

import (
	"context"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
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
	reading reading
	root    working
	// rematch: no node holds documents against the whole filter, which alone tells the details that are wanted.
	rematch bool
	kept    kept // what a race has found
	// stale says that what was kept is of an earlier view; refresh is how such a record is looked at again, nil for those of
	// a sort, which are given as they were when it sorted.
	stale   bool
	refresh func(*Records) (ok bool, err error)
	member  Member
	steps   uint // since it was parked
	buf     []byte
	rec     storage.Record
	key     bson.Doc // the record's index key
	// lends: documents are given as they were read, without a copy.
	lends bool
	// fromKey says that the record given last has but what its index key tells.
	fromKey bool
}

// Open opens one plan.
func (o Opening) Open(plan *planner.Plan) *Records {
	r := &Records{reading: reading{src: o.Source, env: o.Env, seen: o.Seen, whole: plan.Filter, details: o.Details, op: o.Op, repeats: o.Repeats}}
	if r.reading.turns = &r.reading.own; o.Op != nil {
		r.reading.turns = o.Op.turns()
	}
	r.root = opener{&r.reading}.open(plan.Root, want{indexKey: o.IndexKeys, most: o.Enough})
	switch {
	case plan.Sorts():
	case has[*planner.Projection](plan.Root):
		r.refresh = (*Records).stillThere
	default:
		r.refresh = (*Records).readAgain
	}
	_, byID := plan.Root.(*planner.IDHack)
	r.rematch = o.Details != nil && plan.Filter != nil && planner.FilterOf(plan.Root) != plan.Filter && !byID
	return r
}

// Stats are the counters of the plan's nodes, of the root first.
func (r *Records) Stats() *Stats { return r.root.Stats }

// Lend has documents be valid until the next call, as ever, or until r is parked, for those who have done with each by then.
func (r *Records) Lend() { r.lends = true }

// FromKey says whether the document given last was made of its index key, for a covered projection. It has no other fields than are
// read by that.
func (r *Records) FromKey() bool { return r.fromKey }

// Tail makes the end of a collection scan no end: see Tailing.
func (r *Records) Tail() {
	scan, ok := r.root.node.(*collScan)
	if !ok {
		panic(fmt.Sprintf("exec: %T does not tail", r.root.node))
	}
	scan.tails = true
}

// Tailing says whether records may come behind the end that NextRecord has met. Next looks again from there, once Park
// has let go of what the scan has seen already.
func (r *Records) Tailing() bool {
	scan, ok := r.root.node.(*collScan)
	return ok && scan.tails && !scan.done
}

// NextRecord gives the next record that matches; ok is false at the end. It is valid until the next call.
func (r *Records) NextRecord(ctx context.Context) (rec storage.Record, ok bool, err error) {
	if ok, err = r.advance(ctx); !ok {
		return storage.Record{}, false, err
	}
	return r.rec, true, nil
}

// stepsBetweenLooks is how many steps are taken between two looks at whether the operation has to end: few enough that a slow
// one ends soon, and enough that fast ones do not pay for it.
const stepsBetweenLooks = 16

// advance makes r.rec the next record that matches; ok is false at the end.
func (r *Records) advance(ctx context.Context) (ok bool, err error) {
	r.reading.under(ctx)
	for r.kept.len() > 0 {
		if ok, err = r.takeKept(); ok || err != nil {
			return ok, err
		}
	}
	if r.root.EOF && !r.Tailing() {
		return false, nil
	}
	for ; ; r.steps++ {
		if r.steps%stepsBetweenLooks == 0 {
			if err := interrupted(ctx); err != nil {
				return false, err
			}
		}
		r.member.Scored, r.member.FromKey = false, false
		r.reading.turns.step()
		s, err := r.root.work(&r.reading, &r.member)
		switch {
		case err != nil || s == ended:
			return false, err
		case s == advanced:
			r.steps++
			r.fromKey = r.member.FromKey
			err := r.keep()
			if r.rematch && err == nil {
				_, err = r.reading.whole.MatchDetails(r.reading.env, r.rec.Doc, r.reading.details)
			}
			return err == nil, err
		}
	}
}

// takeKept gives what a race has found, unless it is stale and gone. The details are those of the last found and have to be
// told again.
func (r *Records) takeKept() (ok bool, err error) {
	r.rec, r.key = r.kept.take()
	r.fromKey = false
	if r.stale && r.refresh != nil {
		if ok, err := r.refresh(r); !ok || err != nil {
			return false, err
		}
	}
	if r.reading.details != nil && r.reading.whole != nil {
		_, err = r.reading.whole.MatchDetails(r.reading.env, r.rec.Doc, r.reading.details)
	}
	return err == nil, err
}

// readAgain makes the record what it is now; not ok when it is gone or matches no longer.
func (r *Records) readAgain() (ok bool, err error) {
	reader, err := r.reading.reader()
	if err != nil {
		return false, err
	}
	now, ok, err := reader.Again(r.rec)
	if !ok || err != nil {
		return false, err
	}
	r.member.Record, r.member.IndexKey = now, r.key
	r.keep()
	return r.reading.matches(r.reading.whole, r.rec.Doc)
}

// stillThere is readAgain for a record of which only what a key tells is known: that stays as it was.
func (r *Records) stillThere() (ok bool, err error) {
	reader, err := r.reading.reader()
	if err != nil {
		return false, err
	}
	now, ok, err := reader.Get(r.rec.ID)
	if !ok || err != nil {
		return err == nil && reader.Order() != 0, err // one that has moved is not found, and not gone
	}
	return r.reading.matches(r.reading.whole, now.Doc)
}

// keep copies the member: what the engine gave is gone when the leaf parks; what is above may need the document longer, unless
// documents are lent.
func (r *Records) keep() error {
	m := &r.member
	if m.Doc == nil { // keys were all that was asked for
		m.Doc = bson.EmptyDoc
	}
	n := len(m.Doc)
	if r.lends {
		r.rec, r.key = m.Record, m.IndexKey
	} else {
		r.buf = append(append(append(r.buf[:0], m.Doc...), m.ID...), m.IndexKey...)
		id := n + len(m.ID)
		r.rec.ID, r.rec.Modified, r.rec.Doc = r.buf[n:id:id], m.Modified, r.buf[:n:n]
		if r.key = nil; m.IndexKey != nil {
			r.key = bson.Doc(r.buf[id:])
		}
	}
	if n <= largeDocument || r.reading.op == nil {
		return nil
	}
	return r.reading.op.carry(r.reading.ctx, n)
}

// Score is that of the record given last, if it was found by a search of a text index.
func (r *Records) Score() (score float64, ok bool) { return r.member.Score, r.member.Scored }

// IndexKey is the key by which the record given last was found; nil when it was found otherwise or nobody asked.
func (r *Records) IndexKey() bson.Doc { return r.key }

// Record is the record that was given last.
func (r *Records) Record() storage.Record { return r.rec }

// Next implements Iterator.
func (r *Records) Next(ctx context.Context) (bson.Doc, error) {
	if ok, err := r.advance(ctx); !ok {
		return nil, err
	}
	return r.rec.Doc, nil
}

// Park implements Parker.
func (r *Records) Park() {
	r.stale, r.steps = r.stale || r.kept.len() > 0, 0
	r.reading.turns.rest()
	r.root.park()
}

// Close implements Iterator.
func (r *Records) Close() error {
	r.reading.turns.rest()
	r.reading.forgetAll()
	r.kept = kept{}
	return r.root.close()
}
