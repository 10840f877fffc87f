// Package metrics tells Prometheus how a server is doing, and whoever keeps it running whether it is alive and ready. It reads
// serverStatus and the figures of the TTL monitor, and must not know how those come about.
//
// # What is told
//
//   - status_table.go says of each figure of serverStatus what it is called here, or why it is left out; status.go reads the document by
//     that table. A test holds the table to what servers tell.
//   - expiry.go tells of expiry collection by collection, of maxCollections at most, so that nobody can have a scrape grow without end
//     by making collections.
//   - The Go runtime's and the process's own figures are the client library's.
//
// Nothing is gathered between scrapes: who is not asked does no work.
//
// # Who is told
//
// access.go says who may read the figures. Whether the server lives and is ready is told to everybody.
package metrics

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/ttl"
)

// Limits of what may be asked for.
const (
	// maxScrapes is how many scrapes are answered at a time; who comes beyond that is told to come again.
	maxScrapes = 2
	// scrapePatience is how long gathering may take.
	scrapePatience = 10 * time.Second
	// maxCollections is how many collections are told of one by one.
	maxCollections = 500
)

// Commands runs commands, in the server's own name and in those of users; it is a command.Server.
type Commands interface {
	Inside() *command.Conn
	ConnectOwn(id int64, remote, local string) *command.Conn
	Disconnect(*command.Conn)
	LogIn(ctx context.Context, conn *command.Conn, db, user, password string) error
	Handle(context.Context, *command.Conn, command.Request) command.Reply
}

// Expiry tells how expiry stands; it is a ttl.Monitor.
type Expiry interface {
	Collections(ctx context.Context, most int) (all []ttl.Collection, left int, err error)
	Held() string
}

// Options say what is told, and to whom.
type Options struct {
	Commands Commands
	Expiry   Expiry
	// Version is Ebb's, MongoVersion that of the MongoDB it speaks as.
	Version, MongoVersion string
	// Authorization says that not everybody may read figures.
	Authorization bool
	// Names are those by which a request may call the server, beside addresses and localhost.
	Names []string
	// NextID numbers the connections of those who log in.
	NextID func() int64
	// Unavailable says what keeps the data from being reached at the moment; "" when nothing does. nil: nothing ever does.
	Unavailable func() string
	// Stopping is closed when the server is about to end: it is not ready any more.
	Stopping <-chan struct{}
	Log      *slog.Logger
}

// Handler answers requests for /metrics, /health/live and /health/ready.
type Handler struct {
	opts    Options
	mux     *http.ServeMux
	figures http.Handler
}

// New returns a Handler.
func New(o Options) *Handler {
	h := &Handler{opts: o, mux: http.NewServeMux()}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&collector{o}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	h.figures = promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.HTTPErrorOnError,
		MaxRequestsInFlight: maxScrapes, Timeout: scrapePatience,
	})
	h.mux.HandleFunc("GET /metrics", h.serveFigures)
	h.mux.HandleFunc("GET "+LivePath, ServeLive)
	h.mux.HandleFunc("GET /health/ready", h.serveReady)
	h.mux.HandleFunc("/", serveNothing)
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	h.mux.ServeHTTP(w, r)
}

func (h *Handler) serveFigures(w http.ResponseWriter, r *http.Request) {
	if status, why := h.refuses(r); why != "" {
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Basic realm="ebb", charset="UTF-8"`)
		}
		http.Error(w, why, status)
		return
	}
	h.figures.ServeHTTP(w, r)
}

func serveNothing(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "there is nothing here but /metrics, /health/live and /health/ready", http.StatusNotFound)
}

// collector gathers all that is told of this server. It describes nothing beforehand: what there is to tell depends on the server.
type collector struct{ Options }

// Describe implements prometheus.Collector.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	t := teller{out}
	t.tell(figure{name: "ebb_build_info", help: "The server's version, and that of the MongoDB that it speaks as.", labels: []string{"version", "mongo_version"}},
		1, c.Version, c.MongoVersion)
	status, err := run(ctx, c.Commands, statusCommand())
	if err != nil {
		t.fail(err)
		return
	}
	t.status(status)
	t.members(ctx, c.Commands, status)
	t.expiry(ctx, c.Expiry)
}

// teller hands figures to whoever collects them.
type teller struct{ out chan<- prometheus.Metric }

// tell tells one value of a figure.
func (t teller) tell(f figure, value float64, labels ...string) {
	kind := prometheus.GaugeValue
	if f.counts {
		kind = prometheus.CounterValue
	}
	m, err := prometheus.NewConstMetric(prometheus.NewDesc(f.name, f.help, f.labels, nil), kind, value, labels...)
	if err != nil {
		t.fail(err)
		return
	}
	t.out <- m
}

// fail has the scrape end with an error: figures that are missing without a word would be taken for none.
func (t teller) fail(err error) {
	t.out <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
}
