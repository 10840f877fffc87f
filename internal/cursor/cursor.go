// Package cursor keeps the results that clients have not fetched yet: open cursors by id, one batch at a time, dropped
// when they are idle too long. It does not know where the documents come from.
package cursor

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/session"
)

const (
	// IdleTimeout is how long a cursor waits for its next getMore, when nobody set another time.
	IdleTimeout = 10 * time.Minute
	// MaxOpen is how many cursors may be open at once.
	MaxOpen = 100_000
	// MaxBatchBytes is how large a batch may grow.
	MaxBatchBytes = 16 * 1024 * 1024
	// DefaultFirstBatch is the number of documents in a first batch for which the client named none.
	DefaultFirstBatch = 101
)

// Source gives a cursor's documents. Next returns nil at the end; the document is valid until the next call. Park is
// called between batches: it lets go of whatever must not be held while nobody reads. Of a parked one Held is how many
// bytes of memory it has, and Shrink moves to a file, or forgets, what it can.
type Source interface {
	Next(ctx context.Context) (bson.Doc, error)
	Park()
	Held() int64
	Shrink() error
	Close() error
}

// Cursor is one open result. It is used by one operation at a time: Registry.Take hands it out, Put takes it back.
type Cursor struct {
	ID int64
	// NS is "db.coll".
	NS string
	// LSID is the id of the session it was opened in, or "".
	LSID string
	// TxnNumber is that of the transaction it was opened in, -1 for none.
	TxnNumber int64
	// User is who opened it, nil where nobody logs in.
	User *auth.User
	// Command is the command that opened it, for currentOp and the profiler.
	Command bson.Doc
	// API is what that said of the stable API, "" for nothing.
	API         string
	PlanSummary string
	NoTimeout   bool
	// Single says that there will be no other batch.
	Single bool
	// Tailable and AwaitData change what the end of the documents means.
	Tailable, AwaitData bool
	// Durable says that who opened it asked for what is on stable storage, in each batch.
	Durable bool
	// Watches says that it is one of a change stream, which tells of the end of its collection.
	Watches bool
	Source  Source
	// MaxTime is what is left of the maxTimeMS of the command that opened it, 0 for no limit.
	MaxTime time.Duration
	Opened  time.Time
	// Examined, unless nil, tells how much has been looked at for all batches so far, and Sorts says that a stage sorts.
	Examined func() (keys, docs int64)
	Sorts    bool
	// Executed, unless nil, tells how its plan has run so far.
	Executed interface{ ExecStats() bson.Doc }
	// AtClusterTime is what it reads as of, 0 for the present.
	AtClusterTime uint64
	// ParsedBytes is about what the parsed form of its command takes.
	ParsedBytes int64

	pending bson.Doc
	// token is where to go on behind the batch, and ahead the one behind pending.
	token, ahead bson.Doc
	returned     int64
	batches      int64
	// parked is what it has given when it was last taken, guarded by the Registry as is the rest.
	parked struct{ docs, batches int64 }
	used   time.Time
	busy   bool
	killed bool
	why    error // why it may not be used any more
	ended  chan struct{}
	// shrunk says that the source was asked to part with memory since it was parked.
	shrunk bool
	// shrinking is closed when the source has parted with memory; nil when it does not.
	shrinking chan struct{}
	// memory is what the cursor itself takes while it is parked.
	memory memory.Account
}

// Returned is how many documents and batches the cursor has given.
func (c *Cursor) Returned() (docs, batches int64) { return c.returned, c.batches }

// Description is what is shown of an open cursor, as it was when its last batch was done.
type Description struct {
	ID                             int64
	NS, LSID                       string
	User                           *auth.User
	Command                        bson.Doc
	PlanSummary                    string
	NoTimeout, Tailable, AwaitData bool
	Opened, Used                   time.Time
	Docs, Batches                  int64
}

// Batch appends up to limit documents (0 for no limit but size) to b as an array's elements and says whether the cursor
// may have more. The first document is taken whatever its size. What b takes is taken from reply, which may be nil; a batch
// ends early when there is no memory for more, unless it is the only one.
func (c *Cursor) Batch(ctx context.Context, b *bson.Builder, limit int64, reply *memory.Account) (more bool, err error) {
	c.batches++
	room := room{b: b, reply: reply}
	source := c.resumes()
	if source != nil && c.pending == nil {
		c.token = keepToken(c.token, source.ResumeToken())
	}
	for n := int64(0); limit == 0 || n < limit; n++ {
		doc := c.pending
		c.pending = nil
		if doc == nil {
			if doc, err = c.Source.Next(ctx); err != nil {
				return false, err
			}
			if source != nil {
				c.ahead = keepToken(c.ahead, source.ResumeToken())
			}
			if doc == nil {
				c.token, c.ahead = c.ahead, c.token
				return c.goesOn(), nil
			}
		}
		if n > 0 && b.Len()+len(doc) > MaxBatchBytes {
			c.pending = doc.Clone()
			return true, nil
		}
		if full, err := room.make(ctx, len(doc), n > 0 && !c.Single); full || err != nil {
			if full {
				c.pending = doc.Clone()
			}
			return full, err
		}
		b.Document(bson.IndexKey(int(n)), doc)
		c.returned++
		if source != nil {
			c.token, c.ahead = c.ahead, c.token
		}
	}
	return true, nil
}

// keepToken is a token in the memory of another; not where that is large, since a stream lives long and most tokens are small.
func keepToken(room, token bson.Doc) bson.Doc {
	if cap(room) > largeToken {
		room = nil
	}
	return append(room[:0], token...)
}

const (
	// largeToken is how much memory at most is used again for another token.
	largeToken = 4 << 10
	// cursorBytes is about what a parked cursor takes besides what its source holds.
	cursorBytes = 16 << 10
	// minShrink is from which size on a source is asked to part with memory, and minSacrifice from which on a cursor may be
	// ended for it, when nobody has used it for sacrificeAfter.
	minShrink      = 256 << 10
	minSacrifice   = 1 << 20
	sacrificeAfter = time.Second
)

// Registry is the set of open cursors.
type Registry struct {
	clock  clock.Clock
	memory *memory.Governor
	forget func() // has the memory know nothing of the registry any more
	mu     struct {
		sync.Mutex
		open             map[int64]*Cursor
		timedOut, opened int64
		sacrificed       int64 // because memory was used up
	}
}

// NewRegistry returns an empty registry, whose parked cursors take their memory from g, which may be nil. When that is
// short, their sources part with what they can; if that is not enough, those that nobody has used for the longest time end.
func NewRegistry(c clock.Clock, g *memory.Governor) *Registry {
	r := &Registry{clock: c, memory: g}
	r.mu.open = map[int64]*Cursor{}
	r.forget = g.OnShortage(r.shrink)
	return r
}

// End lets go of all cursors, and of what others know of the registry.
func (r *Registry) End() {
	r.KillWhere(func(*Cursor) bool { return true })
	r.forget()
}

// Adopt has the cursor, before it is added, keep what a has taken to parse its command: nobody else gets it in between.
func (c *Cursor) Adopt(a *memory.Account) {
	if a.Used() > 0 {
		a.Move(memory.Cursors)
		c.memory, *a = *a, memory.Account{}
	}
}

// Add parks c and gives it an id.
func (r *Registry) Add(c *Cursor) error {
	c.Source.Park()
	if c.memory.Used() == 0 {
		c.memory.OpenExact(r.memory, memory.Cursors)
	}
	if !c.memory.Take(c.parkedBytes() - c.memory.Used()) {
		c.memory.Close()
		return tooFull()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.mu.open) >= MaxOpen {
		c.memory.Close()
		return mongoerr.New(mongoerr.OperationFailed, "too many open cursors, the limit is %d", MaxOpen)
	}
	for c.ID == 0 || r.mu.open[c.ID] != nil {
		c.ID = newID()
	}
	c.ended = make(chan struct{})
	c.Opened = r.clock.Now()
	c.used = c.Opened
	r.mu.open[c.ID] = c
	r.mu.opened++
	return nil
}

func newID() int64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], rand.Uint64())
	return int64(binary.LittleEndian.Uint64(b[:]) >> 1)
}

// Take hands out the cursor with the id for one getMore on ns. Who is bound to his session, as users are, is told so first.
func (r *Registry) Take(id int64, ns, lsid string, bound bool) (*Cursor, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.mu.open[id]
	for c != nil && c.shrinking != nil {
		done := c.shrinking
		r.mu.Unlock()
		<-done
		r.mu.Lock()
		c = r.mu.open[id]
	}
	switch {
	case c == nil || c.killed:
		return nil, mongoerr.New(mongoerr.CursorNotFound, "cursor id %d not found", id)
	case c.LSID != lsid && bound:
		return nil, mongoerr.New(mongoerr.Unauthorized, "Cursor session id (%s) is not the same as the operation context's session id (%s)",
			session.Shown(c.LSID), session.Shown(lsid))
	case c.NS != ns:
		return nil, mongoerr.New(mongoerr.Unauthorized, "Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", ns, c.NS)
	case c.LSID != lsid:
		return nil, sessionMismatch(id, c.LSID, lsid)
	case c.busy:
		return nil, mongoerr.New(mongoerr.CursorInUse, "cursor id %d is already in use", id)
	case c.why != nil:
		delete(r.mu.open, id)
		c.memory.Close()
		return nil, c.why
	}
	c.busy = true
	c.parked.docs, c.parked.batches = c.returned, c.batches
	return c, nil
}

func sessionMismatch(id int64, own, asked string) error {
	switch {
	case own == "":
		return mongoerr.New(50736, "Cannot run getMore on cursor %d, which was not created in a session, in a session", id)
	case asked == "":
		return mongoerr.New(50737, "Cannot run getMore on cursor %d, which was created in a session, without an lsid", id)
	}
	return mongoerr.New(50738, "Cannot run getMore on cursor %d, which was created in another session", id)
}

// Put parks c until its next getMore; what a cursor that was killed or invalidated meanwhile holds is let go of.
func (r *Registry) Put(c *Cursor) {
	c.Source.Park()
	if more := c.parkedBytes() - c.memory.Used(); more > 0 {
		c.memory.Charge(more) // the document that had no room in the batch is there
	} else {
		c.memory.Give(-more)
	}
	r.mu.Lock()
	c.used, c.shrunk = r.clock.Now(), false
	r.mu.Unlock()
	r.free(c)
}

// free ends the use of c; what one that has ended meanwhile holds is let go of.
func (r *Registry) free(c *Cursor) {
	r.mu.Lock()
	c.busy = false
	source := Source(nil)
	if c.why != nil {
		source, c.Source = c.Source, invalid{c.why}
		c.pending = nil
	}
	if c.killed {
		c.memory.Close()
	}
	r.mu.Unlock()
	if source != nil {
		_ = source.Close()
	}
}

// Close ends c, which was taken.
func (r *Registry) Close(c *Cursor) error {
	r.mu.Lock()
	delete(r.mu.open, c.ID)
	c.memory.Close()
	r.mu.Unlock()
	return c.Source.Close()
}

// Owner is who opened the cursor with the id, and its namespace.
func (r *Registry) Owner(id int64) (user *auth.User, ns string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.mu.open[id]
	if c == nil || c.killed {
		return nil, "", false
	}
	return c.User, c.NS, true
}

// Watches says whether there is a cursor with the id that is one of a change stream.
func (r *Registry) Watches(id int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.mu.open[id]
	return c != nil && !c.killed && c.Watches
}

// Kill ends the cursor with the id and says whether there was one.
func (r *Registry) Kill(id int64) bool {
	r.mu.Lock()
	c := r.mu.open[id]
	if c == nil || c.killed {
		r.mu.Unlock()
		return false
	}
	busy := r.kill(c)
	r.mu.Unlock()
	if !busy {
		_ = c.Source.Close()
	}
	return true
}

// kill takes c out; the caller holds the lock and closes its source when it is not busy.
func (r *Registry) kill(c *Cursor) (busy bool) {
	c.killed = true
	c.end(killed())
	delete(r.mu.open, c.ID)
	if !c.busy {
		c.memory.Close()
	}
	return c.busy
}

// KillWhere ends every cursor that match finds and returns how many there were.
func (r *Registry) KillWhere(match func(*Cursor) bool) int {
	var idle []*Cursor
	n := 0
	r.mu.Lock()
	for _, c := range r.mu.open {
		if match(c) {
			n++
			if !r.kill(c) {
				idle = append(idle, c)
			}
		}
	}
	r.mu.Unlock()
	for _, c := range idle {
		_ = c.Source.Close()
	}
	return n
}

// Expire ends the cursors that nobody has used for so long, but for those of sessions that live: these end with their session.
func (r *Registry) Expire(idle time.Duration, lives func(lsid string) bool) int {
	now := r.clock.Now()
	n := r.KillWhere(func(c *Cursor) bool {
		return !c.busy && now.Sub(c.used) >= idle && (c.why != nil || !c.NoTimeout && (c.LSID == "" || !lives(c.LSID)))
	})
	r.mu.Lock()
	r.mu.timedOut += int64(n)
	r.mu.Unlock()
	return n
}

// Counts says how many cursors are open, how many of these never time out, and how many were opened and timed out since
// the start.
func (r *Registry) Counts() (open, noTimeout, opened, timedOut int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.mu.open {
		if c.NoTimeout {
			noTimeout++
		}
	}
	return int64(len(r.mu.open)), noTimeout, r.mu.opened, r.mu.timedOut
}

// Sacrificed is how many cursors were ended since the start because memory was used up.
func (r *Registry) Sacrificed() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.sacrificed
}

// Idle is every cursor that no operation is using.
func (r *Registry) Idle() []Description {
	r.mu.Lock()
	defer r.mu.Unlock()
	var cs []Description
	for _, c := range r.mu.open {
		if !c.busy {
			cs = append(cs, c.describe(c.returned, c.batches))
		}
	}
	return cs
}

// Busy is the cursor with the id while a getMore has it.
func (r *Registry) Busy(id int64) (d Description, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.mu.open[id]
	if c == nil || !c.busy {
		return d, false
	}
	return c.describe(c.parked.docs, c.parked.batches), true
}

func (c *Cursor) describe(docs, batches int64) Description {
	return Description{c.ID, c.NS, c.LSID, c.User, c.Command, c.PlanSummary, c.NoTimeout, c.Tailable, c.AwaitData, c.Opened, c.used, docs, batches}
}
