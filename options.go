package ebb

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/auth/ldap"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/host"
	"github.com/ebbdb/ebb/internal/replset"
	"github.com/ebbdb/ebb/internal/standin"
)

// Version is Ebb's own version.
const Version = "0.1.0"

// MongoVersion is the version of MongoDB that Ebb speaks as.
const MongoVersion = "8.2.4"

// Storage engines, for Options.Engine.
const (
	// Pebble keeps the data in Options.DBPath.
	Pebble = config.EnginePebble
	// InMemory keeps it in memory, and touches no disk.
	InMemory = config.EngineInMemory
	// TiKV keeps it in a TiKV cluster (Options.TiKV), and nothing on this machine.
	TiKV = config.EngineTiKV
)

// Compressors of what is stored, for Options.BlockCompressor.
const (
	Snappy       = "snappy"
	Zstd         = "zstd"
	Uncompressed = "none"
)

// LDAP is how a directory of users is reached, and what is asked of it.
type LDAP = ldap.Options

// Options say what server to open. The zero value is mongod's defaults: port 27017 on 127.0.0.1, the data in ./data.
type Options struct {
	// Addresses are IP addresses, host names, "*", or absolute paths of Unix domain sockets; none means 127.0.0.1.
	Addresses []string
	// Port is the port to listen on. 0 is 27017; AnyPort takes a free one, which Addr then says.
	Port int
	// TLS has the server speak it; nil: it does not.
	TLS *TLS
	// Authorization has clients log in, and lets them do what they are allowed to.
	Authorization bool
	// KeyFile is the path of a file with the key by which members of a replica set know one another; "" is none. Only its owner may
	// have access to it.
	KeyFile string
	// ClusterX509 lets other members of the cluster show by their certificates that they are such, and do everything then.
	ClusterX509 bool
	// ClusterSendsKey has the server itself show the key of KeyFile, as long as others may not take its certificate yet.
	ClusterSendsKey bool
	// ClusterTakesKey has it take a key as well, as where there is a KeyFile; so it is called sendX509 with none, too.
	ClusterTakesKey bool
	// LDAP is the directory that knows the passwords of users of $external; nil: there is none.
	LDAP *LDAP
	// Audit has it write an audit log; nil: it does not.
	Audit *Audit
	// Console has the server show itself to browsers; nil: it does not.
	Console *Console
	// UnixSocket has it listen on a Unix domain socket that tells its port; nil: it does not.
	UnixSocket *UnixSocket
	// Metrics is where the server tells Prometheus how it is doing; nil: nowhere.
	Metrics *Metrics
	// MaxConns bounds the connections at one time; 0 is what the process may have of file descriptors.
	MaxConns int
	// ConnsOverride are those who come in although MaxConns connections are there: addresses, ranges of them in CIDR notation, and paths of Unix
	// domain sockets.
	ConnsOverride []string
	// Compressors are the names offered to clients; nil is snappy, zstd and zlib.
	Compressors []string

	// DBPath is the directory of the data; "" is ./data.
	DBPath string
	// Engine is Pebble, InMemory or TiKV; "" is Pebble.
	Engine string
	// Cluster is the one that has the data where Engine is TiKV. Without a ReplicaSet any number of servers may be on its keyspace: one at a time works
	// there, the others read there and hand the rest on to it, and clients see routers.
	Cluster Cluster
	// CacheBytes is how much memory data is kept in; 0 is a quarter of what the machine or the container has.
	CacheBytes int64
	// BlockCompressor is how what is stored from now on is compressed: Snappy, quickly; Zstd, to about three quarters of that at several times the
	// processor time, at writing and at each reading from the disk; Uncompressed. "" is Snappy. It is Pebble's and InMemory's alone.
	BlockCompressor string
	// StartWithDamagedLog opens a store whose log is damaged as it was before the first write that is lost. Without it such a store
	// is refused.
	StartWithDamagedLog bool
	// MemoryBytes is how much memory operations, cursors, messages and index builds may take together, beside the cache; 0 is
	// most of what the cache leaves of the memory.
	MemoryBytes int64

	// NoJavaScript refuses $where, $function, $accumulator and mapReduce.
	NoJavaScript bool
	// ScriptCommand is a program and its arguments that runs users' JavaScript in processes of its own, so that no script can
	// harm this one: it must hand the argument that it gets in addition to WorkScripts.
	ScriptCommand []string
	// ScriptsInProcess runs JavaScript in this process where there is no ScriptCommand. A hostile script can end it. Without
	// either there is no JavaScript.
	ScriptsInProcess bool

	// MinFreeBytes must be free on the disk for data to be added, and ReserveBytes are set aside for letting it go when the disk
	// is full; 0 is 512 and 256 MiB, less on a small disk, and what is negative is none.
	MinFreeBytes, ReserveBytes int64

	// ReplicaSet makes the server a member of a replica set; nil: it stands alone.
	ReplicaSet *ReplicaSet

	// Parameters are server parameters by name, with their values in words, as --setParameter sets them.
	Parameters map[string]string
	// Argv and Parsed are what getCmdLineOpts answers; Parsed is a BSON document, nil an empty one.
	Argv   []string
	Parsed []byte

	// Quiet leaves connections that come and go out of the log.
	Quiet bool
	// Log takes the server's log; nil throws it away. Each event has the attribute c, its component as mongod calls it (NETWORK,
	// STORAGE, INDEX, TTL …), and what it tells beside its message in the group attr. The command getLog shows the last of them
	// either way.
	Log *slog.Logger
	// RotateLog begins a new log file for logRotate; nil where the log is no file.
	RotateLog func() error
	// OnFailure is told once, on a goroutine of its own, when the store can no longer keep what it promised, or when the audit log cannot be
	// written and is to end the server then: see ErrStoreFailed and ErrAuditFailed.
	// Serve returns then by itself, when the operations under way have ended; whoever wants to end the process before does it here.
	OnFailure func(error)
	// Profiling is what the profiler and the log of slow operations go by at first; nil is what mongod goes by.
	Profiling *Profiling
	// Clock is the database's time; nil is the machine's. Sockets and disks live in the machine's either way.
	Clock Clock

	// Machine is for tests of Ebb itself.
	Machine *standin.Machine

	memTableBytes int64
	seams         *seams
	// shares says that there may be other servers on the keyspace, and the replica set is the server's own affair.
	shares bool
}

// disk is where the store is; nil is the machine's disk.
func (o *Options) disk() vfs.FS {
	if o.Machine == nil {
		return nil
	}
	return o.Machine.Disk
}

// listener is where clients come from; nil: from the addresses.
func (o *Options) listener() net.Listener {
	if o.Machine == nil {
		return nil
	}
	return o.Machine.Listener
}

// Cluster is a TiKV cluster, and where in it the data is.
type Cluster = config.TiKV

// Console is where browsers find the server's console. Where the port is taken there is none, and the log says so.
type Console struct {
	// Addresses are IP addresses or host names; none means 127.0.0.1. Where others reach them, TLS and Authorization are needed.
	Addresses []string
	// Port is the port to listen on; AnyPort takes a free one, which ConsoleURL then says.
	Port int
}

// Profiling is what is profiled, and what counts as slow.
type Profiling struct {
	// Level is 0 for nothing, 1 for what is slow, 2 for everything, in each database that the command profile says nothing of.
	Level int32
	// SlowMillis is from how many milliseconds on an operation is slow, and SampleRate which part of those is told of, 0 to 1.
	SlowMillis int32
	SampleRate float64
}

// ReplicaSet is what a member has to know of its set. A set of one gives transactions, retryable writes and change streams.
type ReplicaSet struct {
	// Name is the set's.
	Name string
	// Initiate begins the set with this server alone, where none has begun; otherwise the command replSetInitiate does.
	Initiate bool
	// Advertise is the address (host:port) by which clients reach this server; "" is one made of where it listens.
	Advertise string
	// OplogBytes is how large the oplog may be; 0 is 5 % of what is free on the disk, 990 MiB at least and 50 GiB at most; with InMemory
	// of the memory, and 50 MiB.
	OplogBytes int64
	// OplogMinHours is how many hours an entry of the oplog is kept at least, however large the oplog is then; 0 is no such time.
	OplogMinHours float64
}

// Metrics is where figures for Prometheus and the health of the server are told, over HTTP, or HTTPS where the server speaks TLS.
type Metrics struct {
	// Addresses are IP addresses, host names or "*"; none means 127.0.0.1.
	Addresses []string
	// Port is the port to listen on; AnyPort takes a free one, which MetricsAddr then says.
	Port int
}

// AnyPort is the Port that stands for any free one.
const AnyPort = -1

func (o Options) withDefaults() Options {
	if len(o.Addresses) == 0 {
		o.Addresses = []string{"127.0.0.1"}
	}
	switch o.Port {
	case 0:
		o.Port = config.DefaultPort
	case AnyPort:
		o.Port = 0
	}
	defaults := config.Default()
	if o.MaxConns == 0 {
		o.MaxConns = connectionLimit(fileLimit())
	}
	if o.Compressors == nil {
		o.Compressors = defaults.Net.Compressors
	}
	if o.DBPath == "" {
		o.DBPath = defaults.Storage.DBPath
	}
	if o.Engine == "" {
		o.Engine = defaults.Storage.Engine
	}
	if o.Engine == TiKV && o.ReplicaSet == nil {
		o.shares, o.ReplicaSet = true, &ReplicaSet{Name: sharedSet, Initiate: true, Advertise: sharedHost}
	}
	limit := host.Look().MemoryLimit
	if o.CacheBytes == 0 {
		o.CacheBytes = cacheFor(limit)
	}
	if o.MemoryBytes == 0 {
		o.MemoryBytes = memoryFor(limit, debug.SetMemoryLimit(-1), o.CacheBytes, storeOutside)
	}
	o.memTableBytes = memTableFor(limit, o.CacheBytes)
	if o.Parsed == nil {
		o.Parsed = bson.EmptyDoc
	}
	return o
}

// check refuses what would be taken for something else.
func (o Options) check() error {
	if _, known := compressionOf(o.BlockCompressor); !known {
		return fmt.Errorf("there is no block compressor %q, but %s, %s and %s", o.BlockCompressor, Snappy, Zstd, Uncompressed)
	}
	if o.Engine != Pebble && o.Engine != InMemory && o.Engine != TiKV {
		return fmt.Errorf("there is no storage engine %q, but %s, %s and %s", o.Engine, Pebble, InMemory, TiKV)
	}
	if o.ReplicaSet != nil && o.ReplicaSet.Name == "" {
		return errors.New("a replica set needs a name")
	}
	if o.ReplicaSet != nil && o.ReplicaSet.Advertise != "" {
		if _, _, err := net.SplitHostPort(o.ReplicaSet.Advertise); err != nil {
			return fmt.Errorf("the address that a replica set's server advertises is host:port: %w", err)
		}
		if err := replset.CheckHost(o.ReplicaSet.Advertise); err != nil {
			return err
		}
	}
	for name, n := range map[string]int64{"MaxConns": int64(o.MaxConns), "CacheBytes": o.CacheBytes, "MemoryBytes": o.MemoryBytes} {
		if n < 0 {
			return fmt.Errorf("the option %s is %d, and cannot be negative", name, n)
		}
	}
	if p := o.Profiling; p != nil && (p.Level < 0 || p.Level > 2 || !(p.SampleRate >= 0 && p.SampleRate <= 1)) {
		return fmt.Errorf("the profiler has levels from 0 to 2 and a sample rate from 0 to 1, and not %d and %g", p.Level, p.SampleRate)
	}
	if err := bson.Validate(o.Parsed, bson.MaxDepth); err != nil {
		return fmt.Errorf("the option Parsed is no document: %w", err)
	}
	return nil
}

// The cache is cacheShare of the memory, but at least minCacheBytes. Of that, rowCacheShare keeps what was read or written lately,
// up to maxRowCacheBytes, since the heap may grow to twice as much before it is collected.
const (
	cacheShare       = 4
	minCacheBytes    = 64 << 20
	rowCacheShare    = 4
	maxRowCacheBytes = 512 << 20
)

// cacheFor is the cache of a machine with so many bytes of memory; 0 is a machine that does not say.
func cacheFor(memory int64) int64 { return max(memory/cacheShare, minCacheBytes) }

// caches shares the memory between blocks of tables and single values.
func (o Options) caches() (blocks, rows int64) { return shareCache(o.CacheBytes) }

func shareCache(bytes int64) (blocks, rows int64) {
	rows = min(bytes/rowCacheShare, maxRowCacheBytes)
	return bytes - rows, rows
}
