package tikvtest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tikv/client-go/v2/tikvrpc"
	"github.com/tikv/client-go/v2/util/async"
	pd "github.com/tikv/pd/client"
	"github.com/tikv/pd/client/clients/tso"

	"github.com/tikv/client-go/v2/tikv"
)

// Trips counts what is asked of a cluster.
type Trips struct {
	stores, pd atomic.Int64
}

// Count has what is asked of the cluster by clients that are made from now on be counted.
func (c *Cluster) Count() *Trips {
	n := &Trips{}
	c.Client, c.PD = n.Stores(c.Client), n.Placement(c.PD)
	return n
}

// Stores and Placement count what is asked by way of a client.
func (n *Trips) Stores(c tikv.Client) tikv.Client { return countedStores{c, n} }

// Placement counts timestamps.
func (n *Trips) Placement(c pd.Client) pd.Client { return countedPD{c, n} }

// Take is how many requests went to stores, and how many timestamps were asked for, since it was called last.
func (n *Trips) Take() (stores, timestamps int64) { return n.stores.Swap(0), n.pd.Swap(0) }

type countedStores struct {
	tikv.Client
	n *Trips
}

func (c countedStores) SendRequest(ctx context.Context, addr string, req *tikvrpc.Request, timeout time.Duration) (*tikvrpc.Response, error) {
	c.n.stores.Add(1)
	return c.Client.SendRequest(ctx, addr, req, timeout)
}

func (c countedStores) SendRequestAsync(ctx context.Context, addr string, req *tikvrpc.Request, cb async.Callback[*tikvrpc.Response]) {
	c.n.stores.Add(1)
	c.Client.SendRequestAsync(ctx, addr, req, cb)
}

type countedPD struct {
	pd.Client
	n *Trips
}

func (c countedPD) GetTSAsync(ctx context.Context) tso.TSFuture {
	c.n.pd.Add(1)
	return c.Client.GetTSAsync(ctx)
}

func (c countedPD) GetTS(ctx context.Context) (int64, int64, error) {
	c.n.pd.Add(1)
	return c.Client.GetTS(ctx)
}
