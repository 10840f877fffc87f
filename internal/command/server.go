package command

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/cursor"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/session"
)

// Config is what a Server is made of.
type Config struct {
	Clock clock.Clock
	Log   *slog.Logger
	// Engine is "pebble" or "inMemory"; DBPath is its folder.
	Engine, DBPath string
	// Argv and Parsed are the command line and what it was read as, for getCmdLineOpts.
	Argv   []string
	Parsed bson.Doc
	// Connections says how many connections are open now, may still be opened, and were ever opened.
	Connections func() (current, available, created int64)
	// Network says how many bytes came in, went out, and how many requests there were.
	Network func() (in, out, requests int64)
	// RecentLog is the newest log lines, oldest first.
	RecentLog func() []string
	// Shutdown asks the process to end.
	Shutdown func()
}

// Server answers commands. It owns the services that outlive one command.
type Server struct {
	Config
	Params   *parameter.Registry
	Ops      *operation.Registry
	Cursors  *cursor.Registry
	Sessions *session.Registry

	table   table
	started time.Time
	counts  counters
	// processID names this run of the server in topologyVersion.
	processID [12]byte

	stopped atomic.Bool
	stop    context.CancelFunc
	done    sync.WaitGroup
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func (s *Server) isStopped() bool { return s.stopped.Load() }
