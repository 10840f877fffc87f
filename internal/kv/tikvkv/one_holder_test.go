package tikvkv_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestOneHolder: of many servers that wait for a keyspace one at a time gets it, and what that writes the next one finds.
func TestOneHolder(t *testing.T) {
	c := tikvtest.New(t)
	oneHolder(t, 30, func(o tikvkv.Options) (*tikvkv.Engine, error) { return tikvkv.OpenStore(t.Context(), c.Store(t), o) })
}

// TestOneHolderOnCluster is the same on a real cluster.
func TestOneHolderOnCluster(t *testing.T) {
	addresses, keyspace := clusterAt(t), fmt.Sprint("one-holder-", time.Now().UnixMilli())
	oneHolder(t, 60, func(o tikvkv.Options) (*tikvkv.Engine, error) {
		o.PD, o.Keyspace = addresses, keyspace
		return tikvkv.Open(t.Context(), o)
	})
}

func oneHolder(t *testing.T, rounds int64, open func(tikvkv.Options) (*tikvkv.Engine, error)) {
	const servers, writes = 6, 3
	var taken, acknowledged, unknown atomic.Int64
	var epochs sync.Map
	var working sync.WaitGroup
	for server := range servers {
		working.Go(func() {
			for taken.Load() < rounds && !t.Failed() {
				e, err := open(tikvkv.Options{Name: strconv.Itoa(server), Term: 2 * time.Second, OnFailure: func(error) {}, Waiting: func(tikvkv.Holder) {}})
				if err != nil && mongoerr.From(err).Code == mongoerr.HostUnreachable { // PD does not answer for a moment
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				taken.Add(1)
				if other, twice := epochs.LoadOrStore(tikvkv.Epoch(e), server); twice {
					t.Errorf("servers %v and %d have the keyspace at once", other, server)
				}
				for range writes {
					if _, err := count(e, 0, 1); err != nil { // on a busy machine a lease that is so short may run out
						unknown.Add(1)
						break
					}
					acknowledged.Add(1)
				}
				_ = e.Close() // likewise
			}
		})
	}
	working.Wait()
	e, err := open(tikvkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := count(e, 0, 0)
	low, high := acknowledged.Load(), acknowledged.Load()+unknown.Load()
	if err = errors.Join(err, e.Close()); err != nil || int64(n) < low || int64(n) > high {
		t.Errorf("%d are counted, %v; %d were acknowledged, and of %d nothing is known", n, err, low, high-low)
	}
}
