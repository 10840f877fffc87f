// Package tikvtest opens engines over a TiKV cluster inside a test, for tests of what stands on one. It knows nothing of what they test.
package tikvtest

import (
	"testing"

	"github.com/tikv/client-go/v2/testutils"
	"github.com/tikv/client-go/v2/tikv"
	pd "github.com/tikv/pd/client"

	"github.com/ebbdb/ebb/internal/kv/tikvkv"
)

// Cluster is a cluster in memory, that ends with its test.
type Cluster struct {
	Client tikv.Client // the way to its stores; closing it closes nothing
	PD     pd.Client   // likewise
}

// staysOpen keeps the cluster when an engine closes its client.
type staysOpen struct{ tikv.Client }

func (staysOpen) Close() error { return nil }

type pdStaysOpen struct{ pd.Client }

func (pdStaysOpen) Close() {}

// New is a Cluster whose one store has a region from each of the keys of the default keyspace on.
func New(t testing.TB, splitAt ...string) *Cluster {
	t.Helper()
	client, regions, pdClient, err := testutils.NewMockTiKV("", nil)
	if err != nil {
		t.Fatal(err)
	}
	var keys [][]byte
	for _, key := range splitAt {
		keys = append(keys, []byte("ebb\x00"+tikvkv.DefaultKeyspace+"\x00\x04"+key))
	}
	testutils.BootstrapWithMultiRegions(regions, keys...)
	t.Cleanup(func() { client.Close() })
	return &Cluster{staysOpen{client}, pdStaysOpen{pdClient}}
}

// Store is a client of the cluster.
func (c *Cluster) Store(t testing.TB) *tikv.KVStore { return c.StoreOver(t, c.Client) }

// StoreOver is one that goes to the stores by way of client.
func (c *Cluster) StoreOver(t testing.TB, client tikv.Client) *tikv.KVStore {
	t.Helper()
	store, err := tikv.NewTestTiKVStore(client, c.PD, nil, nil, 0)
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
	e, err := tikvkv.OpenStore(t.Context(), c.StoreOver(t, client), o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Open opens an engine on a cluster of its own.
func Open(t testing.TB) *tikvkv.Engine {
	t.Helper()
	return New(t).Open(t, tikvkv.Options{})
}
