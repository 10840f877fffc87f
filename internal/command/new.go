package command

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"time"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/checkpoint"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/cursor"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/query"
	"github.com/ebbdb/ebb/internal/replset"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/ttl"
)

// cleanEvery is how often cursors and sessions that nobody uses any more are looked for.
const cleanEvery = 10 * time.Second

// Services are what a Server works with and others made.
type Services struct {
	Params  *parameter.Registry
	Ops     *operation.Registry
	Cursors *cursor.Registry
	Query   *query.Engine
	// Durable is what Query commits to; nil where there is no store.
	Durable Durable
	// TTL is the monitor; nil where there is none.
	TTL *ttl.Monitor
	// Checkpoints are those that clients copy; nil where there are none.
	Checkpoints *checkpoint.Registry
	// FailPoints are those of AddFailPoints; nil for none.
	FailPoints *FailPoints
}

// New returns a Server that answers. Close ends it.
func New(c Config, s Services) *Server {
	if c.StartupLog == nil {
		c.StartupLog = c.Log
	}
	if c.NetworkLog == nil {
		c.NetworkLog = c.Log
	}
	if c.AccessLog == nil {
		c.AccessLog = c.Log
	}
	srv := &Server{Config: c, Params: s.Params, Ops: s.Ops, Cursors: s.Cursors, Query: s.Query, Durable: s.Durable, TTL: s.TTL, Checkpoints: s.Checkpoints, table: commands(), stages: pipeline.NewTable(), reaping: make(chan struct{}, 1), altering: make(chan struct{}, 1), hashing: make(chan struct{}, maxHashing), ending: make(chan struct{}), started: c.Clock.Now(), began: clock.Monotonic(c.Clock)}
	srv.table["setParameter"].Known = srv.knowsParameter
	users := auth.New(s.Query)
	users.Warn = func(why error) {
		srv.AccessLog.Warn("A stored role cannot be read, and allows nothing", "error", serverlog.Client(why.Error()))
	}
	srv.Users = users
	srv.Sessions = session.NewRegistry(c.Clock, func(ids map[string]bool) {
		srv.Cursors.KillWhere(func(c *cursor.Cursor) bool { return ids[c.LSID] })
	})
	srv.Sessions.Over = srv.logTransaction
	srv.diskUse = s.Params.Lookup("allowDiskUseByDefault")
	srv.requireAPI = s.Params.Lookup(requireAPIName)
	srv.roleAccess = s.Params.Lookup(roleAccessName)
	srv.queryStatsRate = s.Params.Lookup(queryStatsRateName)
	s.Query.Server = srv
	if srv.Router {
		srv.table.add(routerCommands())
	}
	if srv.failPoints = s.FailPoints; srv.failPoints != nil {
		srv.table.add(testCommands())
	}
	if p := s.Params.Lookup("notablescan"); p != nil {
		s.Query.NoTableScan = func() bool { return p.Get().Bool() }
	}
	_, _ = rand.Read(srv.processID[:]) // never fails
	_, _ = rand.Read(srv.decoySecret[:])
	ctx, stop := context.WithCancel(context.Background())
	srv.stop = stop
	srv.done.Go(func() {
		srv.chore(ctx, cleanEvery, "Cursors and sessions that nobody uses could not be ended", unfailing(srv.endIdle))
	})
	if srv.issuers = srv.newIssuers(); srv.issuers != nil {
		srv.done.Go(func() { srv.issuers.Run(ctx) })
	}
	if c.ReplicaSet != nil {
		if c.ReplicaSet.Group == nil {
			c.ReplicaSet.Group = noGroup{}
		}
		if srv.topology = c.ReplicaSet.Topology; srv.topology == nil {
			srv.topology = replset.NewTopology()
		}
		srv.truncation.minHours.Store(math.Float64bits(c.ReplicaSet.OplogMinHours))
		srv.Replica = replset.NewNode(c.ReplicaSet.Name, c.Clock, replicaStorage{srv}, srv.topology)
		srv.Replica.OnChange = srv.wakeSweep
	}
	return srv
}

// JoinReplicaSet has a member of a replica set be what it was when it ended, and be elected whenever it may be; or, in a set whose other
// members have elected it in a term, be the primary. term is 0 where there are none.
func (s *Server) JoinReplicaSet(ctx context.Context, term int64) error {
	if err := s.restoreReplica(ctx); err != nil {
		return fmt.Errorf("read the replica set's configuration: %w", err)
	}
	if err := s.loadDefaults(ctx); err != nil {
		return fmt.Errorf("read the default read and write concern: %w", err)
	}
	if err := s.loadWriteBlock(ctx); err != nil {
		return fmt.Errorf("read whether writes are blocked: %w", err)
	}
	elect := s.Replica.Elect
	if term != 0 {
		elect = func(ctx context.Context) error { return s.Replica.Lead(ctx, term) }
	}
	if err := elect(ctx); err != nil {
		return fmt.Errorf("elect the primary: %w", err)
	}
	running, stop := context.WithCancel(context.Background())
	for _, c := range []struct {
		every  time.Duration
		failed string
		round  func(context.Context) error
	}{
		{time.Second, "Transactions that nobody goes on with could not be aborted", unfailing(s.abortOldTransactions)},
		{reapEvery, "Sessions could not be reaped", s.unlocked(s.reap)},
		{truncateEvery, "The oplog could not be truncated", s.unlocked(s.truncateOplog)},
		{expireImagesEvery, "Images of documents could not be deleted", s.unlocked(s.dropImages)},
	} {
		s.done.Go(func() { s.chore(running, c.every, c.failed, c.round) })
	}
	if term != 0 {
		s.done.Go(func() { s.writeNoops(running) })
		s.stopToo(stop)
		return nil
	}
	s.done.Go(func() {
		s.Replica.Run(running, func(err error) { s.Log.Error("The election failed", "error", err.Error()) })
	})
	s.stopToo(stop)
	return nil
}

// stopToo has Close stop something more.
func (s *Server) stopToo(stop func()) {
	before := s.stop
	s.stop = func() { before(); stop() }
}

// abortOldTransactions ends those that nobody goes on with.
func (s *Server) abortOldTransactions() {
	s.Sessions.AbortOld(s.Clock.Now(), s.stopper(mongoerr.New(mongoerr.TransactionExceededLifetimeLimitSeconds,
		"operation was interrupted because the transaction exceeded the configured 'transactionLifetimeLimitSeconds'")))
}

// stopper stops operations for the reason err.
func (s *Server) stopper(err error) func(id int64) {
	return func(id int64) { s.Ops.KillFor(id, err) }
}

// endIdle ends cursors and sessions that are idle too long.
func (s *Server) endIdle() {
	now := s.Clock.Now()
	s.Ops.Each(func(o *operation.Operation) { s.Sessions.Busy(o.Session, now) })
	lives := s.Sessions.Lives
	if s.Params.Lookup(endsSessionCursors).Get().Bool() {
		lives = func(string) bool { return false }
	}
	s.Cursors.Expire(time.Duration(s.setting("cursorTimeoutMillis"))*time.Millisecond, lives)
	s.Sessions.Expire(time.Duration(s.sessionMinutes()) * time.Minute)
	if s.Checkpoints != nil {
		s.Checkpoints.Expire()
	}
}

// Close ends what runs in the background and all cursors. Commands that still come are answered with errors.
func (s *Server) Close() {
	s.stopped.Store(true)
	s.stop()
	for s.releaseFiles() { // or nobody would ever make a table again
	}
	s.done.Wait()
	s.Sessions.AbortAll(s.stopper(mongoerr.New(mongoerr.InterruptedAtShutdown, "interrupted at shutdown")))
	s.Cursors.End()
	if s.Checkpoints != nil {
		s.Checkpoints.Close()
	}
}
