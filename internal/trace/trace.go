// Package trace tells a collector of OpenTelemetry how long each command took, as a span. It must not know what commands do, and tells nothing of
// what is in them: names of commands, databases and collections, counts and codes of errors.
//
// Where no endpoint is set there is no Tracer, and commands do not even ask. Where there is one, a command makes a span when it is over, if it is
// among those that are sampled, and puts it into a queue; what the queue has no room for is dropped. So a collector that is slow or gone costs
// clients nothing.
package trace

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otel "go.opentelemetry.io/otel/trace"

	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/parameter"
)

const (
	// maxQueued is how many spans wait to be sent, maxBatch how many are sent at once.
	maxQueued, maxBatch = 4096, 512
	// sendEvery is how long spans wait for others to be sent along, and patience how long the collector may take.
	sendEvery, patience = 2 * time.Second, 5 * time.Second
	// lastCall is how long it may take with the last of them, while the server ends.
	lastCall = 2 * time.Second
	// maxEndpointBytes is how long the endpoint's URL may be.
	maxEndpointBytes = 2048
	// failuresLogged is after how many failures, one after the other, another is logged.
	failuresLogged = 100
)

// Parameters are the settings of traces.
type Parameters struct {
	Endpoint *parameter.String
	Rate     *parameter.Double
}

// NewParameters adds them to a registry.
func NewParameters(r *parameter.Registry) *Parameters {
	return &Parameters{
		Endpoint: parameter.NewString(r, "openTelemetryHttpEndpoint", parameter.Startup, "", maxEndpointBytes),
		Rate:     parameter.NewDouble(r, "openTelemetrySampleRate", parameter.Both, 1, 0, 1),
	}
}

// Tracer makes spans and sends them.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   otel.Tracer
	log      *slog.Logger
}

// Open returns one that sends to the endpoint of p; nil where there is none. version is the server's, instance its name.
func Open(p *Parameters, version, instance string, log *slog.Logger) (*Tracer, error) {
	endpoint := p.Endpoint.Get()
	if endpoint == "" {
		return nil, nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("openTelemetryHttpEndpoint is no URL such as http://127.0.0.1:4318/v1/traces: %q", endpoint)
	}
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(endpoint), otlptracehttp.WithTimeout(patience),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))
	if err != nil {
		return nil, fmt.Errorf("send traces to %s: %w", endpoint, err)
	}
	t := &Tracer{log: log, provider: sdk.NewTracerProvider(
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "ebb"), attribute.String("service.version", version),
			attribute.String("service.instance.id", instance))),
		sdk.WithSampler(rate{p.Rate}),
		sdk.WithBatcher(&sending{SpanExporter: exporter, log: log, endpoint: endpoint}, sdk.WithMaxQueueSize(maxQueued), sdk.WithMaxExportBatchSize(maxBatch),
			sdk.WithBatchTimeout(sendEvery), sdk.WithExportTimeout(patience)),
	)}
	t.tracer = t.provider.Tracer("github.com/ebbdb/ebb")
	return t, nil
}

// Close sends what waits, if the collector takes it in time. That it does not is no reason for a server to fail.
func (t *Tracer) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), lastCall)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.log.Warn("The last traces could not be sent", "error", err.Error())
	}
}

// Note tells of a command that is over: it was begun at a time and has taken a while.
func (t *Tracer) Note(command, db, collection string, began time.Time, took time.Duration, stats *operation.Stats, failed error) {
	_, span := t.tracer.Start(context.Background(), command+" "+db, otel.WithSpanKind(otel.SpanKindServer), otel.WithTimestamp(began))
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(
		attribute.String("db.system.name", "mongodb"), attribute.String("db.operation.name", command), attribute.String("db.namespace", db),
		attribute.Int64("ebb.keys_examined", stats.KeysExamined.Load()), attribute.Int64("ebb.documents_examined", stats.DocsExamined.Load()),
		attribute.Int64("db.response.returned_rows", stats.Returned.Load()))
	if collection != "" {
		span.SetAttributes(attribute.String("db.collection.name", collection))
	}
	if failed != nil {
		code := mongoerr.From(failed).Code.Name()
		span.SetAttributes(attribute.String("error.type", code), attribute.String("db.response.status_code", code))
		span.SetStatus(codes.Error, "") // its text may tell what is in documents
	}
	span.End(otel.WithTimestamp(began.Add(took)))
}

// rate samples as large a part of all commands as a parameter says.
type rate struct{ of *parameter.Double }

func (r rate) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	return sdk.TraceIDRatioBased(r.of.Get()).ShouldSample(p)
}

func (r rate) Description() string { return "openTelemetrySampleRate" }

// sending logs what goes wrong, at first and then now and again.
type sending struct {
	sdk.SpanExporter
	log      *slog.Logger
	endpoint string
	failures atomic.Int64
}

func (s *sending) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		s.failures.Store(0)
		return nil
	}
	if n := s.failures.Add(1); n%failuresLogged == 1 {
		s.log.Warn("Traces could not be sent", "endpoint", s.endpoint, "spans", len(spans), "failures", n, "error", err.Error())
	}
	return nil // the library would print it past the log
}
