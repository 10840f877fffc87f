package tikvkv_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tikv/client-go/v2/tikvrpc"
	pd "github.com/tikv/pd/client"
	"github.com/tikv/pd/client/clients/tso"

	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
)

// leadingPD is PD whose time is ahead, as it is when another placement driver has begun to lead.
type leadingPD struct {
	pd.Client
	ahead atomic.Int64 // milliseconds
}

func (p *leadingPD) GetTS(ctx context.Context) (physical, logical int64, err error) {
	physical, logical, err = p.Client.GetTS(ctx)
	return physical + p.ahead.Load(), logical, err
}

func (p *leadingPD) GetTSAsync(ctx context.Context) tso.TSFuture {
	return leadingFuture{p.Client.GetTSAsync(ctx), p}
}

type leadingFuture struct {
	tso.TSFuture
	p *leadingPD
}

func (f leadingFuture) Wait() (physical, logical int64, err error) {
	physical, logical, err = f.TSFuture.Wait()
	return physical + f.p.ahead.Load(), logical, err
}

// A server whose lease has run out by a time that is ahead, and not by its own, reads as before. Nobody else may have the keyspace then, since what
// it reads would be no longer so.
func TestTimeThatIsAheadEndsNoLease(t *testing.T) {
	t.Parallel()
	c := tikvtest.New(t)
	ahead := &leadingPD{Client: c.PD}
	c.PD = ahead
	w := &wire{}
	first := c.OpenOver(t, w.over(c), tikvkv.Options{Name: "one:1", Term: 4 * time.Second, OnFailure: func(error) {}})
	if err := put(first, "a", "1"); err != nil {
		t.Fatal(err)
	}
	cut := errors.New("cut off")
	none := func(*tikvrpc.Request, func() (*tikvrpc.Response, error)) (*tikvrpc.Response, error) { return nil, cut }
	w.meet.Store(&none)
	ahead.ahead.Store((3 * time.Second).Milliseconds())
	second, err := tikvkv.OpenStore(t.Context(), c.Store(t), tikvkv.Options{Name: "two:2", Term: 4 * time.Second, Waiting: func(tikvkv.Holder) {}})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := first.Snapshot(); err == nil {
		s.Close()
		t.Error("two servers have the keyspace, and the first reads what may be no longer so")
	}
	w.meet.Store(nil)
	if err := errors.Join(second.Close(), first.Close()); err != nil {
		t.Error(err)
	}
}
