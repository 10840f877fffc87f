package tikvkv_test

import (
	"testing"
	"time"

	"github.com/tikv/client-go/v2/testutils"
	"github.com/tikv/client-go/v2/tikv"
	pd "github.com/tikv/pd/client"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/kvtest"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
)

// cluster is a cluster inside the test, that ends with it.
type cluster struct {
	client *testutils.MockClient
	pd     pd.Client
}

// staysOpen keeps the cluster when an engine closes its client.
type staysOpen struct{ tikv.Client }

func (staysOpen) Close() error { return nil }

type pdStaysOpen struct{ pd.Client }

func (pdStaysOpen) Close() {}

func newCluster(t *testing.T, splitAt ...string) *cluster {
	t.Helper()
	client, regions, pdClient, err := testutils.NewMockTiKV("", nil)
	if err != nil {
		t.Fatal(err)
	}
	var keys [][]byte
	for _, key := range splitAt {
		keys = append(keys, []byte("ebb\x00default\x00\x04"+key))
	}
	testutils.BootstrapWithMultiRegions(regions, keys...)
	t.Cleanup(func() { client.Close() })
	return &cluster{client, pdClient}
}

func (c *cluster) store(t *testing.T) *tikv.KVStore {
	t.Helper()
	store, err := tikv.NewTestTiKVStore(staysOpen{c.client}, pdStaysOpen{c.pd}, nil, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func (c *cluster) open(t *testing.T, o tikvkv.Options) *tikvkv.Engine {
	t.Helper()
	e, err := tikvkv.OpenStore(c.store(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func contract(t *testing.T, splitAt ...string) {
	kvtest.Run(t, func(t *testing.T) kvtest.Store {
		c := newCluster(t, splitAt...)
		e := c.open(t, tikvkv.Options{})
		return kvtest.Store{Engine: e, Reopen: func(t *testing.T) kv.Engine {
			t.Helper()
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = c.open(t, tikvkv.Options{})
			return e
		}, Another: func(t *testing.T) kv.Engine {
			t.Helper()
			return newCluster(t).open(t, tikvkv.Options{Term: time.Minute})
		}}
	})
}

func TestContract(t *testing.T) { contract(t) }

// What a transaction writes may lie in several regions, and so may a stretch that is read.
func TestContractOverRegions(t *testing.T) {
	t.Parallel()
	contract(t, "b", "k10", "k20", "n1", "r")
}
