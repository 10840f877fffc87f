package ebb

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"maps"
	"net"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// benchDocs is how many documents the benchmarks read from.
const benchDocs = 20_000

// rawClient sends one message and reads one reply, and allocates nothing.
type rawClient struct {
	tb     testing.TB
	socket net.Conn
	buf    []byte
}

func dial(tb testing.TB, s *Server) *rawClient {
	tb.Helper()
	socket, err := net.Dial("tcp", s.Addr())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { socket.Close() })
	return &rawClient{tb: tb, socket: socket, buf: make([]byte, 1<<20)}
}

// opMsg is a message with one document.
func opMsg(body bson.Doc) []byte {
	m := make([]byte, 21, 21+len(body))
	binary.LittleEndian.PutUint32(m[0:], uint32(21+len(body)))
	binary.LittleEndian.PutUint32(m[4:], 1)
	binary.LittleEndian.PutUint32(m[12:], 2013)
	return append(m, body...)
}

func (c *rawClient) roundTrip(message []byte) bson.Doc {
	if _, err := c.socket.Write(message); err != nil {
		c.tb.Fatal(err)
	}
	if _, err := io.ReadFull(c.socket, c.buf[:4]); err != nil {
		c.tb.Fatal(err)
	}
	n := binary.LittleEndian.Uint32(c.buf)
	if _, err := io.ReadFull(c.socket, c.buf[4:n]); err != nil {
		c.tb.Fatal(err)
	}
	return bson.Doc(c.buf[21:n])
}

// do is roundTrip for what must succeed.
func (c *rawClient) do(message []byte) {
	if reply := c.roundTrip(message); reply.Lookup("ok").AsDouble() != 1 || !reply.Lookup("writeErrors").IsMissing() {
		c.tb.Fatalf("reply: %s", reply)
	}
}

func benchID(n int) bson.Value {
	var id [12]byte
	binary.BigEndian.PutUint64(id[4:], uint64(n))
	return bson.ObjectID(id)
}

// benchDoc is about 300 bytes in 12 fields.
func benchDoc(n int) bson.Doc {
	b := bson.Build().Value("_id", benchID(n)).Int32("n", int32(n)).String("user", "user-000017").Int64("seq", int64(n)).
		String("kind", "session").Double("score", 0.5).Bool("live", true).Date("at", 1_700_000_000_000+int64(n))
	return b.String("agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36").Int32("hits", 7).Int32("bucket", int32(n%100)).
		String("note", "the quick brown fox jumps over the lazy dog, and the dog lets it").Doc()
}

func benchServer(b *testing.B, set *ReplicaSet) *Server {
	b.Helper()
	s, err := Open(Options{Port: AnyPort, DBPath: b.TempDir(), ReplicaSet: set})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

func insertMessage(from, n int, journaled bool) []byte {
	b := bson.Build().String("insert", "c").String("$db", "bench").Array("documents")
	for i := range n {
		b.Document(bson.IndexKey(i), benchDoc(from+i))
	}
	b.End()
	if !journaled {
		b.Object("writeConcern").Bool("j", false).End()
	}
	return opMsg(b.Doc())
}

// session is what drivers add to each command.
func session(b *bson.Builder) *bson.Builder {
	return b.Object("lsid").Value("id", bson.Binary(4, make([]byte, 16))).End().String("$db", "bench")
}

// What one command costs from socket to socket, the client's side included. Allocations are the server's alone.
func BenchmarkCommand(b *testing.B) {
	s := benchServer(b, nil)
	c := dial(b, s)
	for from := 0; from < benchDocs; from += 1000 {
		c.do(insertMessage(from, 1000, true))
	}
	b.Run("ping", func(b *testing.B) {
		ping := opMsg(session(bson.Build().Int32("ping", 1)).Doc())
		b.ReportAllocs()
		for b.Loop() {
			c.do(ping)
		}
	})
	b.Run("find by _id", func(b *testing.B) {
		finds := make([][]byte, 1000)
		for i := range finds {
			find := bson.Build().String("find", "c").Object("filter").Value("_id", benchID(i*17)).End().Int64("limit", 1).Bool("singleBatch", true)
			finds[i] = opMsg(session(find).Doc())
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			c.do(finds[i%len(finds)])
		}
	})
	next := benchDocs
	for _, journaled := range []bool{false, true} {
		name := "insert"
		if journaled {
			name = "insert, synced"
		}
		b.Run(name, func(b *testing.B) {
			message := insertMessage(0, 1, journaled)
			at := bytes.Index(message, []byte("_id\x00")) + 4
			b.ReportAllocs()
			for b.Loop() {
				binary.BigEndian.PutUint64(message[at+4:], uint64(next))
				c.do(message)
				next++
			}
		})
	}
	changes := map[string]func(id bson.Value) *bson.Builder{
		"update by _id": func(id bson.Value) *bson.Builder {
			b := bson.Build().String("update", "c").Array("updates").Object("0").Object("q").Value("_id", id).End()
			return b.Object("u").Object("$inc").Int32("hits", 1).End().End().End().End()
		},
		"delete by _id": func(id bson.Value) *bson.Builder { // finds one once
			b := bson.Build().String("delete", "c").Array("deletes").Object("0").Object("q").Value("_id", id).End()
			return b.Int32("limit", 1).End().End()
		},
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		b.Run(name, func(b *testing.B) {
			messages := make([][]byte, benchDocs)
			for i := range messages {
				messages[i] = opMsg(session(changes[name](benchID(i)).Object("writeConcern").Bool("j", false).End()).Doc())
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.do(messages[i*17%len(messages)])
			}
		})
	}
	b.Run("insert 1000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			message := insertMessage(next, 1000, true)
			b.StartTimer()
			c.do(message)
			next += 1000
		}
	})
}

// What an insert costs that a client may send again, beside its oplog entry and what is kept of the session.
func BenchmarkRetryableInsert(b *testing.B) {
	c := dial(b, benchServer(b, &ReplicaSet{Name: "rs0", Initiate: true}))
	c.do(insertMessage(0, 1, true)) // makes the collection
	insert := session(bson.Build().String("insert", "c")).Int64("txnNumber", 0).Object("writeConcern").Bool("j", false).End()
	message := opMsg(insert.Array("documents").Document("0", benchDoc(1)).End().Doc())
	number := bytes.Index(message, []byte("txnNumber\x00")) + len("txnNumber\x00")
	id := bytes.Index(message, []byte("_id\x00")) + len("_id\x00")
	b.ReportAllocs()
	for next := uint64(1); b.Loop(); next++ {
		binary.LittleEndian.PutUint64(message[number:], next)
		binary.BigEndian.PutUint64(message[id+4:], next)
		c.do(message)
	}
}
