package ebb

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/ebbdb/ebb/internal/config"
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
	certificates := s.transport.certificates
	if isLocal(addresses) { // what does not leave the machine needs no TLS, and no certificate is for 127.0.0.1
		certificates = nil
	}
	return metrics.Listen(context.Background(), addresses, port, certificates, s.log.For("NETWORK"))
}

// tellMetrics begins to answer those who ask for figures.
func (s *Server) tellMetrics() {
	if s.metrics == nil {
		return
	}
	s.log.For("NETWORK").Info("Telling metrics", "address", s.metrics.Addr())
	s.metrics.Serve(s.figures())
}

// isLocal says whether addresses to listen on are this machine's own alone.
func isLocal(addresses []string) bool { return (&config.Console{BindIP: addresses}).IsLocal() }

// figures answers requests for figures and for the health of the server by the database of the moment. It waits for none: a server that has
// none is alive, and not ready.
func (s *Server) figures() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == metrics.LivePath {
			metrics.ServeLive(w, r)
			return
		}
		now, stop := context.WithCancel(r.Context())
		stop()
		d := s.serving.Enter(now)
		if d == nil && s.sharing != nil {
			s.sharing.figures(w, r)
			return
		}
		if d == nil {
			http.Error(w, "the server has no data at the moment", http.StatusServiceUnavailable)
			return
		}
		defer d.Leave()
		d.metrics.ServeHTTP(w, r)
	})
}

// metricsHandler answers requests for figures of a database, and whether it is ready.
func (s *Server) metricsHandler(d *database) *metrics.Handler {
	return metrics.New(metrics.Options{
		Commands: d.commands, Expiry: d.monitor, Version: Version, MongoVersion: MongoVersion,
		Authorization: s.opts.Authorization, Names: s.ownNames(), NextID: s.network.NextID, Unavailable: d.unavailable, Stopping: s.network.Stopping(), Log: s.log.For("NETWORK"),
	})
}

// unavailable is what keeps the data from being reached at the moment. A store on this machine fails for good, or not.
func (f *foundation) unavailable() string {
	e := f.tikv.Load()
	if e == nil {
		return ""
	}
	return e.Stats().Unavailable
}

// ownNames are the names by which a request for figures may call the server: the machine's, and those that it was told to listen on.
func (s *Server) ownNames() (names []string) {
	if name, err := os.Hostname(); err == nil {
		names = append(names, strings.ToLower(name))
	}
	var addresses []string
	if s.opts.Metrics != nil {
		addresses = append(addresses, s.opts.Metrics.Addresses...)
	}
	if s.opts.Console != nil {
		addresses = append(addresses, s.opts.Console.Addresses...)
	}
	for _, a := range addresses {
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
