package ebb

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/host"
)

// BenchmarkMember is what a command costs on a standalone and on the one member of a replica set, each with what drivers send to it, from the
// parsed message to the reply: what the socket takes is the same.
func BenchmarkMember(b *testing.B) {
	for _, kind := range []string{"standalone", "member"} {
		member := kind == "member"
		var set *ReplicaSet
		if member {
			set = &ReplicaSet{Name: "rs0", Initiate: true}
		}
		s := benchServer(b, set)
		c := dial(b, s)
		for from := 0; from < benchDocs; from += 1000 {
			c.do(insertMessage(from, 1000, true))
		}
		d := s.serving.Enter(b.Context())
		b.Cleanup(d.Leave)
		conn := d.commands.Connect(1000, "127.0.0.1:1", "127.0.0.1:2")
		do := func(b *testing.B, body bson.Doc) {
			reply := d.commands.Handle(b.Context(), conn, command.Request{Body: body})
			if reply.Body.Lookup("ok").AsDouble() != 1 {
				b.Fatalf("reply: %s", reply.Body)
			}
		}
		// sent adds what drivers do.
		sent := func(body *bson.Builder, write bool) bson.Doc {
			session(body)
			if member && write {
				body.Int64("txnNumber", 1)
			}
			if member {
				body.Object("$clusterTime").Timestamp("clusterTime", 1, 1).Object("signature").Binary("hash", 0, make([]byte, 20)).Int64("keyId", 0).End().End()
			}
			if member && !write {
				body.Object("$readPreference").String("mode", "primaryPreferred").End()
			}
			return body.Doc()
		}
		b.Run("find/"+kind, func(b *testing.B) {
			finds := make([]bson.Doc, 1000)
			for i := range finds {
				finds[i] = sent(bson.Build().String("find", "c").Object("filter").Value("_id", benchID(i*17)).End().Int64("limit", 1).Bool("singleBatch", true), false)
			}
			defer cpu(b)()
			for i := 0; b.Loop(); i++ {
				do(b, finds[i%len(finds)])
			}
		})
		next := uint64(benchDocs)
		b.Run("insert/"+kind, func(b *testing.B) {
			insert := sent(bson.Build().String("insert", "c").Array("documents").Document("0", benchDoc(1)).End().Object("writeConcern").Bool("j", false).End(), true)
			id, number := bytes.Index(insert, []byte("_id\x00"))+8, bytes.Index(insert, []byte("txnNumber\x00"))+10
			defer cpu(b)()
			for b.Loop() {
				next++
				binary.BigEndian.PutUint64(insert[id:], next)
				if member {
					binary.LittleEndian.PutUint64(insert[number:], next)
				}
				do(b, insert)
			}
		})
		b.Run("update/"+kind, func(b *testing.B) {
			update := sent(bson.Build().String("update", "c").Array("updates").Object("0").Object("q").Value("_id", benchID(1)).End().
				Object("u").Object("$inc").Int32("hits", 1).End().End().End().End().Object("writeConcern").Bool("j", false).End(), true)
			id, number := bytes.Index(update, []byte("_id\x00"))+8, bytes.Index(update, []byte("txnNumber\x00"))+10
			defer cpu(b)()
			for b.Loop() {
				next++
				binary.BigEndian.PutUint64(update[id:], next%benchDocs)
				if member {
					binary.LittleEndian.PutUint64(update[number:], next)
				}
				do(b, update)
			}
		})
		b.Run("insert 1000/"+kind, func(b *testing.B) {
			defer cpu(b)()
			for b.Loop() {
				b.StopTimer()
				body := bson.Build().String("insert", "c").Array("documents")
				for i := range 1000 {
					next++
					body.Document(bson.IndexKey(i), benchDoc(int(next)))
				}
				insert := sent(body.End().Object("writeConcern").Bool("j", false).End(), true)
				if member {
					binary.LittleEndian.PutUint64(insert[bytes.LastIndex(insert, []byte("txnNumber\x00"))+10:], next)
				}
				b.StartTimer()
				do(b, insert)
			}
		})
	}
}

// cpu has a benchmark tell what processors have worked for each operation, which a busy machine changes least.
func cpu(b *testing.B) func() {
	b.ReportAllocs()
	from := cpuTime()
	return func() { b.ReportMetric(float64(cpuTime()-from)/float64(b.N), "cpu-ns/op") }
}

// cpuTime is what the process has used of the processors, in nanoseconds.
func cpuTime() int64 { return host.LookAtProcessors().Used.Nanoseconds() }
