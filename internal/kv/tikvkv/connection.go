package tikvkv

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/pingcap/log"
	"github.com/tikv/client-go/v2/config"
	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/util"
	pd "github.com/tikv/pd/client"
	"github.com/tikv/pd/client/opt"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/ebbdb/ebb/internal/clock"
)

const (
	keepAliveTime    = 10 * time.Second
	keepAliveTimeout = 3 * time.Second
	pdTimeout        = 3 * time.Second
	// pdTries is how often PD is looked for at the start.
	pdTries = 3
)

// connect makes a client of the cluster. Nothing of it comes from client-go's global settings: two engines in one process have their own.
func connect(o Options) (*tikv.KVStore, error) {
	return connectBy(o, func(c pd.Client) pd.Client { return c }, func(c tikv.Client) tikv.Client { return c })
}

// connectBy is connect that calls PD and the stores by what is made of its own clients.
func connectBy(o Options, placement func(pd.Client) pd.Client, stores func(tikv.Client) tikv.Client) (*tikv.KVStore, error) {
	security := config.NewSecurity(o.CAFile, o.CertFile, o.KeyFile, nil)
	tlsConfig, err := security.ToTLSConfig()
	if err != nil {
		return nil, fmt.Errorf("TLS to the TiKV cluster: %w", err)
	}
	client, err := pd.NewClient(o.PD,
		pd.SecurityOption{CAPath: o.CAFile, CertPath: o.CertFile, KeyPath: o.KeyFile},
		opt.WithGRPCDialOptions(grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepAliveTime, Timeout: keepAliveTimeout})),
		opt.WithCustomTimeoutOption(pdTimeout), opt.WithMaxErrorRetry(pdTries))
	if err != nil {
		return nil, unavailable(fmt.Errorf("PD at %v: %w", o.PD, err))
	}
	codec := tikv.NewCodecPDClient(tikv.ModeTxn, util.InterceptedPDClient{Client: placement(client)})
	points, err := tikv.NewEtcdSafePointKV(o.PD, tlsConfig)
	if err != nil {
		codec.Close()
		return nil, unavailable(fmt.Errorf("PD at %v: %w", o.PD, err))
	}
	rpc := tikv.NewRPCClient(tikv.WithSecurity(security), tikv.WithCodec(codec.GetCodec()))
	store, err := tikv.NewKVStore(fmt.Sprintf("ebb-%d", codec.GetClusterID(context.Background())), codec, points, NewResolver(stores(rpc)))
	if err != nil {
		codec.Close()
		return nil, unavailable(err)
	}
	return store, nil
}

// toLog has what the client libraries log go to the server's log: their warnings and errors as notices of little weight, since they tell of each
// attempt, and what comes of it the engine tells.
func toLog(l *slog.Logger) {
	log.ReplaceGlobals(zap.New(&core{log: l}), &log.ZapProperties{Core: &core{log: l}, Level: zap.NewAtomicLevelAt(zapcore.WarnLevel)})
}

// core is a zapcore.Core.
type core struct {
	log    *slog.Logger
	fields []zapcore.Field
}

func (c *core) Enabled(level zapcore.Level) bool { return level >= zapcore.WarnLevel }

func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{c.log, append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

func (c *core) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	into := zapcore.NewMapObjectEncoder()
	for _, f := range append(c.fields[:len(c.fields):len(c.fields)], fields...) {
		f.AddTo(into)
	}
	c.log.Debug("TiKV client: "+e.Message, "level", e.Level.String(), "fields", fmt.Sprint(into.Fields))
	return nil
}

func (c *core) Sync() error { return nil }

// withLimit is a context of a request that ends after d. client-go takes one that was cancelled for one whose caller has gone, and goes on asking
// the store that did not answer; of one whose time is over it learns to look for another.
func withLimit(ctx context.Context, c clock.Clock, d time.Duration) (context.Context, context.CancelFunc) {
	if c == clock.Wall() {
		return context.WithTimeout(ctx, d)
	}
	return clock.WithTimeout(ctx, c, d)
}
