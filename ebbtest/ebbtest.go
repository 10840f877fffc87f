// Package ebbtest starts a server inside a Go test: in memory, on a free port, with a clock that the test turns. It knows
// nothing of how the server works.
//
//	func TestSessionsExpire(t *testing.T) {
//		srv := ebbtest.Start(t)
//		client, err := mongo.Connect(options.Client().ApplyURI(srv.URI()))
//		…                        // make a TTL index of an hour, insert a session
//		srv.Advance(time.Hour)   // the session has expired, and is deleted
//		…
//	}
//
// The database's time is the clock's: dates on the server, the last modification of documents, deadlines, time-outs of
// cursors and sessions. Sockets live in real time, so that connections and drivers do not mind a clock that stands still.
package ebbtest

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/clock"
)

// Server is a server that ends with its test.
type Server struct {
	// Clock is the database's time. It begins at the machine's, and stands still until it is turned; Advance turns it and
	// waits for what follows from that.
	Clock *Clock

	t      testing.TB
	server *ebb.Server
	query  string // of URI
}

// Option changes how a Server starts.
type Option func(*config)

type config struct {
	start      time.Time
	replicaSet bool
}

// At makes the clock begin at start.
func At(start time.Time) Option { return func(c *config) { c.start = start } }

// ReplicaSet makes the server the primary of a replica set of one, so that it has transactions and change streams.
func ReplicaSet() Option { return func(c *config) { c.replicaSet = true } }

// clusterVariable names the placement drivers of a TiKV cluster, with commas between. Where it is set a server has its data there, in a keyspace of
// its own that stays: this is how Ebb's own tests are run over TiKV.
const clusterVariable = "EBB_TIKV_PD"

// setName is the name of that set.
const setName = "ebbtest"

// Start starts a server, which ends when the test does. What goes wrong ends the test.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	c := config{start: clock.Wall().Now().Truncate(time.Millisecond)}
	for _, o := range options {
		o(&c)
	}
	s := &Server{Clock: NewClock(c.start), t: t}
	o := ebb.Options{Port: ebb.AnyPort, Engine: ebb.InMemory, Clock: s.Clock, ScriptsInProcess: true}
	s.query = "directConnection=true"
	if pd := os.Getenv(clusterVariable); pd != "" {
		o.Engine, o.Cluster = ebb.TiKV, ebb.Cluster{PD: strings.Split(pd, ","), Keyspace: "ebbtest-" + rand.Text()}
	}
	if c.replicaSet {
		o.ReplicaSet = &ebb.ReplicaSet{Name: setName, Initiate: true}
		s.query = "replicaSet=" + setName
	}
	var err error
	if s.server, err = ebb.Open(o); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
			return // operations still use the data
		}
		if err := s.server.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// URI is the connection string for clients.
func (s *Server) URI() string { return "mongodb://" + s.server.Addr() + "/?" + s.query }

// Advance moves the clock, and returns when everything that expires by then is deleted, as a real server would have done in
// that time: it keeps to the server parameters ttlMonitorEnabled, ttlMonitorPrecise and ttlMonitorSleepSecs.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
	s.settle() // with what came before the clock moves
	s.Clock.Advance(d)
	s.settle()
}

// Step sets the clock ahead by d, or back when it is negative, as somebody does who sets a machine's clock: no time passes.
// It returns when the server has noticed. Timers go by the time that passes, so that what expires by such a clock is
// deleted after the next Advance; by a step of more than ttlMaxClockStepSecs, after one of ttlClockSettleSecs.
func (s *Server) Step(d time.Duration) {
	s.t.Helper()
	s.settle()
	s.Clock.Step(d)
	s.settle()
}

// SweepNow deletes what has expired by now, without waiting for the TTL monitor's time; unless ttlMonitorEnabled is false.
func (s *Server) SweepNow() {
	s.t.Helper()
	if err := s.server.SweepNow(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.settle()
}

func (s *Server) settle() {
	s.t.Helper()
	if err := s.server.Settle(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}
