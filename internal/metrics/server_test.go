package metrics_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/certificate/certtest"
	"github.com/ebbdb/ebb/internal/metrics"
)

// start starts a server in memory that tells figures, and returns a client of it.
func start(t *testing.T, o ebb.Options, uri string, transport *tls.Config) (*ebb.Server, *mongo.Client) {
	t.Helper()
	o.Port, o.Engine = ebb.AnyPort, ebb.InMemory
	if o.Metrics == nil {
		o.Metrics = &ebb.Metrics{Port: ebb.AnyPort}
	}
	server, err := ebb.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + server.Addr() + "/?directConnection=true" + uri).SetTLSConfig(transport))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Disconnect(context.Background())
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server, client
}

func status(t *testing.T, c *mongo.Client) bson.Doc {
	t.Helper()
	reply, err := c.Database("admin").RunCommand(t.Context(), driver.D{{Key: "serverStatus", Value: 1}}).Raw()
	if err != nil {
		t.Fatal(err)
	}
	return bson.Doc(reply)
}

// TestEveryFieldHasARow holds the table to what servers tell: a figure that serverStatus gets is told of, or left out with a reason.
func TestEveryFieldHasARow(t *testing.T) {
	_, alone := start(t, ebb.Options{Parameters: map[string]string{"ttlMonitorEnabled": "false"},
		Audit: &ebb.Audit{Destination: "file", Format: "JSON", Path: filepath.Join(t.TempDir(), "audit.json")}}, "", nil)
	_, member := start(t, ebb.Options{ReplicaSet: &ebb.ReplicaSet{Name: "rs0", Initiate: true}}, "", nil)
	m := certtest.New(t, time.Now())
	ca := m.Authority("the authority")
	secure := &ebb.TLS{Mode: ebb.RequireTLS, CertificateKeyFile: m.Write("server.pem", m.Issue(ca, "server", certtest.Local).PEM()), CAFile: m.Write("ca.pem", ca.CertPEM()),
		AllowConnectionsWithoutCertificates: true}
	trust := &tls.Config{RootCAs: certtest.Pool(ca)}
	server, secured := start(t, ebb.Options{TLS: secure, Metrics: &ebb.Metrics{Addresses: []string{"0.0.0.0"}, Port: ebb.AnyPort}}, "&tls=true", trust)

	// A backlog that is not counted to its end has a field of its own.
	c := alone.Database("d").Collection("c")
	if _, err := c.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: driver.D{{Key: "at", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(0)}); err != nil {
		t.Fatal(err)
	}
	docs := make([]any, 10_002)
	for i := range docs {
		docs[i] = driver.D{{Key: "at", Value: time.UnixMilli(1)}}
	}
	if _, err := c.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	fields, rows := metrics.Unknown(status(t, alone), status(t, member), status(t, secured))
	slices.Sort(fields)
	for _, f := range slices.Compact(fields) {
		t.Errorf("serverStatus has %s, and the table has no row for it: say in internal/metrics/status_table.go what it is called, or omit it with a reason", f)
	}
	for _, r := range rows {
		t.Errorf("the table has a row for %s, and no server tells of that: take it out", r)
	}

	// Where others reach the port too, figures go over TLS, for which nobody needs a certificate, and not without.
	_, port, _ := net.SplitHostPort(server.MetricsAddr())
	local := "127.0.0.1:" + port
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trust}, Timeout: 10 * time.Second}
	if v, ok := value(scrape(t, client, "https://"+local), "ebb_tls_1_3_connections_total"); !ok || v == 0 {
		t.Errorf("%v connections over TLS (%v)", v, ok)
	}
	if resp, err := client.Get("http://" + local + "/metrics"); err == nil {
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			t.Error("figures go over plain HTTP where there is TLS")
		}
	}
}

func scrape(t *testing.T, c *http.Client, base string) map[string]*dto.MetricFamily {
	t.Helper()
	resp, err := c.Get(base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	return all
}

// TestExpiryOfAServer follows one collection from its documents' insertion to their end.
func TestExpiryOfAServer(t *testing.T) {
	clock := ebbtest.NewClock(time.UnixMilli(1_700_000_000_000))
	server, client := start(t, ebb.Options{Clock: clock}, "", nil)
	c := client.Database("app").Collection("sessions")
	if _, err := c.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: driver.D{{Key: "at", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(60)}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := c.InsertOne(t.Context(), driver.D{{Key: "_id", Value: i}, {Key: "at", Value: clock.Now()}}); err != nil {
			t.Fatal(err)
		}
	}
	pause := func(paused bool) {
		t.Helper()
		if err := client.Database("app").RunCommand(t.Context(), driver.D{{Key: "collMod", Value: "sessions"}, {Key: "ttlPaused", Value: paused}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	hold := func(held bool) {
		t.Helper()
		if err := client.Database("admin").RunCommand(t.Context(), driver.D{{Key: "setParameter", Value: 1}, {Key: "ttlMonitorEnabled", Value: !held}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	settle := func() {
		t.Helper()
		if err := server.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	look := func(when string, want map[string]float64) {
		t.Helper()
		all := scrape(t, http.DefaultClient, "http://"+server.MetricsAddr())
		for name, want := range want {
			v, _ := value(all, "ebb_ttl_collection_"+name, `collection="sessions"`, `db="app"`)
			if v != want {
				t.Errorf("%s: %s is %v, not %v", when, name, v, want)
			}
		}
	}
	look("at first", map[string]float64{"lag_seconds": 0, "backlog_documents": 0, "next_deadline_timestamp_seconds": 1_700_000_060, "paused": 0})
	pause(true)
	settle()
	clock.Advance(90 * time.Second)
	settle()
	look("paused", map[string]float64{"lag_seconds": 30, "backlog_documents": 3, "next_deadline_timestamp_seconds": 0, "deleted_documents_total": 0, "paused": 1})
	pause(false)
	settle()
	doc, _ := driver.Marshal(driver.D{{Key: "_id", Value: int32(0)}, {Key: "at", Value: clock.Now()}})
	look("deleted", map[string]float64{"lag_seconds": 0, "backlog_documents": 0, "deleted_documents_total": 3, "reclaimed_bytes_total": float64(3 * len(doc)), "paused": 0})
	hold(true)
	if held, _ := value(scrape(t, http.DefaultClient, "http://"+server.MetricsAddr()), "ebb_ttl_held"); held != 1 {
		t.Errorf("held is %v", held)
	}
}

// TestNotInitiated: a member of a replica set that has not begun is alive and not ready.
func TestNotInitiated(t *testing.T) {
	server, _ := start(t, ebb.Options{ReplicaSet: &ebb.ReplicaSet{Name: "rs0"}}, "", nil)
	for path, want := range map[string]int{"/health/live": 200, "/health/ready": 503, "/metrics": 200} {
		resp, err := http.Get(fmt.Sprintf("http://%s%s", server.MetricsAddr(), path))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
}

// TestAuthorization: figures are gathered in the server's own name, whoever may log in.
func TestAuthorization(t *testing.T) {
	server, _ := start(t, ebb.Options{Authorization: true}, "", nil)
	all := scrape(t, http.DefaultClient, "http://"+server.MetricsAddr())
	if v, ok := value(all, "ebb_uptime_seconds"); !ok || v < 0 {
		t.Error(v, ok)
	}
}

// TestConsoleTellsFigures: the console's door tells them too.
func TestConsoleTellsFigures(t *testing.T) {
	server, _ := start(t, ebb.Options{Console: &ebb.Console{Port: ebb.AnyPort}}, "", nil)
	base := strings.TrimSuffix(server.ConsoleURL(), "/")
	if v, ok := value(scrape(t, http.DefaultClient, base), "ebb_uptime_seconds"); !ok || v < 0 {
		t.Error(v, ok)
	}
	for path, want := range map[string]int{"/health/live": 200, "/health/ready": 200, "/health/nosuch": 404, "/": 200} {
		resp, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
}
