// Package operation keeps account of what the server is doing: each running operation, who asked for it, what it has
// read and written so far, and how to stop it. It does not know what any operation means.
package operation

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Client is who asked: a connection, or one of the server's own threads when ConnectionID is 0.
type Client struct {
	ConnectionID int64
	// Desc is "conn12" or the name of a thread such as "TTLMonitor".
	Desc string
	// Remote is "host:port", empty for a thread.
	Remote string
	// Metadata is the client document of hello, or nil.
	Metadata bson.Doc
	AppName  string
	// User is who has logged in; no name is nobody's.
	User auth.Name
}

// Stats is what an operation has done. Its counters may be read while they grow.
type Stats struct {
	KeysExamined, DocsExamined, Returned    atomic.Int64
	Matched, Modified, Inserted, Deleted    atomic.Int64
	Upserted, KeysInserted, KeysDeleted     atomic.Int64
	WriteConflicts, ResponseBytes, CursorID atomic.Int64
	HasSortStage, UsedDisk, CursorExhausted atomic.Bool
	// WaitingForLock is true while the operation waits for writes to be let in.
	WaitingForLock atomic.Bool
	planSummary    atomic.Pointer[string]
	ExecMicros     atomic.Int64
}

// Add counts what other has done as well.
func (s *Stats) Add(other *Stats) {
	for _, c := range [...]struct{ to, from *atomic.Int64 }{
		{&s.KeysExamined, &other.KeysExamined}, {&s.DocsExamined, &other.DocsExamined}, {&s.Returned, &other.Returned},
		{&s.Matched, &other.Matched}, {&s.Modified, &other.Modified}, {&s.Inserted, &other.Inserted}, {&s.Deleted, &other.Deleted},
		{&s.Upserted, &other.Upserted}, {&s.KeysInserted, &other.KeysInserted}, {&s.KeysDeleted, &other.KeysDeleted},
		{&s.WriteConflicts, &other.WriteConflicts},
	} {
		if n := c.from.Load(); n != 0 {
			c.to.Add(n)
		}
	}
}

// frequent are the plans of most operations, each kept once.
var frequent = [...]string{"EXPRESS_IXSCAN { _id: 1 }", "EXPRESS_IXSCAN { _id: 1 },EXPRESS_UPDATE", "EXPRESS_IXSCAN { _id: 1 },EXPRESS_DELETE", "IDHACK"}

// SetPlanSummary notes the plan that the operation runs by.
func (s *Stats) SetPlanSummary(text string) {
	if p := s.planSummary.Load(); p != nil && *p == text {
		return
	}
	for i := range frequent {
		if text == frequent[i] {
			s.planSummary.Store(&frequent[i])
			return
		}
	}
	kept := text // text itself would be moved for the plan above, too
	s.planSummary.Store(&kept)
}

// PlanSummary is the plan noted last, "" when there is none.
func (s *Stats) PlanSummary() string {
	if p := s.planSummary.Load(); p != nil {
		return *p
	}
	return ""
}

// Operation is one thing that the server does. What describes it is set before Registry.Start and not changed after.
type Operation struct {
	ID     int64
	Client *Client
	// Kind is MongoDB's op: "command", "query", "getmore", "insert", "update", "remove", "none".
	Kind string
	// NS is the namespace it works on.
	NS      string
	Command bson.Doc
	// LSID is the session's document, or nil.
	LSID bson.Doc
	// Session is what the session is found by, "" for none.
	Session string
	// Started is set by Registry.Start where nobody has set it, with Began: when that was by the monotonic time, which no clock that is set moves.
	Started time.Time
	Began   time.Duration
	Stats   Stats
	// Progress says how far a long operation has come; nil where nobody counts.
	Progress func() (message string, done, total int64)

	killed atomic.Bool
	scope  scope
	// before and after are those that run, and shown says that it was given to somebody, guarded by the Registry.
	before, after *Operation
	shown         bool
}

// Clear makes o one that has not begun. Nobody else may have it.
func (o *Operation) Clear() { *o = Operation{} }

// Killed says whether the operation was told to stop.
func (o *Operation) Killed() bool { return o.killed.Load() }

// Kill tells the operation to stop for the reason err.
func (o *Operation) Kill(err error) {
	o.killed.Store(true)
	o.scope.kill(err)
}

// Registry is the set of running operations.
type Registry struct {
	clock     clock.Clock
	next      atomic.Int64
	following atomic.Int64 // of them, those that only follow what others do
	mu        struct {
		sync.Mutex
		// oldest and newest are the ends of a list: operations come and go more often than anybody looks one up.
		oldest, newest *Operation
		running        int
	}
}

// NewRegistry returns an empty registry.
func NewRegistry(c clock.Clock) *Registry {
	return &Registry{clock: c}
}

// Start enters o and gives it an id. The context returned ends when o is killed; its cause is the reason. Finish must be
// called when the operation is over.
func (r *Registry) Start(ctx context.Context, o *Operation) context.Context {
	if o.Started.IsZero() {
		o.Started, o.Began = r.clock.Read()
	}
	o.scope.parent = ctx
	r.mu.Lock()
	o.ID = r.next.Add(1)
	if o.before = r.mu.newest; o.before != nil {
		o.before.after = o
	} else {
		r.mu.oldest = o
	}
	r.mu.newest = o
	r.mu.running++
	r.mu.Unlock()
	return &o.scope
}

// Started is how many operations there have been so far, those that run included.
func (r *Registry) Started() int64 { return r.next.Load() }

// Follows says that an operation that was started only follows what others do, as that of a change stream does.
func (r *Registry) Follows() { r.following.Add(1) }

// Following is how many of Started have said so.
func (r *Registry) Following() int64 { return r.following.Load() }

// Finish takes o out, and says whether nobody else has it, nor its context as something to wait for.
func (r *Registry) Finish(o *Operation) (alone bool) {
	r.mu.Lock()
	if o.before != nil {
		o.before.after = o.after
	} else if r.mu.oldest == o {
		r.mu.oldest = o.after
	} else {
		panic("operation: finished twice, or never started")
	}
	if o.after != nil {
		o.after.before = o.before
	} else {
		r.mu.newest = o.before
	}
	o.before, o.after = nil, nil
	r.mu.running--
	alone = !o.shown
	r.mu.Unlock()
	o.scope.end()
	return alone && o.scope.made.Load() == nil
}

// Running is every operation under way, oldest first.
func (r *Registry) Running() []*Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	ops := make([]*Operation, 0, r.mu.running)
	for o := r.mu.oldest; o != nil; o = o.after {
		o.shown = true
		ops = append(ops, o)
	}
	return ops
}

// Each shows every operation under way to f, oldest first. None of them finishes meanwhile, so that what lies in their
// requests may be read; f must be quick, and must not call the Registry.
func (r *Registry) Each(f func(*Operation)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for o := r.mu.oldest; o != nil; o = o.after {
		f(o)
	}
}

// Kill stops the operation with the id and says whether there was one.
func (r *Registry) Kill(id int64) bool {
	return r.KillFor(id, mongoerr.New(mongoerr.Interrupted, "operation was interrupted"))
}

// KillFor is Kill for the reason err.
func (r *Registry) KillFor(id int64, err error) bool {
	r.mu.Lock()
	o := r.mu.oldest
	for o != nil && o.ID != id {
		o = o.after
	}
	if o != nil {
		o.shown = true
	}
	r.mu.Unlock()
	if o == nil {
		return false
	}
	o.Kill(err)
	return true
}

// Micros is how long o has been running.
func (r *Registry) Micros(o *Operation) int64 {
	return (clock.Monotonic(r.clock) - o.Began).Microseconds()
}
