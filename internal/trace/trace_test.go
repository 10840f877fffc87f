package trace_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/ebbdb/ebb"
)

// work has a server that sends its traces to an endpoint do a few things, and ends it.
func work(t *testing.T, parameters map[string]string) {
	t.Helper()
	server, err := ebb.Open(ebb.Options{Port: ebb.AnyPort, Engine: ebb.InMemory, Parameters: parameters})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + server.Addr() + "/?directConnection=true"))
	if err != nil {
		t.Fatal(err)
	}
	c := client.Database("app").Collection("people")
	if _, err := c.InsertOne(t.Context(), bson.D{{Key: "name", Value: "secret"}}); err != nil {
		t.Fatal(err)
	}
	if n, err := c.CountDocuments(t.Context(), bson.D{}); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if _, err := c.Find(t.Context(), bson.D{{Key: "$secret", Value: 1}}); err == nil {
		t.Fatal("an operator that is not there was taken")
	}
	_ = client.Disconnect(t.Context())
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}

// TestSpans has a collector get what a server tells of its commands, and nothing of what is in them.
func TestSpans(t *testing.T) {
	spans := make(chan *otlp.Span, 1000)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		if strings.Contains(string(body), "secret") {
			t.Error("the spans tell what is in commands")
		}
		for _, of := range request.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				for _, s := range scope.Spans {
					spans <- s
				}
			}
		}
	}))
	defer h.Close()
	work(t, map[string]string{"openTelemetryHttpEndpoint": h.URL + "/v1/traces"})
	close(spans)
	got := map[string]map[string]string{}
	for s := range spans {
		attributes := map[string]string{"status": s.Status.GetCode().String()}
		for _, a := range s.Attributes {
			attributes[a.Key] = a.Value.GetStringValue()
			if a.Key == "ebb.documents_examined" {
				attributes[a.Key] = strconv.FormatInt(a.Value.GetIntValue(), 10)
			}
		}
		if s.EndTimeUnixNano < s.StartTimeUnixNano || time.Duration(s.EndTimeUnixNano-s.StartTimeUnixNano) > time.Minute {
			t.Errorf("%s lasts from %d to %d", s.Name, s.StartTimeUnixNano, s.EndTimeUnixNano)
		}
		got[s.Name] = attributes
	}
	for name, want := range map[string]map[string]string{
		"insert app":    {"db.system.name": "mongodb", "db.operation.name": "insert", "db.namespace": "app", "db.collection.name": "people", "status": "STATUS_CODE_UNSET"},
		"aggregate app": {"db.collection.name": "people", "ebb.documents_examined": "1"},
		"find app":      {"error.type": "BadValue", "status": "STATUS_CODE_ERROR"},
	} {
		for key, value := range want {
			if got[name][key] != value {
				t.Errorf("%s: %s is %q, not %q", name, key, got[name][key], value)
			}
		}
	}
}

// TestNobodyThere: a collector that does not answer disturbs nobody, and nothing is sent where nothing is sampled.
func TestNobodyThere(t *testing.T) {
	asked := make(chan struct{}, 1000)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer h.Close()
	work(t, map[string]string{"openTelemetryHttpEndpoint": "http://127.0.0.1:9/v1/traces"})
	work(t, map[string]string{"openTelemetryHttpEndpoint": h.URL, "openTelemetrySampleRate": "0"})
	if len(asked) > 0 {
		t.Errorf("%d requests, and nothing is to be sampled", len(asked))
	}
	work(t, map[string]string{"openTelemetryHttpEndpoint": h.URL})
	if len(asked) == 0 {
		t.Error("nothing was sent")
	}
}

func TestBadEndpoint(t *testing.T) {
	for _, endpoint := range []string{"collector:4318", "ftp://collector/", "http://", "://"} {
		server, err := ebb.Open(ebb.Options{Port: ebb.AnyPort, Engine: ebb.InMemory, Parameters: map[string]string{"openTelemetryHttpEndpoint": endpoint}})
		if err == nil {
			server.Close()
			t.Errorf("%q was taken", endpoint)
		} else if !strings.Contains(err.Error(), "openTelemetryHttpEndpoint") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}
