package tikvkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/tikv/client-go/v2/oracle"
	"github.com/tikv/client-go/v2/tikv"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
)

// Follower is a kv.Engine that reads a keyspace on which another server works. It writes nothing: Apply takes note of a Commit that lies in TiKV already.
//
// What there is it knows by what that server tells (Told): each view is that of a group that was told of, by the group's timestamp. So it sees nothing half,
// and who asks the other server before he reads sees all that anybody was acknowledged before.
//
// Invariants: the view that readers begin with is that of the last group of which all Commits were applied; numbers grow without a gap.
type Follower struct {
	reads
	name     string        // PD knows it by
	collects chan struct{} // closed when the goroutine has ended by which the cluster keeps what is read
	// turn is held while a Commit is applied. It guards what follows.
	turn     sync.Mutex
	observer kv.Observer
	group    *fed         // is being applied; nil: none
	ordered  []*kv.Commit // of that
	last     struct {
		sync.Mutex // guards the rest
		number     uint64
		millis     int64
		place      uint64
	}
}

var _ kv.Engine = (*Follower)(nil)

// errFollower is for who writes.
var errFollower = fmt.Errorf("%w: another server works on the keyspace", kv.ErrReadOnly)

// OpenFollower connects to the cluster, and begins where another server says that it is. The ID is one that no other follower has.
func OpenFollower(ctx context.Context, o Options, id string, at Told) (*Follower, error) {
	o = o.withDefaults()
	store, err := openClient(o)
	if err != nil {
		return nil, err
	}
	return openFollower(ctx, store, o, id, at)
}

// FollowStore is OpenFollower over a client that is there already; the engine closes it.
func FollowStore(ctx context.Context, store *tikv.KVStore, o Options, id string, at Told) (*Follower, error) {
	return openFollower(ctx, store, o.withDefaults(), id, at)
}

func openFollower(ctx context.Context, store *tikv.KVStore, o Options, id string, at Told) (*Follower, error) {
	f := &Follower{name: "ebb-" + o.Keyspace + "-" + id, collects: make(chan struct{})}
	f.init(store, o, func() error { return nil })
	unlink := context.AfterFunc(ctx, f.cancel)
	err := f.load(at)
	if err == nil && !unlink() {
		err = context.Cause(ctx)
	}
	if err != nil {
		f.cancel()
		f.rows.Close()
		return nil, fmt.Errorf("tikvkv: follow: %w", errors.Join(err, store.Close()))
	}
	go f.collect()
	return f, nil
}

// load reads what has to be known before anybody reads.
func (f *Follower) load(at Told) error {
	if err := f.keep(at.TS); err != nil {
		return err
	}
	f.views.publish(view{sequence: at.Number, ts: at.TS})
	tombstones, err := f.readTombstones()
	if err != nil {
		return err
	}
	f.views.publish(view{sequence: at.Number, ts: at.TS, tombstones: tombstones})
	f.last.number, f.last.millis, f.last.place = at.Number, at.Millis, at.Place
	return nil
}

// keep has the cluster keep what there is from a timestamp on.
func (f *Follower) keep(ts uint64) error {
	term := int64((2 * f.options.Keep).Seconds())
	least, err := f.store.GetPDClient().UpdateServiceGCSafePoint(f.ctx, f.name, max(term, 1), ts)
	switch {
	case err != nil:
		return unavailable(err)
	case least > ts: // what comes behind is kept, at least
		f.views.raise(least)
		if _, err := f.store.GetPDClient().UpdateServiceGCSafePoint(f.ctx, f.name, max(term, 1), least); err != nil {
			return unavailable(err)
		}
		return errTooOld
	}
	return nil
}

// collect has the cluster keep what is read here, until the engine ends, and nothing longer than that.
func (f *Follower) collect() {
	defer close(f.collects)
	for clock.Wait(f.ctx, f.options.Clock, f.options.Keep/4) == nil {
		now := f.views.time()
		back := func(d time.Duration) uint64 {
			return oracle.ComposeTS(max(oracle.ExtractPhysical(now)-d.Milliseconds(), 0), 0)
		}
		if err := f.keep(f.views.letGo(back(f.options.Keep), back(keepMost))); err != nil && f.ctx.Err() == nil {
			f.options.Logger.Warn("The TiKV cluster could not be told what is read", "error", err)
		}
	}
	ctx, cancel := withLimit(context.Background(), f.options.Clock, time.Second) // somebody may wait to take the keyspace over
	defer cancel()
	_, _ = f.store.GetPDClient().UpdateServiceGCSafePoint(ctx, f.name, 0, math.MaxInt64) // which would end by itself
}

// Place is that of the last group that was applied.
func (f *Follower) Place() uint64 {
	f.last.Lock()
	defer f.last.Unlock()
	return f.last.place
}

// Follow takes note of what is told from its place on. apply is given each Commit, and calls Apply with it. After an error the engine is of no use any more.
func (f *Follower) Follow(told Told, apply func(*kv.Commit) error) error {
	if told.Place != f.Place()+uint64(len(told.Groups)) {
		return fmt.Errorf("%w: it ends at %d, and begins behind %d", errBrokenGroup, told.Place, f.Place())
	}
	for _, one := range told.Groups {
		g, err := f.space.decodeGroup(one, f.views.current().tombstones)
		if err != nil {
			return err
		}
		if len(g.commits) == 0 {
			f.turn.Lock()
			f.publish(&g)
			f.turn.Unlock()
			continue
		}
		f.turn.Lock()
		f.group, f.ordered = &g, nil
		f.turn.Unlock()
		for _, c := range g.commits {
			if err := apply(c); err != nil {
				return err
			}
		}
	}
	if !told.More && f.Place() == told.Place {
		f.views.refresh(f.views.sequence(), told.TS)
	}
	return nil
}

// Apply is kv.Engine's, of the next Commit of the group that is being told of.
func (f *Follower) Apply(ctx context.Context, c *kv.Commit, _ kv.Durability) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.closed.Load() {
		return kv.ErrClosed
	}
	f.turn.Lock()
	defer f.turn.Unlock()
	number, _ := f.Last()
	if next := number + uint64(len(f.ordered)) + 1; f.group == nil || c.Number != next {
		return fmt.Errorf("tikvkv: apply: %w: it is %d, and the next is %d", kv.ErrOrder, c.Number, next)
	}
	if f.observer != nil {
		f.observer.Ordered(c)
	}
	noteRows(f.rows, c, c.Number)
	if f.ordered = append(f.ordered, c); len(f.ordered) == len(f.group.commits) {
		if f.group.large {
			f.rows.ChangeRange(kv.Range{Start: []byte{}, End: afterAll}, c.Number)
		}
		f.publish(f.group)
	}
	return nil
}

// afterAll comes behind all keys that there are.
var afterAll = bytes.Repeat([]byte{0xff}, maxKeyBytes+1)

// publish has a group be seen. The caller holds turn.
func (f *Follower) publish(g *fed) {
	if f.observer != nil {
		for _, c := range f.ordered {
			f.observer.Appears(c)
		}
	}
	v := f.views.current()
	v.ts, v.tombstones = g.ts, g.tombstones
	if n := len(f.ordered); n > 0 {
		v.sequence = f.ordered[n-1].Number
	}
	f.views.publish(v)
	f.last.Lock()
	f.last.place++
	if n := len(f.ordered); n > 0 {
		f.last.number, f.last.millis = f.ordered[n-1].Number, f.ordered[n-1].Time
	}
	f.last.Unlock()
	if f.observer != nil {
		for _, c := range f.ordered {
			f.observer.Visible(c)
		}
	}
	f.group, f.ordered = nil, nil
}

// Capabilities is kv.Engine's. Those who write elsewhere are not others: their commits come by Apply.
func (f *Follower) Capabilities() kv.Capabilities {
	return kv.Capabilities{Counters: true, RangeDeletes: true, SoleWriter: true, Groups: true, Ahead: maxAhead, MaxTxnBytes: MaxTxnBytes}
}

// Observe is kv.Engine's.
func (f *Follower) Observe(o kv.Observer) {
	f.turn.Lock()
	defer f.turn.Unlock()
	f.observer = o
}

// Last is kv.Engine's.
func (f *Follower) Last() (number uint64, millis int64) {
	f.last.Lock()
	defer f.last.Unlock()
	return f.last.number, f.last.millis
}

// Still is kv.Engine's.
func (f *Follower) Still(ctx context.Context, look func()) (kv.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.turn.Lock()
	defer f.turn.Unlock()
	if f.group != nil { // half of what the Observer knows of cannot be seen yet
		return nil, unavailable(errStalled)
	}
	look()
	return f.Snapshot()
}

// AwaitDurable is kv.Engine's: what is told is durable.
func (f *Follower) AwaitDurable(uint64) error { return f.open() }

// Sync is kv.Engine's.
func (f *Follower) Sync() error { return f.open() }

func (f *Follower) open() error {
	if f.closed.Load() {
		return kv.ErrClosed
	}
	return nil
}

// DeleteRange is kv.Engine's.
func (f *Follower) DeleteRange(_, _ []byte) error { return errFollower }

// Load is kv.Engine's.
func (f *Follower) Load(context.Context, func() (key, value []byte, ok bool, err error)) error {
	return errFollower
}

// Replace is kv.Engine's.
func (f *Follower) Replace([]byte) (kv.Replacement, error) { return nil, errFollower }

// Room is kv.Engine's.
func (f *Follower) Room(int) error { return errFollower }

// SizeOf is kv.Engine's.
func (f *Follower) SizeOf(_, _ []byte) (int64, error) { return 0, f.open() }

// Compact is kv.Engine's.
func (f *Follower) Compact(context.Context, []byte, []byte) error { return errFollower }

// Checkpoint is kv.Engine's.
func (f *Follower) Checkpoint(context.Context) (kv.Checkpoint, error) { return nil, errNoCheckpoints }

// HoldFiles is kv.Engine's.
func (f *Follower) HoldFiles(context.Context) error { return nil }

// ReleaseFiles is kv.Engine's.
func (f *Follower) ReleaseFiles() {}

// Stats is kv.Engine's.
func (f *Follower) Stats() kv.Stats {
	number, _ := f.Last()
	return kv.Stats{Engine: "tikv", Snapshots: int64(f.views.count()), Detail: fmt.Sprintf("keyspace %s, followed up to commit %d", f.options.Keyspace, number),
		DeletedRanges: int64(f.views.current().tombstones.Len())}
}

// Interrupt has whoever reads fail, and whoever comes.
func (f *Follower) Interrupt() { f.cancel() }

// Close is kv.Engine's.
func (f *Follower) Close() error {
	if !f.closed.CompareAndSwap(false, true) {
		return kv.ErrClosed
	}
	f.cancel()
	<-f.collects
	f.rows.Close()
	if err := f.store.Close(); err != nil {
		return fmt.Errorf("tikvkv: close: %w", err)
	}
	return nil
}
