package ebb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/audit"
	"github.com/ebbdb/ebb/internal/auth/ldap"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/checkpoint"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/cursor"
	"github.com/ebbdb/ebb/internal/dbpath"
	"github.com/ebbdb/ebb/internal/handover"
	"github.com/ebbdb/ebb/internal/host"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/javascript"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/inspect"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/member"
	"github.com/ebbdb/ebb/internal/metrics"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/query"
	"github.com/ebbdb/ebb/internal/server"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/indexddl"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/trace"
	"github.com/ebbdb/ebb/internal/ttl"
)

// foundation is what stays while the server is open: the engine, the parameters, what runs scripts.
type foundation struct {
	keys    []bson.Doc                      // by which members log in here; none: there is no key file
	secrets []string                        // by one of which this one logs in at others
	engine  atomic.Pointer[pebblekv.Engine] // nil: it is tikv, if there is one
	tikv    atomic.Pointer[tikvkv.Engine]
	params  *parameter.Registry
	expiry  *ttl.Parameters
	scripts *javascript.Engine // nil: there is no JavaScript
	temp    string
	set     *command.ReplicaSet
	audit   *audit.Log    // or nil
	tracer  *trace.Tracer // nil: nobody wants traces
	// failPoints is nil for a server that was started without test commands.
	failPoints *command.FailPoints
}

// database is what stands behind the network: storage, expiry and commands. In a member of a replica set there is one after the other: each has
// one role as long as it lives, so that nothing in memory is left of another one.
type database struct {
	*foundation
	handover.Users
	role     member.Role
	clock    clock.Clock
	told     *told // see origin
	store    *storage.Store
	commands *command.Server
	monitor  *ttl.Monitor
	metrics  *metrics.Handler
	seams    *seams
}

// The store's and the spill files' places in the data directory.
const (
	storeDir = "store"
	tempDir  = "tmp"
)

// openAll opens what the server answers by.
func (s *Server) openAll() (err error) {
	if s.opts.ReplicaSet != nil && (s.opts.Engine == InMemory || s.opts.Engine == TiKV) { // where no log of others is
		s.memoryFiles = vfs.NewMem()
	}
	if s.foundation, err = openFoundation(s); err != nil {
		return err
	}
	if s.opts.sharesKeyspace() {
		return s.share()
	}
	if s.group != nil {
		err = s.group.Load()
	} else if files, dir := s.files(); s.dir != nil && member.IsMember(files, dir, s.log) {
		err = member.ErrNotAlone
	}
	if err != nil {
		return err
	}
	opened, err := s.openStore()
	if err != nil {
		return err
	}
	if s.foundation.temp, err = spillDir(s); err != nil {
		return err
	}
	role, c := member.Role{}, s.clock
	if s.group != nil {
		role, c = s.group.First()
	}
	if role.Kind == member.Follower {
		s.tellCopiedMember()
	}
	if e := s.foundation.tikv.Load(); e != nil {
		c = s.clusterTime(e)
	}
	d, err := openDatabase(s, origin{engine: s.foundation.store(), role: role, clock: c}, opened)
	if err != nil {
		return err
	}
	s.serving.Put(d)
	if role.Kind == member.Follower && !d.expiry.Hold.Pending() {
		s.atHome()
	}
	if s.group != nil {
		return s.group.Start()
	}
	return nil
}

// openFoundation is what all databases of a server stand on.
func openFoundation(s *Server) (f *foundation, err error) {
	f = &foundation{}
	if f.keys, f.secrets, err = clusterKeys(s.opts.KeyFile); err != nil {
		return f, err
	}
	f.scripts = scriptEngine(s.opts, s.log, s.memory)
	s.memory.Watch(func() int64 { return host.Resident() + f.scripts.Resident() }, host.Look().MemoryLimit)
	f.params = parameter.NewRegistry(func(name string) {
		if d := s.serving.Current(); d != nil {
			d.monitor.ParameterChanged(name)
		}
	})
	command.AddParameters(f.params, s.log.SetVerbosity)
	command.AddRedaction(f.params, s.log.SetRedaction)
	s.establishment.AddParameters(f.params)
	f.expiry = ttl.NewParameters(f.params)
	traces := trace.NewParameters(f.params)
	s.transport.params = command.AddTransportParameters(f.params, &s.transport.mode, s.transport.certificates)
	command.AddClusterAuth(f.params, s.transport.clusterAuth, &s.transport.mode)
	for _, name := range slices.Sorted(maps.Keys(s.opts.Parameters)) {
		if _, err := f.params.Set(name, bson.String(s.opts.Parameters[name]), parameter.Startup); err != nil {
			return f, fmt.Errorf("--setParameter %s: %w", name, err)
		}
	}
	if err := command.SettleLogin(f.params, s.opts.Parameters, s.transport.clusterAuth); err != nil {
		return f, err
	}
	if f.failPoints = command.AddFailPoints(f.params, s.clock); f.failPoints != nil {
		s.clock = f.failPoints.Clock
	}
	if err = f.readHold(s); err != nil {
		return f, err
	}
	if f.audit, err = s.openAudit(); err != nil {
		return f, err
	}
	if f.tracer, err = trace.Open(traces, Version, s.network.Addr().String(), s.log.For("NETWORK")); err != nil {
		return f, err
	}
	f.set = s.replicaSet()
	return f, nil
}

// hidesUpTo is up to when what has expired stays hidden while the clock is behind that (storage.Options). The time of a set with others does not go
// back, and where it stands still nothing more is hidden, since clients are told that it does. What is done again counts as modified when it was, to the
// millisecond, though what was committed before it may be younger.
func (d *database) hidesUpTo() func() int64 {
	if _, again := d.clock.(clock.Recorded); again || d.role.Kind != member.Alone {
		return nil
	}
	return d.monitor.HidesUpTo
}

// follows says whether others write what the database has.
func (d *database) follows() bool {
	return d.role.Kind == member.Follower || d.role.Kind == member.Beside
}

// store is the engine, nil before it is open.
func (f *foundation) store() kv.Engine {
	switch e := f.engine.Load(); {
	case e != nil:
		return e
	case f.tikv.Load() != nil:
		return f.tikv.Load()
	}
	return nil
}

func (f *foundation) close() error {
	if f == nil {
		return nil
	}
	f.scripts.Close()
	var err error
	if e := f.store(); e != nil {
		err = e.Close()
	}
	if f.audit != nil {
		err = errors.Join(err, f.audit.Close())
	}
	if f.tracer != nil {
		f.tracer.Close()
	}
	return err
}

// origin is what a database is opened on, beside the foundation.
type origin struct {
	engine kv.Engine
	role   member.Role
	clock  clock.Clock
	// told is what is known of the server that works on the data, where that is another one; nil: it is this one.
	told *told
}

// openDatabase is where storage, expiry and commands come together. opened is called when what the store has is known to be sound.
func openDatabase(s *Server, from origin, opened func()) (d *database, err error) {
	r, c := from.role, from.clock
	if s.opts.seams != nil && s.opts.seams.clock != nil {
		c = s.opts.seams.clock(r, c)
	}
	d = &database{foundation: s.foundation, role: r, clock: c, told: from.told, seams: s.opts.seams}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
			d = nil
		}
	}()
	filters := match.NewParser()
	ops, cursors := operation.NewRegistry(d.clock), cursor.NewRegistry(d.clock, s.memory)
	d.monitor = ttl.New(ttl.Options{Clock: d.clock, Params: d.expiry, Ops: ops, Log: s.log.For("TTL"),
		Standby: func() string {
			if d.commands == nil { // nobody lets anything go before it is there
				return "the server starts"
			}
			return d.commands.Standby()
		}})
	var engine *query.Engine
	var ddl *indexddl.DDL
	var term func() int64
	if d.set != nil {
		term = d.set.Term.Load
	}
	options := storage.Options{
		Clock: d.clock, Indexes: index.NewParser(filters), HideExpired: d.expiry.HideExpired.Get, Held: d.monitor.Hold, Grace: d.expiry.Grace,
		OnDDL: func(e meaning.Event) {
			endCursors(cursors, e)
			d.monitor.OnDDL(e)
			if engine != nil { // nobody changes anything before it is there
				engine.NoteDDL(e)
			}
		},
		OnDeadline: d.monitor.OnDeadline, OnReleased: d.monitor.OnReleased, HidesUpTo: d.hidesUpTo(),
		Logger:  s.log.For("STORAGE"),
		TempDir: d.temp,
		Memory:  s.memory,
		Oplog:   term,
		Follows: d.follows(),

		Witnessed: command.IsAuthCollection,
	}
	if from.told != nil {
		from.told.asOptions(&options)
	}
	if d.store, ddl, err = indexddl.Open(context.Background(), from.engine, options); err != nil {
		return d, err
	}
	opened()
	engine = query.New(d.store, ddl, filters)
	if !d.follows() {
		if err = d.ensureSystem(context.Background(), engine, d.store.Now()); err != nil {
			return d, err
		}
		if err = d.dropTemporary(context.Background(), s.log.For("STORAGE")); err != nil {
			return d, err
		}
	}
	engine.TempDir, engine.Memory = d.temp, s.memory
	engine.Scripts = d.scripts
	config := d.config(s)
	config.ClusterKeys = d.keys
	if s.opts.LDAP != nil {
		if config.Directory, err = ldap.New(*s.opts.LDAP); err != nil {
			return d, err
		}
	}
	config.Audit, config.AuditFailed = d.audit, s.failAudit
	if d.tracer != nil {
		config.Tracer = d.tracer
	}
	config.ReplicaSet, config.Router = d.set, s.opts.sharesKeyspace()
	if s.sharing != nil && from.told == nil {
		config.Beside = &s.sharing.heard
	}
	d.commands = command.New(config, command.Services{Params: d.params, Ops: ops, Cursors: cursors, Query: engine, Durable: d.store, TTL: d.monitor,
		Checkpoints: checkpoint.NewRegistry(d.clock, from.engine, s.log.For("STORAGE")), FailPoints: d.failPoints})
	d.metrics = s.metricsHandler(d)
	if p := s.opts.Profiling; p != nil {
		d.commands.Profile.Begin(p.Level, p.SlowMillis, p.SampleRate)
	}
	if err = d.commands.LoadStoredSettings(context.Background()); err != nil {
		return d, err
	}
	d.monitor.Connect(d.store, ddl.Sweeper, command.SweepGate{Server: d.commands}, d.commands)
	switch r.Kind {
	case member.Follower:
		return d, d.commands.FollowReplicaSet(context.Background())
	case member.Beside:
		return d, d.commands.ReadBeside(context.Background())
	}
	if err = d.expiry.Hold.Begin(); err != nil {
		return d, err
	}
	if err = d.noteHold(s); err != nil {
		return d, err
	}
	if err = d.joinReplicaSet(s); err != nil {
		return d, err
	}
	d.monitor.Start()
	d.commands.TellStartup()
	d.commands.KeepHistory()
	return d, nil
}

// openStore opens the engine that the server is to have. opened is called when what it has is known to be sound.
func (s *Server) openStore() (opened func(), err error) {
	f := s.foundation
	if s.opts.Engine == TiKV {
		tikv, err := s.openTiKV(context.Background(), s.fail, nil)
		if err != nil {
			return nil, err
		}
		f.tikv.Store(tikv)
		return func() {}, nil
	}
	e, opened, err := s.openEngine()
	if err != nil {
		return nil, err
	}
	f.engine.Store(e)
	return opened, nil
}

// openEngine opens the store on disk or in memory. It removes nothing before letRemove is called: what it takes for obsolete is then known to be.
func (s *Server) openEngine() (e *pebblekv.Engine, letRemove func(), err error) {
	o := s.engineOptions()
	switch {
	case s.memoryFiles != nil:
		e, err = pebblekv.Open(storeDir, o)
	case s.dir == nil:
		e, err = pebblekv.OpenMemory(o)
	case s.opts.disk() != nil:
		e, err = pebblekv.Open(storeDir, o)
	default:
		if err = checkStoreDir(s.dir.Path()); err != nil {
			break
		}
		e, err = pebblekv.Open(filepath.Join(s.dir.Path(), storeDir), o)
	}
	if err != nil {
		return nil, nil, err
	}
	return e, e.LetRemove, nil
}

func (s *Server) engineOptions() pebblekv.Options {
	o := pebblekv.Options{Logger: s.log.For("STORAGE"), Clock: clock.Wall(), // syncs are about real disks
		OnFailure: s.fail, CommitKey: storage.CommitKey(), RegionOf: storage.RegionOf, StartWithDamagedLog: s.opts.StartWithDamagedLog, HoldRemovals: true}
	o.CacheBytes, o.RowCacheBytes = s.opts.caches()
	o.Compression, _ = compressionOf(s.opts.BlockCompressor)
	o.MemTableBytes, o.MaxOpenFiles = s.opts.memTableBytes, tableLimit(fileLimit())
	switch {
	case s.memoryFiles != nil:
		o.FS = s.memoryFiles
	case s.opts.disk() != nil:
		o.FS = s.opts.disk()
	}
	o.Watch = s.watch
	o.MinFreeBytes, o.ReserveBytes = s.opts.MinFreeBytes, s.opts.ReserveBytes
	return o
}

// compressionOf is what the store calls a block compressor; known is false where there is none of the name.
func compressionOf(name string) (c pebblekv.Compression, known bool) {
	switch name {
	case "", Snappy:
		return pebblekv.CompressForSpeed, true
	case Zstd:
		return pebblekv.CompressForSpace, true
	case Uncompressed:
		return pebblekv.CompressNothing, true
	}
	return 0, false
}

// checkStoreDir refuses a directory in which a store was and is no more: the folder for spill files, and the note which directory it is,
// are made when it is open. A start that was cut off before has made neither.
func checkStoreDir(path string) error {
	sign := filepath.Join(path, tempDir)
	if _, err := os.Stat(sign); errors.Is(err, fs.ErrNotExist) {
		if sign = dbpath.OriginFile(path); sign == "" {
			return nil
		}
	}
	store := filepath.Join(path, storeDir)
	names, err := os.ReadDir(store)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is missing: there was a store, as %s says. To begin an empty one, empty the directory", store, sign)
	}
	if err != nil || slices.ContainsFunc(names, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), inspect.MarkerPrefix) }) {
		return err
	}
	if report, err := inspect.Look(vfs.Default, store); err != nil || !report.Fresh { // what is damaged is told by who opens it
		return err
	}
	return fmt.Errorf("%s holds no store any more: there was one, as %s says. To begin an empty one, empty the directory", store, sign)
}

// spillDir is an empty directory for stages and index builds that need more room than memory gives.
func spillDir(s *Server) (string, error) {
	if s.dir == nil {
		return os.TempDir(), nil
	}
	dir := filepath.Join(s.dir.Path(), tempDir)
	left, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return dir, os.Mkdir(dir, 0o700)
	}
	if err == nil {
		err = os.Chmod(dir, 0o700)
	}
	for _, e := range left { // the directory itself stays: a full disk may have no room for it again
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	if err != nil {
		return "", fmt.Errorf("clear %s: %w", dir, err)
	}
	return dir, nil
}

// endCursors has the cursors on a collection that is no longer there under its name fail, but for change streams, which tell of it, and
// for those of open transactions, which go on to see it.
func endCursors(cursors *cursor.Registry, e meaning.Event) {
	var why error
	switch e.Kind {
	case meaning.CollectionDropped:
		why = mongoerr.New(mongoerr.QueryPlanKilled, "collection dropped. UUID %s", bson.Binary(4, e.UUID[:]))
	case meaning.CollectionRenamed:
		why = mongoerr.New(mongoerr.QueryPlanKilled, "collection renamed from '%s' to '%s'. UUID %s", e.NS, e.To, bson.Binary(4, e.UUID[:]))
	default:
		return
	}
	ns := e.NS.String()
	cursors.Invalidate(func(c *cursor.Cursor) bool { return c.NS == ns && !c.Watches && c.TxnNumber < 0 }, why)
}

func (d *database) config(s *Server) command.Config {
	return command.Config{
		Port: s.port(), Clock: d.clock, RealTime: s.opts.Clock == nil, Log: s.log.For("COMMAND"), StartupLog: s.log.Startup(), Engine: s.opts.Engine, DBPath: s.DBPath(),
		Argv: s.opts.Argv, Parsed: s.opts.Parsed, Version: MongoVersion, EbbVersion: Version,
		Traffic:   func() command.Traffic { return command.Traffic(s.network.Stats()) },
		RecentLog: s.log.Recent, StartupWarnings: s.log.StartupWarnings,
		Stopping:  s.network.Stopping(),
		Shutdown:  func() { s.askOnce.Do(func() { close(s.asked) }) },
		RotateLog: s.opts.RotateLog, Expiry: d.monitor,
		Certificates: s.transport.certificates, ClusterAuth: s.transport.clusterAuth,
		Authorization: s.opts.Authorization, AccessLog: s.log.For("ACCESS"), NetworkLog: s.log.For("NETWORK"),
	}
}

// close closes what stands on the foundation.
func (d *database) close() error {
	if d.commands != nil {
		d.commands.Close()
	}
	if d.monitor != nil {
		d.monitor.Stop()
	}
	if d.store != nil {
		return d.store.Close()
	}
	return nil
}

func request(r *server.Request) command.Request {
	return command.Request{Body: r.Body, Sequences: r.Sequences,
		ExhaustAllowed: r.ExhaustAllowed(), NoReply: r.Unacknowledged(), Lasting: r.Lasting, Memory: r.Memory}
}

func reply(r command.Reply) server.Reply {
	return server.Reply{Body: r.Body, MoreToCome: r.MoreToCome, Next: r.Next, Close: r.Close}
}
