package ttl

import (
	"container/heap"

	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// agenda knows for each collection when it has to be looked at next: at its earliest deadline to come. Times are
// milliseconds since the epoch. It is not safe for concurrent use. The zero agenda is empty.
type agenda struct {
	queue agendaQueue
	by    map[uint32]*appointment
}

type appointment struct {
	collection uint32
	at         int64
	place      int // in the queue
}

// note makes collection come up at the time, if it would not do so earlier.
func (a *agenda) note(collection uint32, at int64) {
	if at == policy.Never {
		return
	}
	if p := a.by[collection]; p != nil {
		if at < p.at {
			p.at = at
			heap.Fix(&a.queue, p.place)
		}
		return
	}
	if a.by == nil {
		a.by = map[uint32]*appointment{}
	}
	p := &appointment{collection: collection, at: at}
	a.by[collection] = p
	heap.Push(&a.queue, p)
}

// forget makes collection not come up.
func (a *agenda) forget(collection uint32) {
	if p := a.by[collection]; p != nil {
		heap.Remove(&a.queue, p.place)
		delete(a.by, collection)
	}
}

// next is when the first collection comes up, policy.Never when none does.
func (a *agenda) next() int64 {
	if len(a.queue) == 0 {
		return policy.Never
	}
	return a.queue[0].at
}

// of is when collection comes up, policy.Never when it does not.
func (a *agenda) of(collection uint32) int64 {
	if p := a.by[collection]; p != nil {
		return p.at
	}
	return policy.Never
}

// takeDue removes and returns the collections that come up at now or before.
func (a *agenda) takeDue(now int64) (due []uint32) {
	for a.next() <= now && len(a.queue) > 0 {
		p := heap.Pop(&a.queue).(*appointment)
		delete(a.by, p.collection)
		due = append(due, p.collection)
	}
	return due
}

// hasDue says whether a collection comes up at now or before, besides one.
func (a *agenda) hasDue(now int64, but uint32) bool {
	const front = 3 // the first is the earliest, and one of the two below it is next
	for _, p := range a.queue[:min(front, len(a.queue))] {
		if p.at <= now && p.collection != but {
			return true
		}
	}
	return false
}

// agendaQueue is a heap.Interface, earliest first and then by number.
type agendaQueue []*appointment

func (q agendaQueue) Len() int { return len(q) }

func (q agendaQueue) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].collection < q[j].collection
}

func (q agendaQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

func (q *agendaQueue) Push(x any) {
	p := x.(*appointment)
	p.place = len(*q)
	*q = append(*q, p)
}

func (q *agendaQueue) Pop() any {
	old := *q
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return p
}
