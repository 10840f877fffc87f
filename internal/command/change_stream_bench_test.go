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
	b.ReportMetric(float64(h.woken())/float64(b.N), "wakings/op")
}

// BenchmarkEvents reads the events of inserts and of deletes, in batches as large as they get.
func BenchmarkEvents(b *testing.B) {
	for _, c := range []struct{ name, fields, stages string }{
		{"plain", "", ""},
		{"images", "fullDocumentBeforeChange: 'whenAvailable'", ""},
		{"matched", "", ", {$match: {operationType: 'update'}}"},
	} {
		b.Run(c.name, func(b *testing.B) {
			const docs, rounds = 1000, 20
			h := newMember(b)
			h.must("1", "admin", "{replSetInitiate: 1}")
			h.must("1", "test", "{create: 'c', changeStreamPreAndPostImages: {enabled: true}}")
			w := h.watch("test", "c", c.fields, c.stages)
			start := w.mark
			for round := range rounds {
				insert := bson.Build().String("insert", "c").Array("documents")
				for i := range docs {
					insert.Object(bson.IndexKey(i)).Int32("_id", int32(round*docs+i)).String("text", "a document of about a hundred bytes, as many are in real life").End()
				}
				if reply := h.send(b.Context(), "1", "test", insert.End().Doc()); reply.Body.Lookup("n").Int32() != docs {
					b.Fatal(reply.Body)
				}
				h.must("1", "test", "{delete: 'c', deletes: [{q: {}, limit: 0}]}")
			}
			b.ResetTimer()
			for b.Loop() {
				again, _, reply := h.tryWatch(w.conn, "test", "c", c.fields, c.stages, start)
				if again.id == 0 {
					b.Fatal(reply.Body)
				}
				for at := ""; at != again.mark.Lookup("_data").Str(); {
					at = again.mark.Lookup("_data").Str()
					again.next(0)
				}
				h.server.Cursors.Kill(again.id)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2*docs*rounds), "ns/event")
		})
	}
}
