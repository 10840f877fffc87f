package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/yield"
)

func serve() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Start the server",
		Args:  noArgs,
	}
	flags := config.NewFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.Load(os.Args, flags)
		if err != nil {
			return err
		}
		return run(cmd.Context(), cfg)
	}
	return cmd
}

// run serves until a signal comes.
func run(ctx context.Context, cfg *config.Config) (err error) {
	stopProfile, err := profileCPU()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopProfile()) }()
	log, file, err := openLog(cfg)
	if err != nil {
		return err
	}
	opts := options(cfg, log)
	if file != nil {
		opts.RotateLog = file.rotate
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var opened atomic.Pointer[ebb.Server]
	heeded := heed(log, func() error { return rotateLogs(opts.RotateLog, opened.Load()) }, stop)
	defer heeded.end()

	addProcessor()
	if err := yield.Start(); err != nil {
		return fmt.Errorf("open the pipe by which long work lets others go first: %w", err)
	}
	limitArenas()
	limitMemory(cfg.Storage.CacheBytes)
	quiet, loud := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { paceCollector(quiet) })
	watching.Go(func() { giveBack(quiet) })
	defer watching.Wait()
	defer loud()
	server, err := open(ctx, opts, file)
	if err != nil {
		return err
	}
	opened.Store(server)
	if file != nil {
		defer func() { err = errors.Join(err, file.Close()) }()
		if err := file.begin(log); err != nil {
			return errors.Join(err, server.Close())
		}
	}
	control := log.For("CONTROL")
	for _, o := range cfg.Ignored {
		control.Warn("An option of mongod's has no meaning here, and is ignored", "option", o.Name, "value", o.Value)
	}
	if cfg.PIDFile != "" {
		if err := os.WriteFile(cfg.PIDFile, fmt.Appendln(nil, os.Getpid()), 0o644); err != nil {
			return errors.Join(fmt.Errorf("write the process id: %w", err), server.Close())
		}
		defer os.Remove(cfg.PIDFile)
	}
	if err := server.Serve(ctx); err != nil {
		return err
	}
	control.Info("Shutting down", "reason", reasonFor(ctx))
	if err := server.Close(); err != nil {
		return err
	}
	control.Info("Now exiting", "exitCode", 0)
	return nil
}

// rotateLogs is what SIGUSR1 does: to the log where it is a file, and to the audit log once the server is open.
func rotateLogs(log func() error, server *ebb.Server) (err error) {
	if log != nil {
		err = log()
	}
	if server != nil {
		err = errors.Join(err, server.RotateAuditLog())
	}
	return err
}

// openGrace is how long a server that is being opened may take to be open when it is told to end.
const openGrace = 2 * time.Second

// open opens the server. A start that fails leaves the log file as it was. When ctx ends meanwhile, and opening does not, the
// process ends: nothing was acknowledged, and a store that is cut off while it is opened is as after a power cut.
func open(ctx context.Context, opts ebb.Options, file *logFile) (*ebb.Server, error) {
	type opened struct {
		server *ebb.Server
		err    error
	}
	done := make(chan opened, 1)
	go func() {
		server, err := ebb.Open(opts)
		done <- opened{server, err}
	}()
	var o opened
	select {
	case o = <-done:
	case <-ctx.Done():
		timer := clock.Wall().NewTimer(openGrace)
		defer timer.Stop()
		select {
		case o = <-done:
		case <-timer.C():
			serverlog.Of(opts.Log).For("CONTROL").Info("Now exiting; the server was not open yet", "exitCode", 0, "reason", reasonFor(ctx))
			if file != nil {
				_ = file.Abandon()
			}
			os.Exit(0)
		}
	}
	if o.err != nil && file != nil {
		o.err = errors.Join(o.err, file.Abandon())
	}
	return o.server, o.err
}

// logFile is the file of the log, and how it is rotated.
type logFile struct {
	*serverlog.File
	cfg config.SystemLog
}

// openLog opens the log; file is nil when it goes to standard output. Lines wait until the server is open where it is a file.
func openLog(cfg *config.Config) (log *serverlog.Log, file *logFile, err error) {
	if cfg.SystemLog.Path == "" {
		return serverlog.New(os.Stdout, cfg.SystemLog.Verbosity), nil, nil
	}
	f, err := serverlog.OpenFile(cfg.SystemLog.Path)
	if err != nil {
		return nil, nil, err
	}
	return serverlog.New(nil, cfg.SystemLog.Verbosity), &logFile{f, cfg.SystemLog}, nil
}

// begin has the lines of log go to the file, to a new one unless it is to be appended to.
func (f *logFile) begin(log *serverlog.Log) error {
	if !f.cfg.Append {
		if _, err := f.Rotate(clock.Wall().Now()); err != nil {
			return err
		}
	}
	return log.SetOutput(f.File)
}

// rotate is what logRotate and SIGUSR1 do.
func (f *logFile) rotate() error {
	if f.cfg.Reopen {
		return f.Reopen()
	}
	_, err := f.Rotate(clock.Wall().Now())
	return err
}

func options(cfg *config.Config, log *serverlog.Log) ebb.Options {
	opts := ebb.Options{
		Addresses:       cfg.Net.BindIP,
		Port:            cfg.Net.Port,
		MaxConns:        cfg.Net.MaxConns,
		ConnsOverride:   cfg.Net.MaxConnsOverride,
		Compressors:     cfg.Net.Compressors,
		DBPath:          cfg.Storage.DBPath,
		Engine:          cfg.Storage.Engine,
		Cluster:         cfg.Storage.TiKV,
		CacheBytes:      cfg.Storage.CacheBytes,
		BlockCompressor: cfg.Storage.BlockCompressor,
		MinFreeBytes:    cfg.Storage.MinFreeBytes,
		ReserveBytes:    cfg.Storage.ReserveBytes,
		Parameters:      map[string]string{},
		Argv:            cfg.Argv,
		Parsed:          cfg.Parsed,
		Quiet:           cfg.SystemLog.Quiet,
		Log:             log.Logger(),
		OnFailure:       func(error) { os.Exit(exitStoreFailed) }, // clients know sooner than if operations were waited for

		StartWithDamagedLog: cfg.Storage.StartWithDamagedLog,

		Authorization: cfg.Security.Authorized(),
		KeyFile:       cfg.Security.MemberKeyFile(),
		NoJavaScript:  !cfg.Security.JavaScript,
		ScriptCommand: scriptCommand(),
	}
	if r := cfg.Replication; r.SetName != "" {
		opts.ReplicaSet = &ebb.ReplicaSet{Name: r.SetName, Initiate: r.Initiate, Advertise: r.Advertise, OplogBytes: r.OplogBytes, OplogMinHours: r.OplogMinHours}
	}
	opts.Cluster.Advertise = cfg.Replication.Advertise
	if cfg.Audit.Destination != "" {
		opts.Audit = &cfg.Audit
	}
	if m := cfg.Net.Metrics; m.Port != 0 {
		opts.Metrics = &ebb.Metrics{Addresses: m.BindIP, Port: m.Port}
	}
	if u := cfg.Net.UnixSocket; u.Enabled && runtime.GOOS != "windows" {
		opts.UnixSocket = &ebb.UnixSocket{PathPrefix: u.Prefix, Permissions: u.Mode}
	}
	if c := cfg.Net.Console; c.Port != 0 {
		opts.Console = &ebb.Console{Addresses: c.BindIP, Port: c.Port}
	}
	if cfg.Security.LDAP.Servers != nil {
		opts.LDAP = &cfg.Security.LDAP
	}
	if cfg.Net.TLS.Enabled() {
		opts.TLS = tlsOptions(&cfg.Net.TLS)
		opts.ClusterX509 = cfg.Security.ByX509()
		opts.ClusterSendsKey = cfg.Security.ClusterAuthMode == config.ClusterSendKeyFile
		opts.ClusterTakesKey = cfg.Security.ClusterAuthMode == config.ClusterSendX509
	}
	opts.Profiling = &ebb.Profiling{Level: int32(cfg.Profiling.Level), SlowMillis: int32(cfg.Profiling.SlowMillis), SampleRate: cfg.Profiling.SampleRate}
	for _, p := range cfg.SetParameter {
		opts.Parameters[p.Name] = p.Value // of two of a name the later one
	}
	if opts.Port == 0 {
		opts.Port = ebb.AnyPort
	}
	return opts
}

func tlsOptions(t *config.TLS) *ebb.TLS {
	c := &t.Certificates
	return &ebb.TLS{
		Mode: t.Mode, CertificateKeyFile: c.KeyFile, CertificateKeyFilePassword: c.KeyPassword, ClusterFile: c.ClusterFile, ClusterPassword: c.ClusterPassword,
		CAFile: c.CAFile, ClusterCAFile: c.ClusterCAFile, UseSystemCA: c.SystemCA, CRLFile: c.CRLFile,
		AllowConnectionsWithoutCertificates: c.AllowNone, AllowInvalidCertificates: c.AllowInvalid,
		AllowInvalidHostnames: c.AllowInvalidHosts,
		MinVersion:            c.MinVersion, MaxVersion: c.MaxVersion, LogVersions: t.LogVersions, FIPSMode: t.FIPS,
		ClusterAuthX509Attributes: c.Members.Attributes, ClusterAuthX509ExtensionValue: c.Members.ExtensionValue,
	}
}
