package ebb

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/peer"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

const (
	// askTime bounds one question, and idlePause is how long nobody asks at most, so that little is told at once.
	askTime   = 5 * time.Second
	idlePause = 500 * time.Millisecond
	// Each connection that reads these moments has questions be that far apart, up to maxSpacing: what they cost the other server does not grow with the
	// readers. A moment is a readerWindow.
	readerSpacing = 50 * time.Microsecond
	maxSpacing    = 2 * time.Millisecond
	readerWindow  = 100 * time.Millisecond
	// awaitTime is how long the other server waits for something to tell whoever wants to know, and quietWatches how often it is asked to when nobody wants to.
	awaitTime    = time.Second
	quietWatches = 5
	// maxMissed is how many questions in a row may have no answer, until what is known is given up.
	maxMissed = 5
)

// told is what a server knows of the one that works on the data. It is the clock of who reads beside that one: its time is what it was told last.
type told struct {
	worker
	clock     clock.Clock
	engine    *tikvkv.Follower
	rounds    rounds
	readers   readers
	changes   chan struct{} // holds one token where somebody is about to follow changes
	millis    atomic.Int64
	hidesUpTo atomic.Int64
	hidesAll  atomic.Bool
	watched   atomic.Bool // reads are to be handed on
	settings  atomic.Bool // have changed
	settingOf sync.Map    // by the number of a collection, whether it has settings
}

// Now implements clock.Clock.
func (t *told) Now() time.Time { return time.UnixMilli(t.millis.Load()) }

// Read implements clock.Clock.
func (t *told) Read() (wall time.Time, monotonic time.Duration) {
	return t.Now(), clock.Monotonic(t.clock)
}

// NewTimer implements clock.Clock.
func (t *told) NewTimer(d time.Duration) clock.Timer { return t.clock.NewTimer(d) }

// asOptions has a store hide as the other server does.
func (t *told) asOptions(o *storage.Options) {
	o.HideExpired, o.HidesUpTo = t.hidesAll.Load, t.hidesUpTo.Load
	o.OnCommit = func(c *kv.Commit) {
		if m, ok := c.Meaning.(*meaning.Meaning); ok && m != nil {
			for _, change := range m.Changes {
				if _, is := t.settingOf.Load(change.Collection); is {
					t.settings.Store(true)
				}
			}
			if m.DDL != nil && slices.ContainsFunc(m.DDL.Events, func(e meaning.Event) bool { return command.IsSetting(e.NS) }) {
				t.settings.Store(true)
			}
		}
	}
}

// note takes note of an answer whose groups were applied. Time does not go back: where it stands still for the other server it is told an earlier one.
func (t *told) note(a answer) {
	t.hidesAll.Store(a.hidesAll)
	if now := a.now; now > t.millis.Load() {
		t.millis.Store(now)
	}
	t.hidesUpTo.Store(a.hidesUpTo)
	t.watched.Store(a.watched)
}

// run asks whenever somebody wants to read, and now and then, until something fails or ctx ends.
func (t *told) run(ctx context.Context, d *database, peers func() peer.Options) error {
	t.findSettings(d)
	missed := 0
	for asked := time.Duration(0); ; {
		pause := clock.Wall().NewTimer(idlePause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return context.Cause(ctx)
		case <-t.rounds.wake:
		case <-pause.C():
		}
		pause.Stop()
		spacing := min(time.Duration(t.readers.lately())*readerSpacing, maxSpacing)
		if wait := asked + spacing - clock.Monotonic(clock.Wall()); wait > readerSpacing {
			if err := clock.Wait(ctx, clock.Wall(), wait); err != nil {
				return err
			}
		}
		asked = clock.Monotonic(clock.Wall())
		these := t.rounds.begin()
		err := t.round(ctx, d)
		these.end(err)
		if err == nil {
			missed = 0
			continue
		}
		if missed++; missed > maxMissed || !isNetwork(err) {
			return err
		}
		if err := t.reconnect(ctx, peers()); err != nil && ctx.Err() != nil { // without, the next question fails, too
			return context.Cause(ctx)
		}
	}
}

// isNetwork says whether an answer has not come, which says nothing of what it would have been.
func isNetwork(err error) bool {
	var said *mongoerr.Error
	return errors.As(err, new(*unanswered)) && !errors.As(err, &said)
}

// round has the database know all that the other server has told anybody before it.
func (t *told) round(ctx context.Context, d *database) error {
	for {
		a, err := t.ask(ctx, int64(t.engine.Place()))
		if err != nil {
			return err
		}
		if err := t.engine.Follow(a.Told, func(c *kv.Commit) error { return d.store.Apply(ctx, c, kv.Synced) }); err != nil {
			return err
		}
		if a.More {
			continue
		}
		d.store.StandStillAs(a.still) // before its time
		t.note(a)
		if err := d.commands.TakeReadParameters(a.parameters); err != nil {
			return err
		}
		if t.settings.Swap(false) {
			t.findSettings(d)
			return d.commands.LoadSettings(ctx)
		}
		return nil
	}
}

// expectChanges tells that somebody is about to follow changes.
func (t *told) expectChanges() {
	select {
	case t.changes <- struct{}{}:
	default:
	}
}

// watch has questions be asked as soon as there is something to be told, as long as change streams are open here, until ctx ends. Without it they would hear
// of it when somebody reads, or when nobody has asked for idlePause.
func (t *told) watch(ctx context.Context, d *database, peers func() peer.Options) {
	for {
		select {
		case <-t.changes:
		case <-ctx.Done():
			return
		}
		if err := t.watchOpen(ctx, d, peers); err != nil && clock.Wait(ctx, clock.Wall(), idlePause) != nil {
			return
		}
	}
}

// watchOpen does so until no change stream is open any more.
func (t *told) watchOpen(ctx context.Context, d *database, peers func() peer.Options) error {
	conn, err := peer.Dial(ctx, t.of.Address, peers())
	if err != nil {
		return err
	}
	defer conn.Close()
	w := worker{of: t.of, conn: conn}
	known := t.engine.Place()
	for quiet := 0; quiet < quietWatches && ctx.Err() == nil; quiet++ {
		place, err := w.await(ctx, max(known, t.engine.Place()))
		if err != nil {
			return err
		}
		if known = max(known, place); known > t.engine.Place() {
			t.rounds.poke()
		}
		if d.store.LogWatches().Open() > 0 {
			quiet = -1
		}
		if clock.Wait(ctx, clock.Wall(), maxSpacing) != nil {
			break
		}
	}
	return nil
}

// findSettings finds which collections have settings.
func (t *told) findSettings(d *database) {
	for _, c := range d.store.Catalog().All() {
		if command.IsSetting(c.NS) {
			t.settingOf.Store(c.ID, true)
		}
	}
}

// rounds has those who want to read wait for the next question.
type rounds struct {
	mu     sync.Mutex // guards next and failed
	next   *round     // of those who came since the last one began; nil: nobody
	failed error
	wake   chan struct{} // holds one token
}

// round is those who wait for one question.
type round struct {
	done chan struct{}
	err  error // set before done is closed
}

// join returns when a question has been answered that was asked after it was called.
func (r *rounds) join(ctx context.Context) error {
	r.mu.Lock()
	if r.failed != nil {
		r.mu.Unlock()
		return r.failed
	}
	if r.next == nil {
		r.next = &round{done: make(chan struct{})}
	}
	mine := r.next
	r.mu.Unlock()
	r.poke()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// isOver says whether nothing is asked any more.
func (r *rounds) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed != nil
}

// poke has a question be asked soon.
func (r *rounds) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// begin is those who wait for the question that is asked now.
func (r *rounds) begin() *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	these := r.next
	r.next = nil
	return these
}

// fail has all who wait, and all who come, be told why nothing is asked any more.
func (r *rounds) fail(err error) {
	r.mu.Lock()
	r.failed = err
	these := r.next
	r.next = nil
	r.mu.Unlock()
	these.end(err)
}

func (r *round) end(err error) {
	if r != nil {
		r.err = err
		close(r.done)
	}
}

// readers counts the connections that read in a window of time.
type readers struct {
	mu        sync.Mutex // guards the rest
	window    int64
	now, last int64
}

// count counts a connection in the window of the moment.
func (r *readers) count(k *reader) {
	window := int64(clock.Monotonic(clock.Wall()) / readerWindow)
	if k.window == window {
		return
	}
	k.window = window
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn(window)
	r.now++
}

// turn goes on to a window. The caller holds mu.
func (r *readers) turn(window int64) {
	switch {
	case r.window == window:
	case r.window == window-1:
		r.window, r.last, r.now = window, r.now, 0
	default:
		r.window, r.last, r.now = window, 0, 0
	}
}

// lately is how many have read in the window of the moment or, if that were more, in the one before.
func (r *readers) lately() int64 {
	window := int64(clock.Monotonic(clock.Wall()) / readerWindow)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn(window)
	return max(r.now, r.last)
}
