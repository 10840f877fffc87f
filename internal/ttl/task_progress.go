package ttl

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/storage"
)

// What currentOp shows of the maintenance is an operation for each task that takes more than one slice, from the end of the first
// to that of the last. It belongs to the keeper whose slices these are, which alone ends it: when there is nothing more to do,
// when the task fails, has to wait, is held up or forgotten, and at the latest when the keeper ends. Between slices the keeper
// only rests, so there is none while it sleeps. Whoever kills one ends the slice under way, and the task is tried again after
// taskRetry, from where it was.

// taskWork is what a task has to do: one kind of work, and in which order records are put.
type taskWork struct {
	message string
	order   uint32
}

// What tasks are called.
const (
	reclustering = "TTL: putting records in order"
	vacuuming    = "TTL: removing dead index entries"
)

// step is what one slice has done of a task.
type step struct {
	taskWork
	done int64
	more bool
}

// taskProgress is a task that is shown.
type taskProgress struct {
	taskWork
	op          *operation.Operation
	ctx         context.Context // ends when the operation is killed
	done, total atomic.Int64
}

// progress is for operation.Operation.
func (l *taskProgress) progress() (message string, done, total int64) {
	done = l.done.Load()
	return l.message, done, max(l.total.Load(), done) // others write meanwhile
}

// keeper does slices of tasks, one at a time, and shows them.
type keeper struct {
	*Monitor
	ctx   context.Context
	pacer pacer
	shown map[uint32]*taskProgress // by collection
}

func (m *Monitor) newKeeper(ctx context.Context) *keeper {
	return &keeper{Monitor: m, ctx: ctx, pacer: m.newPacer(), shown: map[uint32]*taskProgress{}}
}

// contextOf is what a slice of a collection's task runs in.
func (k *keeper) contextOf(collection uint32) context.Context {
	if l := k.shown[collection]; l != nil {
		return l.ctx
	}
	return k.ctx
}

// isKilled says whether somebody has killed what is shown of the collection's task.
func (k *keeper) isKilled(collection uint32) bool {
	l := k.shown[collection]
	return l != nil && l.op.Killed()
}

// show shows the task that the step was one of when there is more of it.
func (k *keeper) show(collection uint32, did step) error {
	l := k.shown[collection]
	switch {
	case did.more && l != nil && l.taskWork == did.taskWork:
		l.done.Add(did.done)
	case did.more:
		k.hide(collection)
		return k.begin(collection, did)
	case l != nil && l.message == did.message: // it is done, or there is another order
		k.hide(collection)
	}
	return nil
}

// begin shows a task whose first slice was done.
func (k *keeper) begin(collection uint32, did step) error {
	view, err := k.store.View(k.ctx)
	if err != nil {
		return err
	}
	defer view.Close()
	r, ok := view.CollectionByID(collection)
	if !ok {
		return nil
	}
	done, left, err := k.extent(r, did)
	if err != nil {
		return err
	}
	l := &taskProgress{taskWork: did.taskWork}
	l.done.Store(done)
	l.total.Store(done + left)
	l.op = &operation.Operation{Client: k.client, Kind: "none", NS: r.Catalog().NS.String(), Progress: l.progress}
	l.ctx = k.ops.Start(k.ctx, l.op)
	k.own.Add(1)
	k.shown[collection] = l
	return nil
}

// extent is how much of a task is done, and about how much is left.
func (k *keeper) extent(r *storage.Reader, did step) (done, left int64, err error) {
	if did.message == vacuuming {
		left, err = deadEntries(r, did.done)
		return did.done, left, err
	}
	collection := r.Catalog().ID
	_, done = k.sweeper.Reclustered(collection)
	if left, err = k.sweeper.Unclustered(k.ctx, collection, maxUnclustered); err != nil || left < maxUnclustered {
		return done, left, err
	}
	documents, err := r.Stored()
	return done, max(left, documents-done), err
}

// deadEntries is about how many dead entries the collection's indexes have, after so many were removed, from that on _id first.
// Nobody counts those of sparse and multikey indexes.
func deadEntries(r *storage.Reader, removed int64) (n int64, err error) {
	dead, documents, err := r.Dead()
	if err != nil {
		return 0, err
	}
	for _, d := range r.Catalog().Indexes {
		entries, err := r.Entries(d)
		if err != nil {
			return 0, err
		}
		n += min(max(entries-documents, 0), dead+removed)
	}
	return n, nil
}

// hide ends what is shown of the collection's task.
func (k *keeper) hide(collection uint32) {
	if l := k.shown[collection]; l != nil {
		k.ops.Finish(l.op)
		delete(k.shown, collection)
	}
}

// hideAllBut ends what is shown of tasks that are not among those of the collections, which are sorted.
func (k *keeper) hideAllBut(due []uint32) {
	for id := range k.shown {
		if _, ok := slices.BinarySearch(due, id); !ok {
			k.hide(id)
		}
	}
}
