// Package tikvkv is the distributed engine: kv over a TiKV cluster, for one server at a time. It knows nothing of what the keys mean.
//
// A server that opens a keyspace takes its lease (lease), orders all commits itself and writes them in groups (committer). So a commit costs a
// share of a group's round trips: one to PD for a timestamp, and one to TiKV where all that the group writes lies in one region (1PC) or it is
// small (async commit); two more otherwise.
//
// # Reading
//
// Who begins to read gets the timestamp of the youngest commit (views), without asking anybody. A read by key is a round trip, unless the row
// cache knows it; so are many keys at once, for each region that they lie in, and a stretch of pairs (iterator).
//
// # What this engine does not do
//
// It takes over no tables and takes no checkpoints, and each commit is durable when it returns.
//
// # Ranges
//
// TiKV deletes no ranges in a transaction. So a commit that deletes one writes a range tombstone (rangetombstone), readers pass over what that hides,
// and the keys are removed one by one later (reclaimer), which is nothing that anybody sees.
package tikvkv

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tikv/client-go/v2/tikv"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
)

// Options of an engine; the zero value of each field is its default.
type Options struct {
	// PD are the addresses of the cluster's placement drivers.
	PD []string
	// Keyspace is where in the cluster the store lies; DefaultKeyspace by default.
	Keyspace string
	// Name is what others are told of who has the keyspace, and Address where they reach it.
	Name, Address string
	// Waiting, unless nil, has Open wait for a keyspace that another server has for as long as it has it, and is told, often, which one that is.
	Waiting func(Holder)
	// CAFile, CertFile and KeyFile are for TLS to the cluster; without a CAFile there is none.
	CAFile, CertFile, KeyFile string
	// RowCacheBytes is how much of what was read by key lately is kept; 64 MiB by default.
	RowCacheBytes int64
	// Logger takes what the engine has to say; nothing by default.
	Logger *slog.Logger
	// Clock tells how long ago the lease was renewed; the machine's by default.
	Clock clock.Clock
	// OnFailure is called once, on a goroutine of its own, when the keyspace was lost to another server. From then on nothing is read or written.
	OnFailure func(error)
	// Term is how long the lease lasts that a server has on the keyspace, from its last renewal on; ten seconds by default.
	Term time.Duration
	// Keep is how long the cluster keeps in any case what was changed; ten minutes by default. It lets go of the rest twice in that time.
	Keep time.Duration
}

const defaultRowCacheBytes = 64 << 20

func (o Options) withDefaults() Options {
	if o.Keyspace == "" {
		o.Keyspace = DefaultKeyspace
	}
	if o.RowCacheBytes == 0 {
		o.RowCacheBytes = defaultRowCacheBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.Clock == nil {
		o.Clock = clock.Wall()
	}
	if o.Term == 0 {
		o.Term = defaultTerm
	}
	if o.Keep == 0 {
		o.Keep = defaultKeep
	}
	return o
}

// Engine is a kv.Engine over one keyspace of a TiKV cluster.
type Engine struct {
	reads
	lease   *lease
	open    openTxns
	longs   *longKeys
	commits *committer
	feed    feed
	// reclaims removes what is deleted in ranges.
	reclaims *reclaimer
	failed   atomic.Bool
	keeper   chan struct{} // closed when the goroutine that keeps the lease has ended
	collects chan struct{} // closed when the one has ended by which the cluster lets go of what is not needed
}

var _ kv.Engine = (*Engine)(nil)

// Open connects to the cluster and takes the keyspace. The error is a HeldError where another server has it and it is not to wait. It ends with ctx.
func Open(ctx context.Context, o Options) (*Engine, error) {
	o = o.withDefaults()
	store, err := openClient(o)
	if err != nil {
		return nil, err
	}
	return openStore(ctx, store, o)
}

// openClient connects to the cluster for somebody who works on, or reads, a keyspace.
func openClient(o Options) (*tikv.KVStore, error) {
	if err := CheckKeyspace(o.Keyspace); err != nil {
		return nil, err
	}
	toLog(o.Logger)
	store, err := connect(o)
	if err != nil {
		return nil, fmt.Errorf("tikvkv: open: %w", err)
	}
	return store, nil
}

// OpenStore is Open over a client that is there already; the engine closes it.
func OpenStore(ctx context.Context, store *tikv.KVStore, o Options) (*Engine, error) {
	return openStore(ctx, store, o.withDefaults())
}

func openStore(ctx context.Context, store *tikv.KVStore, o Options) (*Engine, error) {
	e := &Engine{longs: newLongKeys(), keeper: make(chan struct{}), collects: make(chan struct{})}
	e.init(store, o, func() error { return e.lease.held() })
	e.lease = &lease{store: store, space: e.space, clock: o.Clock, log: o.Logger, ctx: e.ctx, me: Holder{rand.Text(), o.Name, o.Address}, term: o.Term}
	e.lease.mu.changed, e.lease.commit = make(chan struct{}), e.lease.commitOnce
	unlink := context.AfterFunc(ctx, e.cancel)
	got, err := e.lease.take(o.Keyspace, o.Waiting)
	if err == nil && !unlink() { // ctx has ended meanwhile
		err = context.Cause(ctx)
	}
	if err != nil {
		e.cancel()
		e.rows.Close()
		return nil, errors.Join(err, store.Close())
	}
	e.views.publish(view{ts: got.ts})
	e.feed.begin(got.ts, got.last.number, got.last.millis)
	e.commits = newCommitter(e, got.last.number, got.last.millis)
	e.reclaims = newReclaimer(e, got.outside)
	go e.keep() // what is read now may take longer than the lease lasts
	if err := e.load(); err != nil {
		err = errors.Join(err, e.lease.giveBack())
		e.cancel()
		<-e.keeper
		e.rows.Close()
		return nil, errors.Join(err, store.Close())
	}
	go e.commits.run()
	go e.reclaims.run()
	go e.collect()
	return e, nil
}

// load reads what has to be known before anybody works with the engine.
func (e *Engine) load() (err error) {
	tombstones, err := e.readTombstones()
	if err != nil {
		return err
	}
	e.commits.turn.Lock()
	e.commits.tombstones = tombstones
	e.views.publish(view{ts: e.views.time(), tombstones: tombstones})
	e.commits.turn.Unlock()
	_ = e.reclaims.learnSome() // the rest, or all where that fails, the reclaimer does later
	return e.lease.isLost()
}

// keep renews the lease, and ends with the engine. It waits for nothing else.
func (e *Engine) keep() {
	defer close(e.keeper)
	var failing error
	for pause := e.options.Term / renewals; clock.Wait(e.ctx, e.options.Clock, pause) == nil; {
		sequence := e.views.sequence()
		ts, err := e.lease.renew()
		switch {
		case errors.Is(err, ErrLost):
			e.lose(err)
			return
		case err != nil && failing == nil:
			e.options.Logger.Warn("The lease of the keyspace could not be renewed", "error", err)
		case err == nil && failing != nil:
			e.options.Logger.Info("The lease of the keyspace is renewed again")
		}
		failing, pause = err, e.options.Term/retries
		if err == nil {
			pause = e.options.Term / renewals
			e.refresh(sequence, ts)
		}
	}
}

// refresh gives readers the timestamp, unless something is committed meanwhile, or was since the sequence was read.
func (e *Engine) refresh(sequence, ts uint64) {
	if !e.commits.turn.TryLock() {
		return
	}
	defer e.commits.turn.Unlock()
	if e.views.refresh(sequence, ts) {
		e.feed.refresh(ts)
	}
}

// lose is for one whose keyspace another server has.
func (e *Engine) lose(err error) {
	e.commits.close(ErrLost)
	e.fail(err)
}

// fail is for an engine that cannot go on.
func (e *Engine) fail(err error) {
	if e.failed.Swap(true) {
		return
	}
	e.options.Logger.Error("The engine has failed", "error", err)
	if e.options.OnFailure != nil {
		go e.options.OnFailure(err)
	}
}

// Capabilities is kv.Engine's.
func (e *Engine) Capabilities() kv.Capabilities {
	return kv.Capabilities{Counters: true, RangeDeletes: true, SoleWriter: true, Groups: true, Ahead: maxAhead, MaxTxnBytes: MaxTxnBytes}
}

// Still is kv.Engine's. It waits for the group that is on its way, no longer than for a read.
func (e *Engine) Still(ctx context.Context, look func()) (kv.Snapshot, error) {
	waits := &snapshot{of: &e.reads, ctx: ctx}
	limited, cancel := waits.readContext()
	defer cancel()
	if err := e.commits.turn.LockWithin(limited); err != nil {
		return nil, waits.failed(limited, "a commit is on its way", err)
	}
	defer e.commits.turn.Unlock()
	look()
	return e.Snapshot()
}

// DeleteRange is kv.Engine's.
func (e *Engine) DeleteRange(start, end []byte) error {
	if e.closed.Load() {
		return kv.ErrClosed
	}
	if bytes.Compare(start, end) >= 0 {
		return nil
	}
	w := &kv.WriteList{Deleted: []kv.Range{{Start: bytes.Clone(start), End: bytes.Clone(end)}}}
	return e.commits.commit(e.ctx, &pending{Commit: &kv.Commit{Writes: w}, begin: noTransaction})
}

// Load is kv.Engine's.
func (e *Engine) Load(context.Context, func() (key, value []byte, ok bool, err error)) error {
	if e.closed.Load() {
		return kv.ErrClosed
	}
	return errNoTables
}

// Replace is kv.Engine's.
func (e *Engine) Replace([]byte) (kv.Replacement, error) { return nil, errNoTables }

// Observe is kv.Engine's.
func (e *Engine) Observe(o kv.Observer) {
	e.commits.turn.Lock()
	defer e.commits.turn.Unlock()
	e.commits.observer = o
}

// Apply is kv.Engine's.
func (e *Engine) Apply(ctx context.Context, c *kv.Commit, _ kv.Durability) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.closed.Load() {
		return kv.ErrClosed
	}
	if c.Table != nil {
		return errNoTables
	}
	if err := checkKeys(c); err != nil {
		return err
	}
	return e.commits.commit(ctx, &pending{Commit: c, begin: noTransaction, ordered: true})
}

// Last is kv.Engine's.
func (e *Engine) Last() (number uint64, millis int64) { return e.commits.last() }

// Room is kv.Engine's. How much room the cluster has is its operators' affair; what it refuses a commit meets.
func (e *Engine) Room(int) error {
	if e.closed.Load() {
		return kv.ErrClosed
	}
	return nil
}

// SizeOf is kv.Engine's. The cluster does not tell without counting, so it is not known.
func (e *Engine) SizeOf(_, _ []byte) (int64, error) {
	if e.closed.Load() {
		return 0, kv.ErrClosed
	}
	return 0, nil
}

// Compact is kv.Engine's: the cluster does that by itself.
func (e *Engine) Compact(ctx context.Context, _, _ []byte) error {
	if e.closed.Load() {
		return kv.ErrClosed
	}
	return ctx.Err()
}

// Checkpoint is kv.Engine's.
func (e *Engine) Checkpoint(context.Context) (kv.Checkpoint, error) { return nil, errNoCheckpoints }

// HoldFiles is kv.Engine's: the cluster's files are its own.
func (e *Engine) HoldFiles(context.Context) error { return nil }

// ReleaseFiles is kv.Engine's.
func (e *Engine) ReleaseFiles() {}

// AwaitDurable is kv.Engine's: what is visible is durable.
func (e *Engine) AwaitDurable(uint64) error {
	if e.closed.Load() {
		return fmt.Errorf("%w: %w", kv.ErrUndetermined, kv.ErrClosed)
	}
	return nil
}

// Sync is kv.Engine's.
func (e *Engine) Sync() error { return e.AwaitDurable(kv.AllCommits) }

// Stats is kv.Engine's.
func (e *Engine) Stats() kv.Stats {
	detail := fmt.Sprintf("keyspace %s, epoch %d: %d commits in %d groups", e.options.Keyspace, e.lease.epoch(), e.commits.written.Load(), e.commits.groups.Load())
	s := kv.Stats{Engine: "tikv", Snapshots: int64(e.views.count()), Detail: detail,
		DeletedRanges: int64(e.views.current().tombstones.Len()), RemovedKeys: e.reclaims.removed.Load()}
	if err := e.lease.held(); err != nil {
		s.Unavailable = unavailable(err).Error()
	} else if err := e.commits.stalledBy(); err != nil {
		s.Unavailable = unavailable(err).Error()
	}
	return s
}

// Holder is who has the keyspace as long as this engine has it.
func (e *Engine) Holder() Holder { return e.lease.me }

// Now is the time by PD's timestamps.
func (e *Engine) Now() time.Time { return e.lease.now() }

// closeTime bounds how long Close waits for what is on its way.
const closeTime = 5 * time.Second

// awaitEnd says whether a goroutine has ended, for which it waits for a while.
func (e *Engine) awaitEnd(stopped <-chan struct{}) bool {
	ctx, cancel := clock.WithTimeout(context.Background(), e.options.Clock, closeTime)
	defer cancel()
	select {
	case <-stopped:
		return true
	case <-ctx.Done():
		return false
	}
}

// Close is kv.Engine's. It gives the lease back, unless a commit is on its way whose outcome is not known.
func (e *Engine) Close() error {
	if !e.closed.CompareAndSwap(false, true) {
		return kv.ErrClosed
	}
	e.commits.close(kv.ErrClosed)
	e.reclaims.cancel()
	ended := e.awaitEnd(e.commits.stopped) && e.awaitEnd(e.reclaims.stopped)
	err := error(nil)
	if ended && !e.failed.Load() && e.lease.held() == nil {
		err = e.lease.giveBack()
		if isConflict(err) { // with a renewal
			err = e.lease.giveBack()
		}
	}
	e.cancel()
	<-e.commits.stopped
	<-e.reclaims.stopped
	<-e.keeper
	<-e.collects
	e.rows.Close()
	if err = errors.Join(err, e.store.Close()); err != nil {
		return fmt.Errorf("tikvkv: close: %w", err)
	}
	return nil
}
