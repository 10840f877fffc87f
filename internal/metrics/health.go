package metrics

import (
	"fmt"
	"net/http"

	"github.com/ebbdb/ebb/internal/bson"
)

// LivePath is where ServeLive answers.
const LivePath = "/health/live"

// ServeLive says that the process answers, whatever it has to tell beside that. Whoever gets no answer may start it anew.
func ServeLive(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "alive") }

// serveReady says whether clients should be sent here. The reasons not to are no secrets.
func (h *Handler) serveReady(w http.ResponseWriter, r *http.Request) {
	if why := h.unready(r); why != "" {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, why)
		return
	}
	fmt.Fprintln(w, "ready")
}

// unready is why clients should not be sent here; "" when they should.
func (h *Handler) unready(r *http.Request) string {
	select {
	case <-h.opts.Stopping:
		return "the server is shutting down"
	default:
	}
	if why := h.unavailable(); why != "" {
		return why
	}
	hello, err := run(r.Context(), h.opts.Commands, bson.Build().Int32("hello", 1).String("$db", "admin").Doc())
	switch {
	case err != nil:
		return "the server does not answer: " + err.Error()
	case !hello.Lookup("isWritablePrimary").Truthy() && !hello.Lookup("secondary").Truthy():
		return "the member of the replica set is neither primary nor secondary"
	}
	return ""
}

func (h *Handler) unavailable() string {
	if h.opts.Unavailable == nil {
		return ""
	}
	return h.opts.Unavailable()
}
