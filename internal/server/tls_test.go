package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/wire"
)

// secure is a listener and a way to dial it over TLS.
func secure(t *testing.T) (wrap func(net.Listener) net.Listener, dial func(*served) *client) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	wrap = func(l net.Listener) net.Listener { return tls.NewListener(l, config) }
	dial = func(s *served) *client {
		t.Helper()
		c, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{RootCAs: roots})
		if err != nil {
			t.Fatal(err)
		}
		return newClient(t, c)
	}
	return wrap, dial
}

// TestTLS has a listener that gives connections other than TCP's: the server needs no more than net.Conn.
func TestTLS(t *testing.T) {
	wrap, dial := secure(t)
	t.Run("operations are watched", func(t *testing.T) {
		w := newWaiter()
		watchLeavesTheConnectionWhole(t, w, startOn(t, Options{}, w, wrap), dial)
	})
	t.Run("a hang-up ends the operation", func(t *testing.T) {
		for _, ahead := range []int{0, 10, len(message(2, `{ ping: 1 }`))} {
			w := newWaiter()
			s := startOn(t, Options{}, w, wrap)
			c := dial(s)
			c.send(1, 0, `{ wait: 1 }`)
			<-w.began
			c.raw(message(2, `{ ping: 1 }`)[:ahead])
			c.Close()
			if cause := w.causeOf(s); !mongoerr.Is(cause, mongoerr.ClientDisconnect) {
				t.Errorf("the operation ended by %v", cause)
			}
		}
	})
	t.Run("large messages and replies", func(t *testing.T) {
		s := startOn(t, Options{}, echo, wrap)
		c := dial(s)
		for _, size := range []int{10, 4000, 40_000, 4 << 20} {
			body := bson.Build().Int32("ping", 1).Binary("pad", 0, make([]byte, size)).Doc()
			if _, err := c.w.WriteMessage(wire.Outgoing{RequestID: 1, OpCode: wire.OpMsg, Compressor: wire.Uncompressed, Body: body}); err != nil {
				t.Fatal(err)
			}
			if _, reply := c.receive(); len(reply) <= size {
				t.Errorf("%d bytes came back of %d", len(reply), size)
			}
		}
	})
	t.Run("stopping", func(t *testing.T) {
		s := startOn(t, Options{}, echo, wrap)
		idle, mute := dial(s), dialTo(t, s.Addr().String()) // who begins no handshake
		idle.ask(`{ ping: 1 }`)
		s.stop()
		<-s.ended
		if s.err != nil {
			t.Error(s.err)
		}
		mute.wantClosed()
	})
}
