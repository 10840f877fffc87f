package tikvkv

import (
	"context"
	"sync/atomic"

	"github.com/tikv/client-go/v2/tikv"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/rowcache"
)

// reads is what everybody needs who reads a keyspace: the server that works on it (Engine), and those that follow that one (Follower).
type reads struct {
	options Options
	space   keyspace
	store   *tikv.KVStore
	ctx     context.Context // ends when it is closed
	cancel  context.CancelFunc
	views   views
	lengths lengths
	rows    *rowcache.Cache
	// held says why nothing may be read at the moment; nil: something may.
	held   func() error
	closed atomic.Bool
	waits  atomic.Int64 // see Waits
}

// init is called once, before anything is read.
func (r *reads) init(store *tikv.KVStore, o Options, held func() error) {
	r.options, r.space, r.store, r.held = o, newKeyspace(o.Keyspace), store, held
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.views.open, r.lengths.mean = map[view]int{}, map[string]int{}
	r.rows = rowcache.NewFavouringShort(o.RowCacheBytes)
}

// Waits is how often somebody who reads has waited for the cluster since the engine was opened: once for requests that are under way side by side.
func (r *reads) Waits() int64 { return r.waits.Load() }

// look is the youngest view.
func (r *reads) look() (*snapshot, error) {
	if r.closed.Load() {
		return nil, kv.ErrClosed
	}
	if err := r.held(); err != nil {
		return nil, unavailable(err)
	}
	return &snapshot{of: r, view: r.views.acquire()}, nil
}

// Snapshot is kv.Engine's.
func (r *reads) Snapshot() (kv.Snapshot, error) {
	s, err := r.look()
	if err != nil {
		return nil, err
	}
	return s, nil
}

// noteRows tells a row cache what a Commit writes, before anybody sees that.
func noteRows(rows *rowcache.Cache, c *kv.Commit, sequence uint64) {
	for _, r := range c.Ranges() {
		rows.ChangeRange(r, sequence)
	}
	note := func(op kv.Op) {
		if op.Cached {
			rows.Write(op.Key, op.Value, sequence)
		} else {
			rows.Change(op.Key, sequence)
		}
	}
	c.Each(note)
	for _, op := range c.Stamped {
		note(op)
	}
}
