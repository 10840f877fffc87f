package ebb

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// scanDocs are more than a memtable holds, so that scans read tables.
const scanDocs = 200_000

// BenchmarkScans is what a hundred documents cost from socket to socket: neighbours by an index, the same from the index alone, and
// a hundred that follow one another by _id and lie apart. Allocations are the server's alone.
func BenchmarkScans(b *testing.B) {
	s := benchServer(b, nil)
	c := dial(b, s)
	c.do(opMsg(bson.Build().String("createIndexes", "c").Array("indexes").Object("0").Object("key").Int32("seq", 1).End().String("name", "seq").End().End().String("$db", "bench").Doc()))
	for from := 0; from < scanDocs; from += 1000 {
		c.do(insertMessage(from, 1000, false))
		c.do(apartMessage(from, 1000))
	}
	dice := rand.New(rand.NewPCG(1, 2))
	span := func() *bson.Builder {
		from := dice.Int64N(scanDocs - 100)
		return bson.Build().String("find", "c").Object("filter").Object("seq").Int64("$gte", from).Int64("$lt", from+100).End().End().Int64("batchSize", 101)
	}
	for _, work := range []struct {
		name string
		find func() *bson.Builder
	}{
		{"range", span},
		{"covered", func() *bson.Builder { return span().Object("projection").Int32("_id", 0).Int32("seq", 1).End() }},
		{"apart", func() *bson.Builder {
			return bson.Build().String("find", "apart").Object("filter").Object("_id").Value("$gte", apartID(dice.IntN(scanDocs*9/10))).End().End().
				Object("sort").Int32("_id", 1).End().Int64("limit", 100)
		}},
	} {
		finds := make([][]byte, 1000)
		for i := range finds {
			finds[i] = opMsg(session(work.find()).Doc())
		}
		b.Run(work.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.do(finds[i%len(finds)])
			}
		})
	}
}

// apartID has no order that follows that of n.
func apartID(n int) bson.Value {
	var id [12]byte
	binary.BigEndian.PutUint64(id[4:], uint64(n)*0x9E3779B97F4A7C15)
	return bson.ObjectID(id)
}

func apartMessage(from, n int) []byte {
	b := bson.Build().String("insert", "apart").String("$db", "bench").Array("documents")
	for i := range n {
		b.Document(bson.IndexKey(i), apartDoc(from+i))
	}
	return opMsg(b.End().Object("writeConcern").Bool("j", false).End().Doc())
}

func apartDoc(n int) bson.Doc {
	b := bson.Build().Value("_id", apartID(n))
	for it := benchDoc(n).Iter(); it.Next(); {
		if it.Key() != "_id" {
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Doc()
}
