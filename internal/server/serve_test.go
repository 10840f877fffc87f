package server

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/wire"
)

// echo replies with what it was asked.
var echo = handlerFunc(func(_ context.Context, c *Conn, r *Request) Reply {
	b := bson.Build().Document("body", r.Body)
	for _, s := range r.Sequences {
		b.Array(s.Name)
		i := 0
		for d := range s.Docs() {
			b.Document(bson.IndexKey(i), d)
			i++
		}
		b.End()
	}
	return Reply{Body: b.Double("ok", 1).Doc()}
})

func TestAsksAndAnswers(t *testing.T) {
	s := start(t, Options{}, echo)
	c := s.dial()
	c.send(7, 0, `{ ping: 1, $db: "admin" }`)
	m, doc := c.receive()
	if m.OpCode != wire.OpMsg || m.ResponseTo != 7 || m.Flags != 0 {
		t.Errorf("%s answers %d, flags %d", m.OpCode, m.ResponseTo, m.Flags)
	}
	want(t, doc, `{ body: { ping: 1, $db: "admin" }, ok: 1.0 }`)

	c.send(8, wire.FlagChecksumPresent, `{ ping: 1 }`)
	if m, _ := c.receive(); !m.Flags.Has(wire.FlagChecksumPresent) {
		t.Error("a message with a checksum was answered without")
	}

	payload := append([]byte{0, 0, 0, 0, 0}, bson.MustDoc(`{ insert: "c" }`)...)
	section := append([]byte("documents\x00"), bson.MustDoc(`{ _id: 1 }`)...)
	section = append(section, bson.MustDoc(`{ _id: 2 }`)...)
	payload = append(payload, 1)
	payload = append(binary.LittleEndian.AppendUint32(payload, uint32(4+len(section))), section...)
	c.raw(frame(wire.OpMsg, 9, payload))
	_, doc = c.receive()
	want(t, doc, `{ body: { insert: "c" }, documents: [ { _id: 1 }, { _id: 2 } ], ok: 1.0 }`)

	stats := s.Stats()
	if stats.Current != 1 || stats.Available != 99 || stats.TotalCreated != 1 || stats.Requests != 3 || stats.BytesIn == 0 || stats.BytesOut == 0 {
		t.Errorf("%+v", stats)
	}
}

func TestOldClients(t *testing.T) {
	c := start(t, Options{}, echo).dial()
	c.raw(query(1, "admin.$cmd", `{ isMaster: 1, helloOk: true }`))
	// The reader knows no OP_REPLY: no client of ours is that old. So it is taken apart here.
	want(t, c.opReply(1, 8), `{ body: { isMaster: 1, helloOk: true, $db: "admin" }, ok: 1.0 }`)

	c.raw(query(2, "admin.$cmd", `{ $query: { ismaster: 1 }, $readPreference: { mode: "primary" } }`))
	want(t, c.opReply(2, 8), `{ body: { ismaster: 1, $db: "admin" }, ok: 1.0 }`)

	c.raw(query(3, "admin.$cmd", `{ find: "c" }`))
	want(t, c.opReply(3, 8), `{ body: { find: "c", $db: "admin" }, ok: 1.0 }`)
	// What the body says might not be where the command runs, and cursors are held against it.
	c.raw(query(7, "admin.$cmd", `{ $query: { find: "c", $db: "other" } }`))
	want(t, c.opReply(7, 8), `{ ok: 0.0, errmsg: "$db is not allowed in OP_QUERY requests", code: 40621, codeName: "Location40621" }`)

	gone := func(op string) string {
		return `{ $err: "` + op + ` is no longer supported. The client driver may require an upgrade. ` +
			`For more details see https://dochub.mongodb.org/core/legacy-opcode-removal", code: 5739101, ok: 0.0 }`
	}
	c.raw(query(4, "d.c", `{}`))
	want(t, c.opReply(4, 8|2), gone("OP_QUERY"))
	c.raw(frame(wire.OpGetMore, 5, make([]byte, 20)))
	want(t, c.opReply(5, 8|2), gone("OP_GET_MORE"))
	c.raw(frame(wire.OpInsert, 6, make([]byte, 20)))
	c.wantClosed()
}

// opReply reads an OP_REPLY.
func (c *client) opReply(responseTo, flags int32) bson.Doc {
	c.t.Helper()
	var head [36]byte
	readFull(c, head[:])
	number := func(at int) int32 { return int32(binary.LittleEndian.Uint32(head[at:])) }
	doc := make(bson.Doc, number(0)-36)
	readFull(c, doc)
	if number(8) != responseTo || wire.OpCode(number(12)) != wire.OpReply || number(16) != flags || number(32) != 1 {
		c.t.Errorf("answer to %d, op code %d, flags %d, %d documents", number(8), number(12), number(16), number(32))
	}
	return doc
}

func readFull(c *client, b []byte) {
	c.t.Helper()
	for len(b) > 0 {
		n, err := c.Read(b)
		if err != nil {
			c.t.Fatal(err)
		}
		b = b[n:]
	}
}

func TestUnacknowledged(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	s := start(t, Options{}, handlerFunc(func(ctx context.Context, c *Conn, r *Request) Reply {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, strings.Clone(r.Body.FirstKey()))
		return echo(ctx, c, r)
	}))
	c := s.dial()
	c.send(1, wire.FlagMoreToCome, `{ insert: 1 }`)
	c.send(2, wire.FlagMoreToCome, `{ update: 1 }`)
	// An invalid one gets no answer either.
	c.raw(frame(wire.OpMsg, 3, []byte{2, 0, 0, 0, 0, 5, 0, 0, 0, 1}))
	c.send(4, 0, `{ ping: 1 }`)
	m, doc := c.receive()
	if m.ResponseTo != 4 {
		t.Errorf("an answer to %d", m.ResponseTo)
	}
	want(t, doc, `{ body: { ping: 1 }, ok: 1.0 }`)
	mu.Lock()
	defer mu.Unlock()
	if got := fmt.Sprint(seen); got != "[insert update ping]" {
		t.Error(got)
	}
}

func TestExhaust(t *testing.T) {
	s := start(t, Options{}, handlerFunc(func(_ context.Context, _ *Conn, r *Request) Reply {
		n := r.Body.Lookup("n").Int32()
		return Reply{
			Body: bson.Build().Int32("n", n).Doc(), MoreToCome: n < 3,
			Next: bson.Build().Int32("hello", 1).Int32("n", n+1).Doc(),
		}
	}))
	c := s.dial()
	c.send(50, wire.FlagExhaustAllowed, `{ hello: 1, n: 1 }`)
	previous := int32(50)
	for n := range int32(3) {
		m, doc := c.receive()
		want(t, doc, fmt.Sprintf("{ n: %d }", n+1))
		if m.ResponseTo != previous || m.Flags.Has(wire.FlagMoreToCome) != (n < 2) {
			t.Errorf("reply %d: answers %d, wanted %d; flags %d", n, m.ResponseTo, previous, m.Flags)
		}
		previous = m.RequestID
	}
	// Without the flag one request has one reply.
	c.send(60, 0, `{ hello: 1, n: 1 }`)
	if m, _ := c.receive(); m.Flags != 0 {
		t.Errorf("flags %d", m.Flags)
	}
	want(t, c.ask(`{ hello: 1, n: 9 }`), "{ n: 9 }")
}

func TestPanicEndsTheOperationAlone(t *testing.T) {
	s := start(t, Options{}, handlerFunc(func(ctx context.Context, c *Conn, r *Request) Reply {
		if r.Body.FirstKey() == "boom" {
			panic("the floor is gone")
		}
		return echo(ctx, c, r)
	}))
	c, other := s.dial(), s.dial()
	want(t, c.ask(`{ boom: 1 }`), `{ ok: 0.0, errmsg: "operation ended by an internal error, of which the log tells", code: 8, codeName: "UnknownError" }`)
	want(t, c.ask(`{ ping: 1 }`), `{ body: { ping: 1 }, ok: 1.0 }`)
	want(t, other.ask(`{ ping: 1 }`), `{ body: { ping: 1 }, ok: 1.0 }`)
	if n := s.Stats().Active; n != 0 {
		t.Errorf("%d operations are active", n)
	}
}

func TestInvalidMessageIsAnswered(t *testing.T) {
	c := start(t, Options{}, echo).dial()
	c.raw(frame(wire.OpMsg, 3, []byte{0, 0, 0, 0, 0, 5, 0, 0, 0, 1}))
	m, doc := c.receive()
	if m.ResponseTo != 3 {
		t.Errorf("an answer to %d", m.ResponseTo)
	}
	want(t, doc, `{ ok: 0.0, errmsg: "invalid BSON: document not terminated", code: 22, codeName: "InvalidBSON" }`)
	deep := bson.EmptyDoc
	for range 5000 {
		deep = bson.Build().Document("a", deep).Doc()
	}
	c.raw(frame(wire.OpMsg, 4, append([]byte{0, 0, 0, 0, 0}, deep...)))
	_, doc = c.receive()
	want(t, doc, `{ ok: 0.0, errmsg: "BSONObj exceeds maximum nested object depth: 200", code: 15, codeName: "Overflow" }`)
	want(t, c.ask(`{ ping: 1 }`), `{ body: { ping: 1 }, ok: 1.0 }`)
}

func TestBrokenFrameClosesItsConnectionAlone(t *testing.T) {
	s := start(t, Options{}, echo)
	other := s.dial()
	for _, bad := range [][]byte{
		[]byte("PUT / HTTP/1.1\r\nHost: x\r\n\r\n"),
		{15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		frame(1234, 1, nil),
		frame(wire.OpMsg, 1, []byte{4, 0, 0, 0}),
	} {
		c := s.dial()
		c.raw(bad)
		c.wantClosed()
		want(t, other.ask(`{ ping: 1 }`), `{ body: { ping: 1 }, ok: 1.0 }`)
	}
}

func TestCloseAfterReply(t *testing.T) {
	c := start(t, Options{}, handlerFunc(func(context.Context, *Conn, *Request) Reply {
		r := okReply()
		r.Close = true
		return r
	})).dial()
	want(t, c.ask(`{ logout: 1 }`), `{ ok: 1.0 }`)
	c.wantClosed()
}

// TestCloseWithoutReply: a reply without a body ends the connection, and nothing is written.
func TestCloseWithoutReply(t *testing.T) {
	c := start(t, Options{}, handlerFunc(func(context.Context, *Conn, *Request) Reply { return Reply{Close: true} })).dial()
	c.send(1, 0, `{ ping: 1 }`)
	c.wantClosed()
}

func TestCompressionIsNegotiated(t *testing.T) {
	var settled [][]string
	s := start(t, Options{Compressors: []string{"snappy", "zlib"}}, handlerFunc(func(_ context.Context, c *Conn, r *Request) Reply {
		if v := r.Body.Lookup("compression"); !v.IsMissing() {
			var names []string
			for _, n := range v.Doc().Values(nil) {
				names = append(names, n.Str())
			}
			settled = append(settled, c.NegotiateCompression(names), c.Compression())
		}
		return okReply()
	}))
	c := s.dial()
	ask := func(with wire.CompressorID, body string, in wire.CompressorID) {
		t.Helper()
		c.sendWith(with, 1, 0, body)
		if m, _ := c.receive(); m.Compressor != in {
			t.Errorf("%s in %s was answered in %s, not in %s", body, with, m.Compressor, in)
		}
	}
	ask(wire.Zlib, `{ ping: 1 }`, wire.Uncompressed) // not settled yet
	ask(wire.Uncompressed, `{ hello: 1, compression: [ "zstd", "zlib", "zlib", "lz4", "snappy" ] }`, wire.Uncompressed)
	if got := fmt.Sprint(settled); got != "[[zlib snappy] [zlib snappy]]" {
		t.Error(got)
	}
	ask(wire.Zlib, `{ ping: 1 }`, wire.Zlib)
	ask(wire.Snappy, `{ ping: 1 }`, wire.Snappy)
	ask(wire.Uncompressed, `{ ping: 1 }`, wire.Uncompressed)
	ask(wire.Zlib, `{ saslStart: 1 }`, wire.Uncompressed)
	ask(wire.Zlib, `{ hello: 1, compression: [] }`, wire.Uncompressed)
	ask(wire.Zlib, `{ ping: 1 }`, wire.Uncompressed)
	c.sendWith(wire.Zstd, 1, 0, `{ ping: 1 }`) // the server has none
	c.wantClosed()
}

func TestConnState(t *testing.T) {
	s := start(t, Options{}, handlerFunc(func(_ context.Context, c *Conn, _ *Request) Reply {
		n, _ := c.State().(int)
		c.SetState(n + 1)
		return Reply{Body: bson.Build().Number("id", c.ID()).Number("n", int64(n)).
			Bool("mine", c.Remote() != "" && c.Local() != "").Doc()}
	}))
	a, b := s.dial(), s.dial()
	want(t, a.ask(`{ x: 1 }`), `{ id: 1, n: 0, mine: true }`)
	want(t, b.ask(`{ x: 1 }`), `{ id: 2, n: 0, mine: true }`)
	want(t, a.ask(`{ x: 1 }`), `{ id: 1, n: 1, mine: true }`)
}

func TestManyClientsAtOnce(t *testing.T) {
	s := start(t, Options{}, echo)
	var all sync.WaitGroup
	for i := range 20 {
		c := s.dial()
		all.Go(func() {
			for j := range 200 {
				body := fmt.Sprintf(`{ a: %d, b: %d }`, i, j)
				if got := c.ask(body).Lookup("body").String(); got != body {
					t.Errorf("got %s, want %s", got, body)
					return
				}
			}
		})
	}
	all.Wait()
}
