package tikvkv_test

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/kvtest"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
)

func contract(t *testing.T, splitAt ...string) {
	kvtest.Run(t, func(t *testing.T) kvtest.Store {
		c := tikvtest.New(t, splitAt...)
		e := c.Open(t, tikvkv.Options{})
		return kvtest.Store{Engine: e, Reopen: func(t *testing.T) kv.Engine {
			t.Helper()
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = c.Open(t, tikvkv.Options{})
			return e
		}, Another: func(t *testing.T) kv.Engine {
			t.Helper()
			return tikvtest.New(t).Open(t, tikvkv.Options{Term: time.Minute})
		}}
	})
}

func TestContract(t *testing.T) { contract(t) }

// What a transaction writes may lie in several regions, and so may a stretch that is read.
func TestContractOverRegions(t *testing.T) {
	t.Parallel()
	contract(t, "b", "k10", "k20", "n1", "r")
}
