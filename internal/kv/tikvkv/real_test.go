package tikvkv_test

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/kvtest"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
)

// clusterVariable names the PD of a cluster whose keyspaces the test may use; `make tikv` starts one and sets it.
const clusterVariable = "EBB_TIKV_PD"

// clusterAt is where the real one is; a test without one is skipped.
func clusterAt(t *testing.T) []string {
	t.Helper()
	addresses := os.Getenv(clusterVariable)
	if addresses == "" {
		t.Skip("there is no cluster: " + clusterVariable + " names its PD (make tikv)")
	}
	return strings.Split(addresses, ",")
}

// TestCommitTrips: a small commit is one request to a store, and one timestamp; many at once cost no more.
func TestCommitTrips(t *testing.T) {
	var n tikvtest.Trips
	e, err := tikvkv.OpenBy(t.Context(), tikvkv.Options{PD: clusterAt(t), Keyspace: fmt.Sprint("trips-", time.Now().UnixMilli()), Term: time.Hour}, n.Placement, n.Stores)
	if err != nil {
		t.Fatal(err)
	}
	if err := put(e, "a", "1"); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		n.Take()
		if err := put(e, "a", "2"); err != nil {
			t.Fatal(err)
		}
		if stores, timestamps := n.Take(); stores != 1 || timestamps != 1 {
			t.Errorf("a commit asks stores %d times and PD %d times", stores, timestamps)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestContractOnCluster is the same on a real cluster.
func TestContractOnCluster(t *testing.T) {
	addresses := clusterAt(t)
	var last atomic.Int64
	run := time.Now().UnixMilli()
	open := func(t *testing.T, keyspace string) *tikvkv.Engine {
		t.Helper()
		e, err := tikvkv.Open(t.Context(), tikvkv.Options{PD: addresses, Keyspace: keyspace})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	next := func() string { return fmt.Sprintf("kvtest-%d-%d", run, last.Add(1)) }
	kvtest.Run(t, func(t *testing.T) kvtest.Store {
		keyspace := next()
		e := open(t, keyspace)
		return kvtest.Store{Engine: e, Reopen: func(t *testing.T) kv.Engine {
			t.Helper()
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = open(t, keyspace)
			return e
		}, Another: func(t *testing.T) kv.Engine { return open(t, next()) }}
	})
}
