package tikvkv

import (
	"math"
	"time"

	"github.com/tikv/client-go/v2/oracle"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
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
	placement := e.store.GetPDClient()
	least, err := placement.UpdateServiceGCSafePoint(e.ctx, "ebb-"+e.options.Keyspace, int64(keepTerm.Seconds()), mine)
	if err != nil {
		return err
	}
	if least < mine {
		shared, err := e.isWithTiDB()
		if err != nil {
			return err
		}
		if !shared {
			if least, err = placement.UpdateServiceGCSafePoint(e.ctx, collectorName, math.MaxInt64, mine); err != nil {
				return err
			}
		}
	}
	if least > 0 {
		_, err = e.store.GC(e.ctx, min(least, mine))
	}
	return err
}

// collectorName is what PD calls the one who says for all how much is kept. It is there from the beginning, keeps everything as long as it has said nothing, and
// never runs out. Where there is a TiDB that says it, and keeps as much as its own readers need; where there is none nobody does, and a cluster would keep
// everything for ever. What others keep (PD's service safe points) counts in both.
const collectorName = "gc_worker"

// tidbAreas are where TiDB has its catalogue and its tables, and where it has both when it has a keyspace of PD's.
var tidbAreas = []kv.Range{{Start: []byte("m"), End: []byte("n")}, {Start: []byte("t"), End: []byte("u")}, {Start: []byte("x"), End: []byte("y")}}

// isWithTiDB says whether there is anything of a TiDB in the cluster.
func (e *Engine) isWithTiDB() (bool, error) {
	look, err := e.look()
	if err != nil {
		return false, err
	}
	defer look.Close()
	reads, err := look.read()
	if err != nil {
		return false, err
	}
	reads.SetKeyOnly(true)
	return bounded(look, func() (bool, error) {
		for _, area := range tidbAreas {
			scan, err := reads.Iter(area.Start, area.End)
			if err != nil {
				return false, reading("scan", err)
			}
			there := scan.Valid()
			if scan.Close(); there {
				return true, nil
			}
		}
		return false, nil
	})
}
