package command

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/tikvrpc"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
)

// slowStores has commits wait on their way to the stores, while holds is set.
type slowStores struct {
	tikv.Client
	holds   atomic.Bool
	reached chan struct{} // closed when one waits
	goOn    chan struct{}
	once    sync.Once
}

func (s *slowStores) SendRequest(ctx context.Context, addr string, req *tikvrpc.Request, timeout time.Duration) (*tikvrpc.Response, error) {
	if req.Type == tikvrpc.CmdPrewrite && s.holds.Load() {
		s.once.Do(func() { close(s.reached) })
		<-s.goOn
	}
	return s.Client.SendRequest(ctx, addr, req, timeout)
}

// toldEngine tells when a transaction begins.
type toldEngine struct {
	kv.Engine
	begins atomic.Pointer[func()]
}

func (e *toldEngine) BeginBlind() (kv.Txn, error) {
	e.tell()
	return e.Engine.BeginBlind()
}

func (e *toldEngine) Begin() (kv.Txn, error) {
	e.tell()
	return e.Engine.Begin()
}

func (e *toldEngine) tell() {
	if begins := e.begins.Swap(nil); begins != nil {
		(*begins)()
	}
}

// TestRetryOfWhatIsUnderWay: the operation of a write ends while its commit is on its way, and the write is sent again. That it is known what became of
// the first is waited for before anybody looks whether it was executed: here it becomes visible just when the second begins to write.
func TestRetryOfWhatIsUnderWay(t *testing.T) {
	c := tikvtest.New(t)
	stores := &slowStores{Client: c.Client, reached: make(chan struct{}), goOn: make(chan struct{})}
	still := clock.NewFake(time.Unix(0, 0))
	cluster := c.OpenOver(t, stores, tikvkv.Options{Term: time.Hour, Clock: still})
	engine := &toldEngine{Engine: cluster}
	h := newHarnessAs(t, &ReplicaSet{Name: "rs", Host: "localhost:27018", Term: new(atomic.Int64), OplogBytes: 1 << 30}, func(kv.Engine) kv.Engine { return engine })
	if err := h.server.JoinReplicaSet(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	h.ok(t, "admin", "{replSetInitiate: 1}")
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1, n: 1}]}")
	write := bson.MustDoc("{update: 'c', updates: [{q: {_id: 1}, u: {$inc: {n: 1}}}], lsid: {id: UUID('00000000-0000-0000-0000-000000000001')}, txnNumber: NumberLong(1)}")

	stores.holds.Store(true)
	ctx, end := context.WithCancel(t.Context())
	first := make(chan string, 1)
	go func() {
		first <- h.sendOn(ctx, h.server.Connect(100, "127.0.0.1:50100", "127.0.0.1:27018"), "test", write).Body.Text()
	}()
	<-stores.reached
	end()
	if reply := tikvtest.TurnFor(t, still, tikvtest.FastStep, first); strings.Contains(reply, "nModified: 1") {
		t.Errorf("a write whose commit is on its way is answered with %s", reply)
	}
	before, _ := cluster.Last()
	visible := func() {
		stores.holds.Store(false)
		close(stores.goOn)
		for number := before; number == before; number, _ = cluster.Last() {
			still.Advance(10 * time.Millisecond)
			runtime.Gosched()
		}
	}
	engine.begins.Store(&visible)
	if reply := h.send(t.Context(), "2", "test", write).Body.Text(); !strings.Contains(reply, "retriedStmtIds: [ 0 ]") {
		t.Errorf("the same write again is answered with %s", reply)
	}
	if reply := h.ok(t, "test", "{find: 'c'}").Text(); !strings.Contains(reply, "n: 2 }") {
		t.Errorf("of a write that was sent twice is left: %s", reply)
	}
}
