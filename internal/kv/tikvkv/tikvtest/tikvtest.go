// Package tikvtest opens engines over a TiKV cluster inside a test, for tests of what stands on one. It knows nothing of what they test.
package tikvtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/log"
	"github.com/tikv/client-go/v2/testutils"
	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/tikvrpc"
	pd "github.com/tikv/pd/client"
	"go.uber.org/zap"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
)

// quietly has the client libraries log nothing: what a test says would be lost among it.
func quietly() {
	log.ReplaceGlobals(zap.NewNop(), &log.ZapProperties{Level: zap.NewAtomicLevelAt(zap.FatalLevel)})
}

// term is longer than a test: no machine is so busy that a lease runs out of which the test does not want it.
const term = time.Hour

// keep is how long an engine on a cluster of its own keeps what was changed: stores in memory look through all of it again and again.
const keep = 10 * time.Second

// ProcessClock is a clock on which no more time passes than this process gets to run. A test whose server gives up what takes long goes by it, so that
// it does not fail because a machine is busy. It goes on until what is opened behind it has been closed.
func ProcessClock(t testing.TB) clock.Clock {
	t.Helper()
	const tick = time.Millisecond
	c := clock.NewFake(time.Unix(0, 0))
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() {
		for clock.Wait(ctx, clock.Wall(), tick) == nil {
			c.Advance(tick)
		}
	}()
	return c
}

// Cluster is a cluster in memory, that ends with its test.
type Cluster struct {
	Client tikv.Client // the way to its stores; closing it closes nothing
	PD     pd.Client   // likewise
}

// staysOpen keeps the cluster when an engine closes its client. When the cluster has ended it answers nothing: client-go removes locks that a reader has
// met for longer than anybody waits for, and the stores in memory end the process where they are asked then.
type staysOpen struct {
	tikv.Client
	use *use
}

// use counts requests until there are to be none any more.
type use struct {
	mu    sync.Mutex // guards ended
	ended bool
	now   sync.WaitGroup
}

func (u *use) begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.ended {
		u.now.Add(1)
	}
	return !u.ended
}

func (u *use) end() {
	u.mu.Lock()
	u.ended = true
	u.mu.Unlock()
	u.now.Wait()
}

var errEnded = errors.New("tikvtest: the cluster has ended")

func (s staysOpen) SendRequest(ctx context.Context, addr string, req *tikvrpc.Request, timeout time.Duration) (*tikvrpc.Response, error) {
	if !s.use.begin() {
		return nil, errEnded
	}
	defer s.use.now.Done()
	return s.Client.SendRequest(ctx, addr, req, timeout)
}

func (staysOpen) Close() error { return nil }

// end ends the cluster.
func (s staysOpen) end() {
	s.use.end()
	s.Client.Close()
}

type pdStaysOpen struct {
	pd.Client
	stores  staysOpen
	regions *testutils.MockCluster
}

func (pdStaysOpen) Close() {}

// UpdateGCSafePoint is pd.Client's. Stores remove what is older by themselves, and those in memory where they are told.
func (p pdStaysOpen) UpdateGCSafePoint(ctx context.Context, point uint64) (uint64, error) {
	point, err := p.Client.UpdateGCSafePoint(ctx, point)
	for _, region := range p.regions.GetAllRegions() {
		if err == nil {
			err = p.collect(ctx, region.Meta, point)
		}
	}
	return point, err
}

func (p pdStaysOpen) collect(ctx context.Context, region *metapb.Region, point uint64) error {
	request := tikvrpc.NewRequest(tikvrpc.CmdGC, &kvrpcpb.GCRequest{SafePoint: point})
	if err := tikvrpc.SetContextNoAttach(request, region, region.Peers[0]); err != nil {
		return err
	}
	answer, err := p.stores.SendRequest(ctx, p.regions.GetStore(region.Peers[0].StoreId).Address, request, time.Minute)
	if err != nil {
		return err
	}
	done := answer.Resp.(*kvrpcpb.GCResponse)
	if done.RegionError != nil || done.Error != nil {
		return fmt.Errorf("tikvtest: collect: %v, %v", done.RegionError, done.Error)
	}
	return nil
}

// New is a Cluster whose one store has a region from each of the keys of the default keyspace on.
func New(t testing.TB, splitAt ...string) *Cluster {
	t.Helper()
	quietly()
	client, regions, pdClient, err := testutils.NewMockTiKV("", nil)
	if err != nil {
		t.Fatal(err)
	}
	var keys [][]byte
	for _, key := range splitAt {
		keys = append(keys, []byte("ebb\x00"+tikvkv.DefaultKeyspace+"\x00\x04"+key))
	}
	testutils.BootstrapWithMultiRegions(regions, keys...)
	stores := staysOpen{client, new(use)}
	t.Cleanup(stores.end)
	return &Cluster{stores, pdStaysOpen{pdClient, stores, regions}}
}

// Store is a client of the cluster.
func (c *Cluster) Store(t testing.TB) *tikv.KVStore { return c.StoreOver(t, c.Client) }

// StoreOver is one that goes to the stores by way of client.
func (c *Cluster) StoreOver(t testing.TB, client tikv.Client) *tikv.KVStore {
	t.Helper()
	store, err := tikv.NewTestTiKVStore(tikvkv.NewResolver(client), c.PD, nil, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// Open opens an engine on the cluster.
func (c *Cluster) Open(t testing.TB, o tikvkv.Options) *tikvkv.Engine {
	t.Helper()
	return c.OpenOver(t, c.Client, o)
}

// OpenOver opens one that goes to the stores by way of client.
func (c *Cluster) OpenOver(t testing.TB, client tikv.Client, o tikvkv.Options) *tikvkv.Engine {
	t.Helper()
	if o.Term == 0 {
		o.Term = term
	}
	e, err := tikvkv.OpenStore(t.Context(), c.StoreOver(t, client), o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Open opens an engine on a cluster of its own, which gives nothing up because the machine is busy.
func Open(t testing.TB) *tikvkv.Engine {
	t.Helper()
	return New(t).Open(t, tikvkv.Options{Clock: ProcessClock(t), Keep: keep})
}
