package command

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// BenchmarkWritesBesideStreams inserts into one collection while so many streams wait on others, and while as many wait on it.
func BenchmarkWritesBesideStreams(b *testing.B) {
	for _, streams := range []int{0, 1000} {
		b.Run(fmt.Sprintf("others=%d", streams), func(b *testing.B) { benchmarkWrites(b, streams, 0) })
	}
	b.Run("own=1", func(b *testing.B) { benchmarkWrites(b, 0, 1) })
	b.Run("own=10", func(b *testing.B) { benchmarkWrites(b, 0, 10) })
}

func benchmarkWrites(b *testing.B, others, own int) {
	h := newMember(b)
	h.must("1", "admin", "{replSetInitiate: 1}")
	h.must("1", "test", "{create: 'busy'}")
	ctx, stop := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	defer reading.Wait()
	defer stop()
	for i := range others + own {
		coll := fmt.Sprintf("c%d", i)
		if i >= others {
			coll = "busy"
		}
		w, _, reply := h.tryWatch(NewConn(int64(100+i), "127.0.0.1:1", "127.0.0.1:2"), "test", coll, "", "", nil)
		if w.id == 0 {
			b.Fatal(reply.Body)
		}
		reading.Go(func() {
			for ctx.Err() == nil && w.id != 0 {
				w.took(h.sendOn(ctx, w.conn, w.db, w.getMore(0, 60_000)).Body, "nextBatch")
			}
		})
	}
	for n := 0; b.Loop(); n++ {
		if reply := h.send(ctx, "1", "test", bson.Build().String("insert", "busy").Array("documents").Object("0").Int32("_id", int32(n)).End().End().Doc()); !reply.Body.Lookup("ok").Truthy() {
			b.Fatal(reply.Body)
		}
	}
	b.ReportMetric(float64(h.server.Query.Store.LogWakings())/float64(b.N), "wakings/op")
}
