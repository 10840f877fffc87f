package tikvkv

import (
	"time"

	"github.com/tikv/client-go/v2/oracle"

	"github.com/ebbdb/ebb/internal/clock"
)

const (
	defaultKeep = 10 * time.Minute
	// keepMost is how much is kept for a reader.
	keepMost = time.Hour
	// keepTerm is how long the cluster keeps what this server needs after it was told last.
	keepTerm = time.Hour
)

// collect has the cluster let go of what nobody needs any more, now and then, until the engine ends. That takes a look at each of the cluster's regions,
// and lasts where one of them does not answer.
func (e *Engine) collect() {
	defer close(e.collects)
	for pause := e.options.Term / renewals; clock.Wait(e.ctx, e.options.Clock, pause) == nil; pause = e.options.Keep / 2 {
		if e.lease.held() != nil {
			continue // another server may have the keyspace, and needs what it needs
		}
		if err := e.letGo(e.views.time(), e.options.Keep, keepMost); err != nil && e.ctx.Err() == nil {
			e.options.Logger.Warn("The TiKV cluster could not be told what is not needed any more", "error", err)
		}
	}
}

// letGo tells the cluster up to which timestamp nothing is needed any more: all before so long ago, but for what is read, and of that what is not older
// than most. What others need it keeps.
func (e *Engine) letGo(now uint64, keep, most time.Duration) error {
	back := func(d time.Duration) uint64 {
		return oracle.ComposeTS(max(oracle.ExtractPhysical(now)-d.Milliseconds(), 0), 0)
	}
	mine := e.views.letGo(back(keep), back(most))
	least, err := e.store.GetPDClient().UpdateServiceGCSafePoint(e.ctx, "ebb-"+e.options.Keyspace, int64(keepTerm.Seconds()), mine)
	if err == nil && least > 0 {
		_, err = e.store.GC(e.ctx, min(least, mine))
	}
	return err
}
