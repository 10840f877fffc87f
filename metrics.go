package ebb

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/ebbdb/ebb/internal/metrics"
)

// openMetrics listens for those who ask for figures; nil where nobody may. Nobody is answered before tellMetrics.
func openMetrics(s *Server) (*metrics.Door, error) {
	o := s.opts.Metrics
	if o == nil {
		return nil, nil
	}
	addresses, port := o.Addresses, o.Port
	if len(addresses) == 0 {
		addresses = []string{"127.0.0.1"}
	}
	if port == AnyPort {
		port = 0
	}
	return metrics.Listen(context.Background(), addresses, port, s.transport.certificates, s.log.For("NETWORK"))
}

// tellMetrics begins to answer those who ask for figures.
func (s *Server) tellMetrics() {
	if s.metrics == nil {
		return
	}
	s.log.For("NETWORK").Info("Telling metrics", "address", s.metrics.Addr(), "tls", s.transport.certificates != nil)
	s.metrics.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := s.serving.enter(r.Context(), s)
		if d == nil {
			return
		}
		defer d.users.leave()
		d.metrics.ServeHTTP(w, r)
	}))
}

// metricsHandler answers requests for figures and for the health of the server.
func (s *Server) metricsHandler(d *database) *metrics.Handler {
	return metrics.New(metrics.Options{
		Commands: d.commands, Expiry: d.monitor, Version: Version, MongoVersion: MongoVersion,
		Authorization: s.opts.Authorization, Names: ownNames(s.opts.Metrics), Stopping: s.network.Stopping(), Log: s.log.For("NETWORK"),
	})
}

// ownNames are the names by which a request may call the server: the machine's, and those that it was told to listen on.
func ownNames(m *Metrics) (names []string) {
	if name, err := os.Hostname(); err == nil {
		names = append(names, strings.ToLower(name))
	}
	if m == nil {
		return names
	}
	for _, a := range m.Addresses {
		if net.ParseIP(a) == nil {
			names = append(names, strings.ToLower(a))
		}
	}
	return names
}

// MetricsAddr is the address at which figures are told, "" where they are not.
func (s *Server) MetricsAddr() string {
	if s.metrics == nil {
		return ""
	}
	return s.metrics.Addr()
}
