package tikvkv

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/tikvrpc"
)

// slowResolves answers one request after the other, each when the test says so.
type slowResolves struct {
	tikv.Client
	asked chan *kvrpcpb.ResolveLockRequest
	goOn  chan struct{}
}

func (s *slowResolves) SendRequest(_ context.Context, _ string, request *tikvrpc.Request, _ time.Duration) (*tikvrpc.Response, error) {
	s.asked <- request.ResolveLock()
	<-s.goOn
	return &tikvrpc.Response{Resp: &kvrpcpb.ResolveLockResponse{}}, nil
}

// TestResolvesAreGathered: of the locks of one transaction all that are to be resolved while a request is on its way are resolved by the next, and those
// of other transactions beside it.
func TestResolvesAreGathered(t *testing.T) {
	for _, many := range []int{maxResolvedKeys, maxResolvedKeys + 1} {
		t.Run(fmt.Sprint(many), func(t *testing.T) {
			stores := &slowResolves{asked: make(chan *kvrpcpb.ResolveLockRequest, 10), goOn: make(chan struct{})}
			r := NewResolver(stores).(*resolver)
			var all sync.WaitGroup
			resolve := func(start uint64, key string) {
				all.Go(func() {
					request := tikvrpc.NewRequest(tikvrpc.CmdResolveLock, &kvrpcpb.ResolveLockRequest{StartVersion: start, CommitVersion: 9, Keys: [][]byte{[]byte(key)}}, kvrpcpb.Context{RegionId: 1})
					if answer, err := r.SendRequest(t.Context(), "store", request, time.Second); err != nil || answer.Resp == nil {
						t.Errorf("%s is answered with %v, %v", key, answer, err)
					}
				})
			}
			resolve(1, "first")
			if first := <-stores.asked; len(first.Keys) != 1 || first.StartVersion != 1 {
				t.Errorf("the first request is %v", first)
			}
			resolve(2, "other")
			if other := <-stores.asked; other.StartVersion != 2 {
				t.Errorf("the request for another transaction is %v", other)
			}
			for i := range many {
				resolve(1, fmt.Sprint(i))
			}
			of := resolved{address: "store", region: 1, startVersion: 1, commitVersion: 9}
			for waiting := 0; waiting < many; {
				r.mu.Lock()
				if next := r.underWay[of]; next != nil {
					waiting = len(next.keys)
				}
				r.mu.Unlock()
			}
			close(stores.goOn)
			all.Wait()
			want := many
			if many > maxResolvedKeys {
				want = 0 // all in the region
			}
			if next := <-stores.asked; len(next.Keys) != want || next.StartVersion != 1 || next.CommitVersion != 9 {
				t.Errorf("the next request names %d locks, want %d", len(next.Keys), want)
			}
			if n := len(stores.asked); n > 0 {
				t.Errorf("there are %d requests more", n)
			}
		})
	}
}
