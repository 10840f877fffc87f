package tikvkv

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/tikvrpc"
)

// resolver is a client of the stores by which a scan of nothing is answered at once, and the locks of one transaction in one region are resolved by one request at a time. Those that are to be
// resolved meanwhile are resolved together by the next one.
//
// Who reads what a large transaction has just committed meets the locks that it has not removed yet, and client-go resolves each of them by a request of
// its own, for each who meets it. A store that is busy gets thousands of requests by that, is busier still, leaves commits unanswered, which leave more
// locks, and does not come to rest any more.
type resolver struct {
	tikv.Client

	mu       sync.Mutex // guards underWay, and the keys of what waits
	underWay map[resolved]*resolve
}

// resolved is what one request resolves locks of, with the time of the region that the client knows.
type resolved struct {
	address                     string
	region, version, confVer    uint64
	startVersion, commitVersion uint64
}

// resolve is a request that waits for the one before it.
type resolve struct {
	ctx     context.Context
	request *tikvrpc.Request
	timeout time.Duration
	keys    map[string]struct{}
	done    chan struct{} // closed when there is an answer
	answer  []byte
	err     error
}

// take is what the request was answered with, for one of those who wait: what lies above may decode it in place.
func (n *resolve) take() (*tikvrpc.Response, error) {
	if n.err != nil {
		return nil, n.err
	}
	own := &kvrpcpb.ResolveLockResponse{}
	if err := own.Unmarshal(n.answer); err != nil {
		return nil, err
	}
	return &tikvrpc.Response{Resp: own}, nil
}

// send waits for the answer.
func (n *resolve) send(stores tikv.Client, address string) {
	answer, err := stores.SendRequest(n.ctx, address, n.request, n.timeout)
	if err != nil {
		n.err = err
		return
	}
	locks, ok := answer.Resp.(*kvrpcpb.ResolveLockResponse)
	if !ok {
		n.err = fmt.Errorf("a request to resolve locks is answered with %T", answer.Resp)
		return
	}
	n.answer, n.err = locks.Marshal()
}

// maxResolvedKeys is how many locks one request names. Where there are more it resolves all that the transaction has in the region.
const maxResolvedKeys = 256

// NewResolver is the client that an engine goes to the stores by. A store of client-go's that is made elsewhere, for OpenStore, should as well.
func NewResolver(stores tikv.Client) tikv.Client {
	return &resolver{Client: stores, underWay: map[resolved]*resolve{}}
}

// SendRequest is tikv.Client's.
func (r *resolver) SendRequest(ctx context.Context, address string, request *tikvrpc.Request, timeout time.Duration) (*tikvrpc.Response, error) {
	if scan, ok := request.Req.(*kvrpcpb.ScanRequest); ok && isEmpty(scan) {
		return &tikvrpc.Response{Resp: &kvrpcpb.ScanResponse{}}, nil
	}
	locks, ok := request.Req.(*kvrpcpb.ResolveLockRequest)
	if !ok || len(locks.Keys) == 0 { // identical requests for whole regions client-go sends once
		return r.Client.SendRequest(ctx, address, request, timeout)
	}
	of := resolved{address, request.RegionId, request.RegionEpoch.GetVersion(), request.RegionEpoch.GetConfVer(), locks.StartVersion, locks.CommitVersion}
	next := r.line(of, &resolve{ctx: context.WithoutCancel(ctx), timeout: timeout, keys: map[string]struct{}{}, done: make(chan struct{})}, request.Context, locks)
	if next == nil {
		defer r.goOn(of)
		return r.Client.SendRequest(ctx, address, request, timeout)
	}
	select {
	case <-next.done:
		return next.take()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// isEmpty says whether a scan backward is of nothing: client-go asks for what lies before the first key of a range, when that key had a lock, and where a
// region begins with the key it asks the region before, in which the range is not.
func isEmpty(scan *kvrpcpb.ScanRequest) bool {
	return scan.Reverse && len(scan.StartKey) > 0 && bytes.Compare(scan.EndKey, scan.StartKey) >= 0
}

// line is the request that waits for the one that is on its way, with the locks added to it: first, unless another one waits. nil: none is on its way, and
// the caller's is now.
func (r *resolver) line(of resolved, first *resolve, from kvrpcpb.Context, locks *kvrpcpb.ResolveLockRequest) *resolve {
	first.request = tikvrpc.NewRequest(tikvrpc.CmdResolveLock, &kvrpcpb.ResolveLockRequest{StartVersion: locks.StartVersion, CommitVersion: locks.CommitVersion}, from)
	r.mu.Lock()
	defer r.mu.Unlock()
	next, busy := r.underWay[of]
	if !busy {
		r.underWay[of] = nil
		return nil
	}
	if next == nil {
		next = first
		r.underWay[of] = next
	}
	for _, key := range locks.Keys {
		if len(next.keys) > maxResolvedKeys {
			break
		}
		next.keys[string(key)] = struct{}{}
	}
	return next
}

// goOn is called when a request has been answered: what waits for it is sent.
func (r *resolver) goOn(of resolved) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.underWay[of]
	if next == nil {
		delete(r.underWay, of)
		return
	}
	r.underWay[of] = nil
	locks := next.request.ResolveLock()
	if len(next.keys) <= maxResolvedKeys {
		for key := range next.keys {
			locks.Keys = append(locks.Keys, []byte(key))
		}
	}
	go func() {
		defer r.goOn(of)
		defer close(next.done)
		next.send(r.Client, of.address)
	}()
}
