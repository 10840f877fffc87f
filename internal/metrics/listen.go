package metrics

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/certificate"
	"github.com/ebbdb/ebb/internal/server"
)

// Limits of those who connect.
const (
	// maxConns is how many connections may be open at a time on one address; see server.Crowd.
	maxConns = 32
	// maxHeaderBytes bounds a request's headers. Bodies are not read.
	maxHeaderBytes = 16 << 10
	// requestPatience is how long a request may take to come, replyPatience how long an answer may take to be made and read, and idle how
	// long a connection may be open without either.
	requestPatience, replyPatience, idle = 10 * time.Second, 30 * time.Second, 2 * time.Minute
	// grace is how long answers may go on once the server ends.
	grace = time.Second
)

// Door is where a Handler listens on its own.
type Door struct {
	http      *http.Server
	listeners []net.Listener
	serving   sync.WaitGroup
}

// Listen opens the listeners: addresses are IP addresses or host names, and "*" all of the machine; port 0 is any free one. With
// certificates it speaks TLS, and nothing else.
func Listen(ctx context.Context, addresses []string, port int, certificates *certificate.Store, log *slog.Logger) (*Door, error) {
	d := &Door{http: &http.Server{
		ReadTimeout: requestPatience, WriteTimeout: replyPatience, IdleTimeout: idle, MaxHeaderBytes: maxHeaderBytes,
		ConnState: server.NoteState, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
	open, err := server.ListenAll(ctx, addresses, port)
	if err != nil {
		return nil, fmt.Errorf("listen for those who ask for metrics: %w", err)
	}
	for _, l := range open {
		l = server.NewCrowd(l, maxConns)
		if certificates != nil {
			l = tls.NewListener(l, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
				return withoutClients(certificates.Set().Config), nil
			}})
		}
		d.listeners = append(d.listeners, l)
	}
	return d, nil
}

// withoutClients is a configuration for those who need no certificate.
func withoutClients(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.ClientAuth, c.VerifyConnection = tls.NoClientCert, nil
	return c
}

// Addr is where it listens first.
func (d *Door) Addr() string { return d.listeners[0].Addr().String() }

// Serve answers by h until Close. It does not wait.
func (d *Door) Serve(h http.Handler) {
	d.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.IgnoreBody(w, r)
		h.ServeHTTP(w, r)
	})
	for _, l := range d.listeners {
		d.serving.Go(func() { _ = d.http.Serve(l) }) // until it is closed
	}
}

// Close ends it: answers under way have a moment left.
func (d *Door) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := d.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = d.http.Close()
	}
	for _, l := range d.listeners { // those that were never served
		if e := l.Close(); e != nil && !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	d.serving.Wait()
	return err
}
