package ebb

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/command"
)

type benchClock struct{ *clock.Fake }

func (c benchClock) NewTimer(d time.Duration) Timer { return c.Fake.NewTimer(d) }

// BenchmarkTold is what processors work for each document that expires and is told of, and for each of these events that a stream reads, in batches
// as drivers ask for them.
func BenchmarkTold(b *testing.B) {
	const docs = 100_000
	fake := clock.NewFake(time.Now())
	s, err := Open(Options{Port: AnyPort, DBPath: b.TempDir(), Clock: benchClock{fake}, ReplicaSet: &ReplicaSet{Name: "rs0", Initiate: true}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	defer func() {
		cancel()
		if err := errors.Join(<-done, s.Close()); err != nil {
			b.Error(err)
		}
	}()
	d := s.serving.Enter(ctx)
	defer d.Leave()
	conn := d.commands.Connect(1000, "127.0.0.1:1", "127.0.0.1:2")
	do := func(body bson.Doc) bson.Doc {
		reply := d.commands.Handle(ctx, conn, command.Request{Body: body})
		if reply.Body.Lookup("ok").AsDouble() != 1 {
			b.Fatalf("reply: %s", reply.Body)
		}
		return reply.Body
	}
	do(bson.MustDoc(`{createIndexes: "c", indexes: [{key: {at: 1}, name: "at", expireAfterSeconds: 60}], $db: "bench"}`))
	next := 0
	var sweeps, reads int64
	for b.Loop() {
		now := fake.Now().UnixMilli()
		for range docs / 1000 {
			body := bson.Build().String("insert", "c").Array("documents")
			for i := range 1000 {
				next++
				body.Document(bson.IndexKey(i), bson.Build().Value("_id", benchID(next)).Date("at", now+int64(i)).String("user", "user-000017").Int64("seq", int64(next)).
					String("agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36").String("note", "the quick brown fox jumps over the lazy dog, and the dog lets it").Doc())
			}
			do(body.End().String("$db", "bench").Object("writeConcern").Bool("j", false).End().Doc())
		}
		reply := do(bson.MustDoc(`{aggregate: 1, pipeline: [{$changeStream: {}}, {$match: {operationType: "delete", expiration: {$exists: true}}}], cursor: {batchSize: 0}, $db: "bench"}`))
		id := reply.Lookup("cursor").Doc().Lookup("id").Int64()
		from := cpuTime()
		fake.Advance(62 * time.Second)
		if err := s.Settle(ctx); err != nil {
			b.Fatal(err)
		}
		swept := cpuTime()
		for n := 0; n < docs; {
			reply := do(bson.Build().Int64("getMore", id).String("collection", "$cmd.aggregate").Int64("batchSize", 10_000).String("$db", "bench").Doc())
			for it := reply.Lookup("cursor").Doc().Lookup("nextBatch").Doc().Iter(); it.Next(); n++ {
			}
		}
		sweeps, reads = sweeps+swept-from, reads+cpuTime()-swept
		do(bson.Build().String("killCursors", "$cmd.aggregate").Array("cursors").Int64("0", id).End().String("$db", "bench").Doc())
	}
	b.ReportMetric(float64(sweeps)/float64(b.N*docs), "cpu-ns/told")
	b.ReportMetric(float64(reads)/float64(b.N*docs), "cpu-ns/event")
}
