package server

import (
	"context"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/wire"
)

// BenchmarkRoundTrip is the floor of every command: one client, one connection, loopback, a handler that does nothing.
func BenchmarkRoundTrip(b *testing.B) {
	s, err := Listen(b.Context(), Options{Addresses: []string{"127.0.0.1"}, MaxConns: 10,
		Log: serverlog.Discard().For("NETWORK"), Clock: clock.Wall()})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	body := bson.MustDoc(`{ ok: 1.0 }`)
	go func() {
		ended <- s.Serve(ctx, handlerFunc(func(context.Context, *Conn, *Request) Reply { return Reply{Body: body} }))
	}()
	c := dialTo(b, s.Addr().String())
	ask := wire.Outgoing{OpCode: wire.OpMsg, Compressor: wire.Uncompressed, Body: bson.MustDoc(`{ find: "c", filter: { _id: 1 }, $db: "d" }`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.w.WriteMessage(ask); err != nil {
			b.Fatal(err)
		}
		m, err := c.r.ReadMessage()
		if err != nil {
			b.Fatal(err)
		}
		m.Release()
	}
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}
