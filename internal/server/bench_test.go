package server

import (
	"context"
	"crypto/tls"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/certificate"
	"github.com/ebbdb/ebb/internal/certificate/certtest"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/wire"
)

// BenchmarkRoundTrip is the floor of every command: one client, one connection, loopback, a handler that does nothing. Over TLS, and
// with replies of other sizes, it is what these add.
func BenchmarkRoundTrip(b *testing.B) {
	m := certtest.New(b, time.Now())
	ca := m.Authority("the authority")
	store, err := certificate.Open(certificate.Options{KeyFile: m.Write("server.pem", m.Issue(ca, "server", certtest.Local).PEM()),
		CAFile: m.Write("ca.pem", ca.CertPEM()), AllowNone: true}, clock.Wall(), serverlog.Discard().For("NETWORK"))
	if err != nil {
		b.Fatal(err)
	}
	mode := &atomic.Int32{}
	mode.Store(int32(PreferTLS))
	yes := func() bool { return true }
	s, err := Listen(b.Context(), Options{Addresses: []string{"127.0.0.1"}, MaxConns: 10, Log: serverlog.Discard().For("NETWORK"), Clock: clock.Wall(),
		TLS: &TLS{Certificates: store, Mode: mode, NoPlainLog: yes, NoBareLog: yes, WarnDays: func() int64 { return 0 }}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	var body atomic.Pointer[bson.Doc]
	go func() {
		ended <- s.Serve(ctx, handlerFunc(func(context.Context, *Conn, *Request) Reply { return Reply{Body: *body.Load()} }))
	}()
	ask := wire.Outgoing{OpCode: wire.OpMsg, Compressor: wire.Uncompressed, Body: bson.MustDoc(`{ find: "c", filter: { _id: 1 }, $db: "d" }`)}
	for _, size := range []int{100, 30_000, 1 << 20} {
		d := bson.Build().Double("ok", 1).Binary("pad", 0, make([]byte, size)).Doc()
		body.Store(&d)
		for _, over := range []string{"plain", "tls"} {
			c := dialTo(b, s.Addr().String())
			if over == "tls" {
				c = newClient(b, tls.Client(c.Conn, &tls.Config{RootCAs: certtest.Pool(ca), ServerName: "localhost"}))
			}
			b.Run(over+"/"+strconv.Itoa(size), func(b *testing.B) {
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
			})
			c.Close()
		}
	}
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}
