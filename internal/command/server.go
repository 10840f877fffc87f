package command

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/audit"
	"github.com/ebbdb/ebb/internal/auth/oidc"
	"github.com/ebbdb/ebb/internal/auth/patience"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/certificate"
	"github.com/ebbdb/ebb/internal/checkpoint"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/cursor"
	"github.com/ebbdb/ebb/internal/establishment"
	"github.com/ebbdb/ebb/internal/host"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/query"
	"github.com/ebbdb/ebb/internal/replset"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/ttl"
	"github.com/ebbdb/ebb/internal/writegate"
)

// Config is what a Server is made of.
type Config struct {
	Clock clock.Clock
	// RealTime says that Clock goes by the machine's, as that of a member of a replica set does.
	RealTime bool
	Log      *slog.Logger
	// StartupLog takes what an operator should know since the start; nil is Log.
	StartupLog *slog.Logger
	// Engine is "pebble" or "inMemory"; DBPath is its folder.
	Engine, DBPath string
	// Argv and Parsed are the command line and what it was read as, for getCmdLineOpts.
	Argv   []string
	Parsed bson.Doc
	// Version is the version of MongoDB that is spoken, EbbVersion and GitVersion are Ebb's own.
	Version, EbbVersion, GitVersion string
	// Port is the one that the server listens on; 0 where it has none.
	Port int
	// Traffic says how much there is on the connections.
	Traffic func() Traffic
	// RecentLog is the newest log lines, oldest first, and how many there were in all.
	RecentLog func() (lines []string, total int)
	// StartupWarnings are the log lines of what an operator should know since the start.
	StartupWarnings func() []string
	// RotateLog begins a new log file; nil where the log is no file.
	RotateLog func() error
	// Shutdown asks the process to end. Stopping is closed when it is about to: whoever waits for news stops waiting.
	Shutdown func()
	Stopping <-chan struct{}
	// ReplicaSet is nil for a standalone.
	ReplicaSet *ReplicaSet
	// Router has clients see a router of a cluster (mongos) in the place of the replica set's member: what they may do is the same, and there are
	// several servers that they may ask.
	Router bool
	// Beside are the servers that read what this one works on; nil where there can be none.
	Beside Beside
	// Authorization: who has not logged in may do nothing, and others what they are allowed to.
	Authorization bool
	// Certificates are what TLS goes by; nil where there is none.
	Certificates *certificate.Store
	// ClusterAuth is how members show that they are such; nil where they show nothing.
	ClusterAuth *ClusterAuth
	// ClusterKeys are what members of the replica set show that they know when they log in, by one or the other, made alike: credentials as
	// of a user; none where they do not.
	ClusterKeys []bson.Doc
	// Directory is where the passwords of users of $external are; nil where there is none.
	Directory Directory
	// AccessLog takes who logs in, and who does not; nil is Log.
	AccessLog *slog.Logger
	// NetworkLog takes what clients say of themselves; nil is Log.
	NetworkLog *slog.Logger
	// Expiry tells of the TTL monitor; nil where there is none.
	Expiry Expiry
	// Tracer is told of commands that are over; nil where nobody wants to know.
	Tracer Tracer
	// Audit is the audit log; nil where there is none. AuditFailed is told of its failure where that is to end the server.
	Audit       *audit.Log
	AuditFailed func(error)
}

// Tracer keeps traces of commands.
type Tracer interface {
	// Note tells of a command, on the collection that it names, which may be "". failed is nil where it did not fail.
	Note(command, db, collection string, began time.Time, took time.Duration, stats *operation.Stats, failed error)
}

// Traffic is figures about connections and the network since the start.
type Traffic struct {
	// Current is the open connections; Available is how many more are allowed; Active is those that run an operation.
	Current, Available, Active int64
	TotalCreated, Rejected     int64
	// BytesIn and BytesOut are as they travel. Requests counts messages.
	BytesIn, BytesOut, Requests int64
	// TLS12 and TLS13 count connections over TLS by the protocol's version, SlowTLS those whose handshake took long.
	TLS12, TLS13, SlowTLS int64
	// Establishment is of those that begin, Queued among Current.
	Establishment establishment.Stats
}

// Expiry is what serverStatus asks of the TTL monitor.
type Expiry interface {
	// AppendMetrics appends the fields of metrics.ttl.
	AppendMetrics(*bson.Builder)
	// AppendBatchedDeletes appends the fields of batchedDeletes.
	AppendBatchedDeletes(*bson.Builder)
}

// Server answers commands. It owns the services that outlive one command.
type Server struct {
	Config
	Params   *parameter.Registry
	Ops      *operation.Registry
	Cursors  *cursor.Registry
	Sessions *session.Registry
	Query    *query.Engine
	Replica  *replset.Node // nil for a standalone
	Durable  Durable       // nil where there is no store
	TTL      *ttl.Monitor  // nil where there is none
	// Checkpoints are those that clients copy; nil where there are none.
	Checkpoints *checkpoint.Registry
	Users       Authority
	// Writes is entered by every operation that writes, the TTL monitor's too; fsync with lock shuts it.
	Writes writegate.Gate
	// filesHeld is how often the store's files are held as they are.
	filesHeld atomic.Int64
	// Profile is what the profiler and the slow log go by.
	Profile Profiler

	table   table
	stages  pipeline.Table
	started time.Time
	began   time.Duration // the same, as elapsed counts it
	counts  counters
	tally   tally
	usage   usage
	// queryStats is what $queryStats tells of.
	queryStats     queryStatsStore
	queryStatsRate *parameter.Parameter
	compact        autoCompaction
	cluster        clusterParameters
	history        ttlHistory
	open           connections
	hellos         awaitedHellos
	// builders numbers those who build indexes.
	builders builders
	diskUse  *parameter.Parameter
	// requireAPI says whether clients have to say a version of the stable API.
	requireAPI *parameter.Parameter
	// roleAccess says whether expressions may ask for the roles of their user.
	roleAccess *parameter.Parameter
	machine    sync.Once
	host       host.Machine
	// standby is set before anybody asks, where there is no Replica.
	standby string
	// processID names this Server, where it is a standalone in topologyVersion, too; topology is what a member of a replica set has there.
	processID  [12]byte
	topology   *replset.Topology
	ending     chan struct{}           // closed when the Server is about to give way to another
	noted      uint64                  // the last commit of which NoteGroup has looked at the configuration
	elected    atomic.Pointer[elected] // nil: it was not
	isEmpty    bool                    // a member that follows, and has not got its first data
	reaping    chan struct{}           // full while sessions are reaped
	truncation truncation
	purge      purge

	altering chan struct{} // full while somebody changes what is set for the server as a whole (Op.alter)

	// defaults is nil where nobody has set any, and always on a standalone.
	defaults atomic.Pointer[concernDefaults]

	// writesBlocked is nil unless the writes of users are.
	writesBlocked atomic.Pointer[writeBlock]

	// patience has logins wait after many have failed; decoySecret is what credentials of users who are not there are made of.
	patience    patience.Register
	logins      loginCounts
	decoySecret [32]byte
	// issuers are those whose tokens are taken; nil where none are.
	issuers *oidc.Issuers
	// hashing is full while as many passwords are hashed as may be at once.
	hashing chan struct{}

	// readsBeside says that another server works on the data, and this one reads (ReadBeside).
	readsBeside bool

	// failPoints is nil unless the server was started with enableTestCommands.
	failPoints *FailPoints

	// mapReduces counts them, for the warning that they are deprecated.
	mapReduces atomic.Int64

	// shutDown says that the audit log knows of the server's end.
	shutDown atomic.Bool

	stopped atomic.Bool
	stop    context.CancelFunc
	done    sync.WaitGroup
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func (s *Server) isStopped() bool { return s.stopped.Load() }
