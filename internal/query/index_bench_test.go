package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/host"
	"github.com/ebbdb/ebb/internal/namespace"
)

// benchUsers is how many documents there are; ten have the same user, and n counts them.
const benchUsers = 1_000_000

var benchUserNS = namespace.NS{DB: "test", Coll: "users"}

func benchUser(r *rand.Rand, i int) bson.Doc {
	b := bson.Build().Int32("_id", int32(i)).Date("createdAt", testTime+int64(i)).String("user", fmt.Sprintf("user-%d", r.IntN(benchUsers/10))).
		String("status", []string{"new", "open", "held", "done"}[i%4]).Int64("n", int64(i)).Double("score", r.Float64())
	b.Array("tags").String("0", fmt.Sprintf("t%d", r.IntN(50))).String("1", fmt.Sprintf("t%d", r.IntN(50))).End()
	return b.String("payload", fmt.Sprintf("%0120d", r.Uint64())).Doc()
}

func benchUserEngine(b *testing.B) *Engine {
	e := benchOnDisk(b, 2<<30)
	r := rand.New(rand.NewPCG(1, 2))
	benchFill(b, e, benchUserNS, benchUsers, func(i int) bson.Doc { return benchUser(r, i) })
	benchIndexes(b, e, benchUserNS, `{key: {user: 1}, name: "user"}`, `{key: {status: 1, n: 1}, name: "status_n"}`)
	return e
}

// BenchmarkIndexes finds among a million documents; ns/found is for each document found, keys and docs are what was looked at
// for it, and CPU times do not depend on what else the machine does. Finds by _id beside the others are the measure for them.
func BenchmarkIndexes(b *testing.B) {
	e := benchUserEngine(b)
	r := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		name string
		find func() Find
	}{
		{"id", func() Find { return Find{Filter: bson.Build().Int32("_id", int32(r.IntN(benchUsers))).Doc()} }},
		{"equality", func() Find {
			return Find{Filter: bson.Build().String("user", fmt.Sprintf("user-%d", r.IntN(benchUsers/10))).Doc()}
		}},
		{"range100", func() Find {
			n := int64(r.IntN(benchUsers - 400))
			return Find{Filter: bson.Build().String("status", "held").Object("n").Int64("$gte", n).Int64("$lt", n+400).End().Doc()}
		}},
		{"covered100", func() Find {
			n := int64(r.IntN(benchUsers - 400))
			return Find{Filter: bson.Build().String("status", "held").Object("n").Int64("$gte", n).Int64("$lt", n+400).End().Doc(), Projection: bson.MustDoc(`{n: 1, _id: 0}`)}
		}},
	} {
		b.Run(c.name, func(b *testing.B) { benchFinds(b, e, c.find) })
	}
	b.Run("count", func(b *testing.B) {
		keys, used := int64(0), cpuMicros()
		for range b.N {
			n, err := e.Count(context.Background(), Count{NS: benchUserNS, Filter: bson.MustDoc(`{user: {$gte: ""}}`)}, &Call{Now: testTime})
			if err != nil || n != benchUsers {
				b.Fatal(n, err)
			}
			keys += n
		}
		b.ReportMetric(float64(keys)/b.Elapsed().Seconds(), "keys/s")
		b.ReportMetric(float64(keys)*1e6/float64(cpuMicros()-used), "keys/cpu-s")
	})
}

func benchFinds(b *testing.B, e *Engine, find func() Find) {
	found, call, used := 0, &Call{Now: testTime}, cpuMicros()
	for range b.N {
		f := find()
		f.NS = benchUserNS
		r, err := e.Find(context.Background(), f, call)
		if err != nil {
			b.Fatal(err)
		}
		if err := r.All(context.Background(), func(bson.Doc) error { found++; return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(max(found, 1)), "ns/found")
	b.ReportMetric(float64(cpuMicros()-used)*1000/float64(max(found, 1)), "cpu-ns/found")
	b.ReportMetric(float64(call.Seen.Keys)/float64(max(found, 1)), "keys/found")
	b.ReportMetric(float64(call.Seen.Docs)/float64(max(found, 1)), "docs/found")
}

func cpuMicros() int64 {
	u := host.Used()
	return u.UserMicros + u.SystemMicros
}
