package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/catalogchange"
	"github.com/ebbdb/ebb/internal/storage/expiryclock"
	"github.com/ebbdb/ebb/internal/storage/garbage"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/logwatch"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/storage/ownership"
	"github.com/ebbdb/ebb/internal/storage/past"
	"github.com/ebbdb/ebb/internal/storage/publication"
)

// Options of a Store. Clock and Indexes are required.
type Options struct {
	// Clock may be a CommitClock.
	Clock clock.Clock
	// Indexes reads the specifications of indexes.
	Indexes *index.Parser
	// HideExpired is the server's ttlHideExpired: whether every TTL index hides. It is asked once for each View.
	HideExpired func() bool
	// Held is why what has expired is kept on purpose at the moment, "" when it is not: then no command deletes it either, unless it
	// is told to.
	Held func() string
	// Grace is for how many milliseconds what a TTL makes due when it is made or shortened is not deleted, and whether that is as long
	// as ttlMonitorSleepSecs; 0 for not at all.
	Grace func() (millis int64, asSleep bool)
	// HidesUpTo is a time up to which what has expired is hidden although the clock lies behind it, since it was turned back a
	// little. It is asked for each Reader of a collection that hides.
	HidesUpTo func() int64
	// OnDDL is told what was changed after it was; it must not wait.
	OnDDL func(meaning.Event)
	// Witnessed says of which collections' documents witnesses are told; nil: of none's. See witness.With.
	Witnessed func(namespace.NS) bool
	// OnDeadline is told, after each commit into a collection with a TTL, the earliest deadline of the documents it wrote,
	// so that a sweep can be there in time; it must not wait.
	OnDeadline func(collection uint32, deadline int64)
	// OnReleased is told when a transaction of several statements has ended that had what somebody passed over who deletes what has expired, or
	// puts a collection with a TTL in order; it must not wait.
	OnReleased func(collection uint32)
	// OnCommit, unless nil, is told of each Commit, one at a time and in their order, when it can be seen; nobody else commits
	// meanwhile, so it must not wait, nor write to the store. See kv.Observer.
	OnCommit func(*kv.Commit)
	// Oplog, unless nil, has all that is written told in the oplog once there is one (CreateOplog), in the term that it says.
	Oplog func() (term int64)
	// Follows says that the store gets its Commits by Apply: it writes nothing of its own accord when it is opened.
	Follows bool
	Logger  *slog.Logger
	// TempDir is where index builds sort what is more than memory holds; the system's by default.
	TempDir string
	// Memory is what index builds take theirs from; nil: they take what they like.
	Memory *memory.Governor
	// Drivers makes those of the store, which closes them; nil: there are none.
	Drivers func(*Store) Drivers
}

// Store is documents, indexes and the catalogue over one engine.
type Store struct {
	engine  kv.Engine
	can     kv.Capabilities // of the engine
	options Options
	current publication.Versions[version]
	own     ownership.Ownership
	latches ownership.Latches // of own
	intents *ownership.Intents
	garbage *garbage.Collector
	changes catalogchange.Settings // of the catalogue
	drivers Drivers
	// views are those that ended and that nobody knows any more.
	views sync.Pool
	// sweeps counts the sweeps of all collections, and how often tombstones of any were deleted.
	sweeps atomic.Uint64
	// relocations counts the commits that moved records of any.
	relocations atomic.Uint64
	// seen is the latest time that the store knew when it was opened, 0 when it knew none.
	seen        int64
	expiryClock *expiryclock.Clock
	standing    standing
	logClock    oplog.Clock
	pasts       *past.Pool[PastState]
	logWatches  *logwatch.Watches
	// historyWrites counts the commits that something is kept of for their session.
	historyWrites atomic.Int64
	// imagesKept counts documents as they were before changes.
	imagesKept atomic.Int64
	unsettled  sync.WaitGroup // commits that their writers have left
	// closing ends by close, and nobody waits any more for what nobody knows of.
	closing context.Context
	close   context.CancelFunc
}

// Open reads the catalogue of the engine's store, or makes an empty one, and begins to remove what a crash left behind.
// Indexes that an older format kept otherwise, or not at all, are built first (Drivers); a store of a newer format is refused. The engine stays the caller's, who closes it after the Store.
// One that other processes write as well is refused (ownership.Of).
func Open(ctx context.Context, engine kv.Engine, o Options) (*Store, error) {
	own, err := ownership.Of(engine)
	if err != nil {
		return nil, fmt.Errorf("storage: open: %w", err)
	}
	return open(ctx, engine, own, o)
}

// open is Open with an Ownership that is given.
func open(ctx context.Context, engine kv.Engine, own ownership.Ownership, o Options) (*Store, error) {
	if o.HideExpired == nil {
		o.HideExpired = func() bool { return false }
	}
	if o.Held == nil {
		o.Held = func() string { return "" }
	}
	if o.Grace == nil {
		o.Grace = func() (int64, bool) { return 0, false }
	}
	if o.HidesUpTo == nil {
		o.HidesUpTo = func() int64 { return math.MinInt64 }
	}
	if o.OnDDL == nil {
		o.OnDDL = func(meaning.Event) {}
	}
	if o.OnDeadline == nil {
		o.OnDeadline = func(uint32, int64) {}
	}
	if o.OnReleased == nil {
		o.OnReleased = func(uint32) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	s := &Store{engine: engine, can: engine.Capabilities(), options: o, own: own, latches: own.Latches(), intents: ownership.NewIntents(), drivers: noDrivers{}}
	s.closing, s.close = context.WithCancel(context.Background())
	s.logWatches = logwatch.New(&s.logClock)
	s.pasts = past.NewPool[PastState]()
	if o.Drivers != nil {
		s.drivers = o.Drivers(s)
	}
	s.changes = catalogchange.Settings{Indexes: o.Indexes, Now: s.Now, Grace: o.Grace, Room: s.Room}
	s.expiryClock = expiryclock.New(s.Now, o.HidesUpTo, o.HideExpired)
	if !s.can.Counters {
		return nil, errors.New("storage: open: the engine's counters conflict: each two inserts into a collection would be in each other's way")
	}
	engine.Observe(observer{s})
	left, err := s.load(ctx)
	if err != nil {
		return nil, fmt.Errorf("storage: open: %w", err)
	}
	s.garbage = garbage.Start(engine, o.Logger)
	if o.Follows {
		return s, nil
	}
	s.garbage.Add(left...)
	err = s.drivers.Upgrade(ctx)
	if err == nil {
		err = s.Change(ctx, (*catalogchange.Change).Reorder)
	}
	if err != nil {
		s.close()
		s.unsettled.Wait()
		s.garbage.Stop()
		return nil, fmt.Errorf("storage: open: %w", err)
	}
	return s, nil
}

// Close waits for work in the background to stop. Every View and Txn must have ended.
func (s *Store) Close() error {
	s.close()
	s.unsettled.Wait()
	s.garbage.Stop()
	s.drivers.Close()
	s.pasts.ForgetAll()
	return nil
}

// Options are those that the store was opened with, what was left out filled in.
func (s *Store) Options() Options { return s.options }

// Now is the store's time in milliseconds since the epoch.
func (s *Store) Now() int64 { return clock.Millis(s.options.Clock) }

// CommitClock is a clock that goes on only when others know how far. So what is committed, by which they get to know it, may be of a later time.
type CommitClock interface {
	clock.Clock
	// CommitTime is the time of what is committed now; it is not before Now.
	CommitTime() time.Time
	// StandStill has nobody, here or elsewhere, get to know of a later time than it returns, until goOn is called or some time has passed.
	StandStill() (millis int64, goOn func())
}

// commitTime is the time of what is committed now.
func (s *Store) commitTime() int64 {
	if c, ok := s.options.Clock.(CommitClock); ok {
		return c.CommitTime().UnixMilli()
	}
	return s.Now()
}

// CommitKey is where the engine keeps the number of the last commit: under no other key does an engine write by itself.
func CommitKey() []byte { return layout.CommitKey() }

// RegionOf is the keys around one that are written to together: those of a record store, of an index, or of a kind.
func RegionOf(key []byte) kv.Range {
	prefix := layout.RegionPrefix(key)
	return kv.Range{Start: prefix, End: layout.After(prefix)}
}

// EngineStats is what the engine says about itself.
func (s *Store) EngineStats() kv.Stats { return s.engine.Stats() }
