package metrics

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Router is what there is to tell of a server that hands requests on to another one.
type Router struct {
	// Target is that other server's address; "" while none is known.
	Target string
	// Handed is how many requests were handed on, Clients how many connections have one behind them, and Reads how many reads it has answered itself.
	Handed, Clients, Reads int64
	Version, MongoVersion  string
}

// ServeRouter answers requests for the figures and the health of such a server. Neither tells anything of the data.
func ServeRouter(w http.ResponseWriter, r *http.Request, router Router) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	switch r.URL.Path {
	case "/health/ready":
		if router.Target == "" {
			http.Error(w, "no server works on the data at the moment", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	case "/metrics":
		registry := prometheus.NewRegistry()
		registry.MustRegister(router)
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	default:
		serveNothing(w, r)
	}
}

// Describe implements prometheus.Collector.
func (Router) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (r Router) Collect(out chan<- prometheus.Metric) {
	t := teller{out}
	t.tell(figure{name: "ebb_build_info", help: "The server's version, and that of the MongoDB that it speaks as.", labels: []string{"version", "mongo_version"}},
		1, r.Version, r.MongoVersion)
	t.tell(figure{name: "ebb_router_requests_total", help: "Requests that were handed on to the server that works on the data.", counts: true}, float64(r.Handed))
	t.tell(figure{name: "ebb_router_reads_total", help: "Reads that the server has answered itself.", counts: true}, float64(r.Reads))
	t.tell(figure{name: "ebb_router_connections", help: "Connections of clients with one behind them."}, float64(r.Clients))
}
