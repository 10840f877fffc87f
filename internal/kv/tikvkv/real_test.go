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
)

// clusterVariable names the PD of a cluster whose keyspaces the test may use; `make tikv` starts one and sets it.
const clusterVariable = "EBB_TIKV_PD"

// TestContractOnCluster is the same on a real cluster.
func TestContractOnCluster(t *testing.T) {
	addresses := os.Getenv(clusterVariable)
	if addresses == "" {
		t.Skip("there is no cluster: " + clusterVariable + " names its PD (make tikv)")
	}
	var last atomic.Int64
	run := time.Now().UnixMilli()
	open := func(t *testing.T, keyspace string) *tikvkv.Engine {
		t.Helper()
		e, err := tikvkv.Open(tikvkv.Options{PD: strings.Split(addresses, ","), Keyspace: keyspace})
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
