package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/serverlog"
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

// run serves until a signal comes. A second one ends the process at once.
func run(ctx context.Context, cfg *config.Config) (err error) {
	ctx, forget := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer forget()
	context.AfterFunc(ctx, forget)

	limitMemory()
	server, log, file, err := open(cfg, setThreads())
	if err != nil {
		return err
	}
	if file != nil {
		defer func() { err = errors.Join(err, file.Close()) }()
	}
	if err := server.Serve(ctx); err != nil {
		return err
	}
	control := log.For("CONTROL")
	reason := "shutdown command"
	if cause := context.Cause(ctx); cause != nil {
		reason = cause.Error()
	}
	control.Info("Shutting down", "reason", reason)
	if err := server.Close(); err != nil {
		return err
	}
	control.Info("Now exiting", "exitCode", 0)
	return nil
}

// open opens the server and its log; file is nil when the log goes to standard output. A start that fails leaves the
// log file as it was.
func open(cfg *config.Config, work func(bool)) (server *ebb.Server, log *serverlog.Log, file *serverlog.File, err error) {
	if cfg.SystemLog.Path == "" {
		log = serverlog.New(os.Stdout, cfg.SystemLog.Verbosity)
		server, err = ebb.Open(options(cfg, log, work))
		return server, log, nil, err
	}
	if file, err = serverlog.OpenFile(cfg.SystemLog.Path); err != nil {
		return nil, nil, nil, err
	}
	log = serverlog.New(nil, cfg.SystemLog.Verbosity)
	opts := options(cfg, log, work)
	opts.RotateLog = func() error { return file.Rotate(clock.Wall().Now()) }
	if server, err = ebb.Open(opts); err != nil {
		return nil, nil, nil, errors.Join(err, file.Abandon())
	}
	if !cfg.SystemLog.Append {
		err = file.Rotate(clock.Wall().Now())
	}
	if err = errors.Join(err, log.SetOutput(file)); err != nil {
		return nil, nil, nil, errors.Join(err, server.Close(), file.Close())
	}
	return server, log, file, nil
}

func options(cfg *config.Config, log *serverlog.Log, work func(bool)) ebb.Options {
	opts := ebb.Options{
		Addresses:    cfg.Net.BindIP,
		Port:         cfg.Net.Port,
		MaxConns:     cfg.Net.MaxConns,
		Compressors:  cfg.Net.Compressors,
		DBPath:       cfg.Storage.DBPath,
		Engine:       cfg.Storage.Engine,
		CacheBytes:   cfg.Storage.CacheBytes,
		MinFreeBytes: cfg.Storage.MinFreeBytes,
		ReserveBytes: cfg.Storage.ReserveBytes,
		Parameters:   cfg.SetParameter,
		Argv:         cfg.Argv,
		Parsed:       cfg.Parsed,
		Quiet:        cfg.SystemLog.Quiet,
		Log:          log,
		Clock:        clock.Wall(),
		OnWork:       work,
		OnFailure:    func(error) { os.Exit(exitStoreFailed) }, // clients know sooner than if operations were waited for

		StartWithDamagedLog: cfg.Storage.StartWithDamagedLog,

		NoJavaScript:  !cfg.Security.JavaScript,
		ScriptCommand: scriptCommand(),
	}
	if opts.Port == 0 {
		opts.Port = ebb.AnyPort
	}
	return opts
}
