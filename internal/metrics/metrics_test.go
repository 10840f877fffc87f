package metrics_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/metrics"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/ttl"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// replies answer commands by their names.
type replies map[string]string

func (replies) Inside() *command.Conn                          { return nil }
func (replies) ConnectOwn(int64, string, string) *command.Conn { return nil }
func (replies) Disconnect(*command.Conn)                       {}

func (replies) LogIn(_ context.Context, _ *command.Conn, db, user, password string) error {
	if db != "admin" || user != "ann" || password != "right" {
		return errors.New("Authentication failed.")
	}
	return nil
}

func (r replies) Handle(_ context.Context, _ *command.Conn, q command.Request) command.Reply {
	text, ok := r[q.Body.FirstKey()]
	if !ok {
		return command.Reply{}
	}
	return command.Reply{Body: bson.MustDoc(text)}
}

// expiry is how it stands in some collections.
type expiry struct {
	all  []ttl.Collection
	held string
	err  error
}

func (e *expiry) Held() string { return e.held }

func (e *expiry) Collections(_ context.Context, most int) ([]ttl.Collection, int, error) {
	n := min(most, len(e.all))
	return e.all[:n], len(e.all) - n, e.err
}

func of(r replies, e *expiry) metrics.Options {
	return metrics.Options{Commands: r, Expiry: e, Version: "1.2.3", MongoVersion: "8.2.4", Log: slog.New(slog.DiscardHandler)}
}

var healthy = replies{
	"serverStatus": `{uptimeMillis: 1500, opcounters: {insert: 3, query: 4}, metrics: {commands: {find: {total: 7, failed: 2}}}, pebble: {readOnly: true}, ok: 1.0}`,
	"hello":        `{isWritablePrimary: true, ok: 1.0}`,
}

// get asks h as one who calls it host from an address.
func get(h http.Handler, path, host, remote string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host, r.RemoteAddr = host, remote
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func ask(h http.Handler, path string) *httptest.ResponseRecorder {
	return get(h, path, "127.0.0.1:27018", "127.0.0.1:5000")
}

// families are the figures in an answer that is good.
func families(t *testing.T, w *httptest.ResponseRecorder) map[string]*dto.MetricFamily {
	t.Helper()
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// value is that of the metric with the labels, such as `db="a"`; ok is false when there is none.
func value(all map[string]*dto.MetricFamily, name string, labels ...string) (v float64, ok bool) {
	for _, m := range all[name].GetMetric() {
		var have []string
		for _, l := range m.Label {
			have = append(have, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
		}
		if strings.Join(have, ",") == strings.Join(labels, ",") {
			return m.GetGauge().GetValue() + m.GetCounter().GetValue(), true
		}
	}
	return 0, false
}

// TestMembers: each member has figures, and who does not answer has no lag.
func TestMembers(t *testing.T) {
	r := replies{
		"serverStatus": `{uptimeMillis: 1500, repl: {setName: "rs"}, ok: 1.0}`,
		"replSetGetStatus": `{members: [{name: "a:1", health: 1.0, state: 1, optimeDate: ISODate("2023-11-14T22:13:30Z")}, {name: "b:1", health: 1.0, state: 2, optimeDate: ISODate("2023-11-14T22:13:23Z")},
			{name: "c:1", health: 0.0, state: 8, optimeDate: ISODate("1970-01-01T00:00:00Z")}], ok: 1.0}`,
	}
	all := families(t, ask(metrics.New(of(r, &expiry{})), "/metrics"))
	for _, c := range []struct {
		name string
		want float64
		of   []string
	}{
		{"ebb_replica_set_members", 3, nil},
		{"ebb_replica_set_has_primary", 1, nil},
		{"ebb_replica_set_member_up", 1, []string{`member="b:1"`}},
		{"ebb_replica_set_member_up", 0, []string{`member="c:1"`}},
		{"ebb_replica_set_member_state", 8, []string{`member="c:1"`}},
		{"ebb_replica_set_member_lag_seconds", 0, []string{`member="a:1"`}},
		{"ebb_replica_set_member_lag_seconds", 7, []string{`member="b:1"`}},
	} {
		if v, ok := value(all, c.name, c.of...); !ok || v != c.want {
			t.Errorf("%s %v is %v, %v", c.name, c.of, v, ok)
		}
	}
	if _, ok := value(all, "ebb_replica_set_member_lag_seconds", `member="c:1"`); ok {
		t.Error("a member that does not answer has a lag")
	}
	r["replSetGetStatus"] = `{members: [{name: "b:1", health: 1.0, state: 2, optimeDate: ISODate("2023-11-14T22:13:23Z")}], ok: 1.0}`
	if v, ok := value(families(t, ask(metrics.New(of(r, &expiry{})), "/metrics")), "ebb_replica_set_has_primary"); !ok || v != 0 {
		t.Error("there is a primary", v, ok)
	}
	r["replSetGetStatus"] = `{ok: 0.0, errmsg: "no replset config has been received", code: 94}`
	if _, ok := value(families(t, ask(metrics.New(of(r, &expiry{})), "/metrics")), "ebb_replica_set_members"); ok {
		t.Error("a set that has not begun has members")
	}
}

func TestFigures(t *testing.T) {
	e := &expiry{held: "ttlHold", all: []ttl.Collection{
		{NS: namespace.NS{DB: "a", Coll: "b.c"}, Lag: 2500, Backlog: 7, More: true, Next: 1_700_000_000_500, Deleted: 9, Bytes: 100, Paused: true},
		{NS: namespace.NS{DB: "a", Coll: "none"}, Next: policy.Never},
	}}
	all := families(t, ask(metrics.New(of(healthy, e)), "/metrics"))
	for _, c := range []struct {
		name string
		want float64
		of   []string
	}{
		{"ebb_build_info", 1, []string{`mongo_version="8.2.4"`, `version="1.2.3"`}},
		{"ebb_uptime_seconds", 1.5, nil},
		{"ebb_opcounters_total", 4, []string{`type="query"`}},
		{"ebb_commands_failed_total", 2, []string{`command="find"`}},
		{"ebb_storage_read_only", 1, nil},
		{"ebb_ttl_held", 1, nil},
		{"ebb_ttl_collections", 2, nil},
		{"ebb_ttl_collections_left_out", 0, nil},
		{"ebb_ttl_collection_lag_seconds", 2.5, []string{`collection="b.c"`, `db="a"`}},
		{"ebb_ttl_collection_backlog_documents", 7, []string{`collection="b.c"`, `db="a"`}},
		{"ebb_ttl_collection_backlog_is_more", 1, []string{`collection="b.c"`, `db="a"`}},
		{"ebb_ttl_collection_deleted_documents_total", 9, []string{`collection="b.c"`, `db="a"`}},
		{"ebb_ttl_collection_reclaimed_bytes_total", 100, []string{`collection="b.c"`, `db="a"`}},
		{"ebb_ttl_collection_next_deadline_timestamp_seconds", 1_700_000_000.5, []string{`collection="b.c"`, `db="a"`}},
		{"ebb_ttl_collection_paused", 1, []string{`collection="b.c"`, `db="a"`}},
		{"ebb_ttl_collection_lag_seconds", 0, []string{`collection="none"`, `db="a"`}},
	} {
		if v, ok := value(all, c.name, c.of...); !ok || v != c.want {
			t.Errorf("%s%v is %v (%v), not %v", c.name, c.of, v, ok, c.want)
		}
	}
	if _, ok := value(all, "ebb_ttl_collection_next_deadline_timestamp_seconds", `collection="none"`, `db="a"`); ok {
		t.Error("a collection without a deadline has a next one")
	}
	for _, name := range []string{"go_goroutines", "go_memstats_heap_alloc_bytes", "process_start_time_seconds"} {
		if all[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
}

// TestNames has names and helps be as Prometheus wants them.
func TestNames(t *testing.T) {
	w := ask(metrics.New(of(healthy, &expiry{all: []ttl.Collection{{Next: 1}}})), "/metrics")
	problems, err := promlint.New(w.Body).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestManyCollections has more than are told of, and names that no label can have as they are.
func TestManyCollections(t *testing.T) {
	e := &expiry{}
	for i := range metrics.MaxCollections + 3 {
		e.all = append(e.all, ttl.Collection{NS: namespace.NS{DB: "d", Coll: fmt.Sprint(i)}, Next: policy.Never})
	}
	all := families(t, ask(metrics.New(of(healthy, e)), "/metrics"))
	if told := len(all["ebb_ttl_collection_lag_seconds"].GetMetric()); told != metrics.MaxCollections {
		t.Errorf("%d collections are told of", told)
	}
	if left, _ := value(all, "ebb_ttl_collections_left_out"); left != 3 {
		t.Errorf("%v are left out", left)
	}

	e.all = []ttl.Collection{{NS: namespace.NS{DB: "d", Coll: "\xff"}}, {NS: namespace.NS{DB: "d", Coll: "\xfe"}}, {NS: namespace.NS{DB: "d", Coll: "a\"\n\\b"}}}
	all = families(t, ask(metrics.New(of(healthy, e)), "/metrics"))
	if left, _ := value(all, "ebb_ttl_collections_left_out"); left != 1 || len(all["ebb_ttl_collection_lag_seconds"].GetMetric()) != 2 {
		t.Errorf("%v are left out of %v", left, all["ebb_ttl_collection_lag_seconds"])
	}
}

// TestFailure: what cannot be gathered fails the scrape, and is not left out.
func TestFailure(t *testing.T) {
	for name, o := range map[string]metrics.Options{
		"no status": of(replies{"serverStatus": `{ok: 0.0, errmsg: "broken"}`}, &expiry{}),
		"no reply":  of(replies{}, &expiry{}),
		"no expiry": of(healthy, &expiry{err: context.DeadlineExceeded}),
	} {
		if w := ask(metrics.New(o), "/metrics"); w.Code != http.StatusInternalServerError {
			t.Errorf("%s: status %d: %.200s", name, w.Code, w.Body)
		}
	}
}

func TestAccess(t *testing.T) {
	for _, c := range []struct {
		authorization bool
		host, remote  string
		want          int
	}{
		{false, "127.0.0.1:27018", "127.0.0.1:5000", 200},
		{false, "[::1]:27018", "[::1]:5000", 200},
		{false, "localhost", "127.0.0.1:5000", 200},
		{false, "LOCALHOST:1", "127.0.0.1:5000", 200},
		{false, "db.example.org:27018", "127.0.0.1:5000", 200}, // its own name
		{false, "evil.example:27018", "127.0.0.1:5000", 403},
		{false, "", "127.0.0.1:5000", 403},
		{false, "localhost.evil.example", "[::ffff:127.0.0.1]:5000", 403},
		{false, "ebb:27018", "192.0.2.1:5000", 200}, // who listens there without authorization lets everybody in
		{true, "127.0.0.1:27018", "127.0.0.1:5000", 200},
		{true, "[::1]:27018", "[::1]:5000", 200},
		{true, "evil.example", "127.0.0.1:5000", 403},
		{true, "192.0.2.7:27018", "192.0.2.1:5000", 403},
		{true, "127.0.0.1", "192.0.2.1:5000", 403},
		{true, "127.0.0.1", "nonsense", 403},
	} {
		o := of(healthy, &expiry{})
		o.Authorization, o.Names = c.authorization, []string{"db.example.org"}
		h := metrics.New(o)
		if w := get(h, "/metrics", c.host, c.remote); w.Code != c.want {
			t.Errorf("authorization %v, Host %q from %s: status %d, not %d", c.authorization, c.host, c.remote, w.Code, c.want)
		}
		for _, path := range []string{"/health/live", "/health/ready"} { // which everybody is told
			if w := get(h, path, c.host, c.remote); w.Code != http.StatusOK {
				t.Errorf("%s for %s from %s: status %d", path, c.host, c.remote, w.Code)
			}
		}
	}
}

// TestUsers: from elsewhere, where clients have to log in, figures are for users over TLS.
func TestUsers(t *testing.T) {
	o := of(healthy, &expiry{})
	o.Authorization, o.NextID = true, func() int64 { return 1 }
	h := metrics.New(o)
	for _, c := range []struct {
		tls            bool
		user, password string
		want           int
	}{
		{true, "ann", "right", 200}, {true, "ann", "wrong", 401}, {true, "", "", 401}, {true, "ann", "", 401}, {false, "ann", "right", 403},
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host, r.RemoteAddr = "ebb.example.org:27019", "192.0.2.1:5000"
		if r.TLS = nil; c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		if c.user != "" {
			r.SetBasicAuth(c.user, c.password)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want || (w.Code == 401) != (w.Header().Get("WWW-Authenticate") != "") {
			t.Errorf("%+v: status %d %s", c, w.Code, w.Body)
		}
	}
}

// slowLogins are logins that take as long as others are under way.
type slowLogins struct {
	replies
	begun, proceed chan struct{}
}

func (s slowLogins) LogIn(ctx context.Context, conn *command.Conn, db, user, password string) error {
	s.begun <- struct{}{}
	<-s.proceed
	return s.replies.LogIn(ctx, conn, db, user, password)
}

// TestLoginsAtOnce: who guesses, and has to wait for that, keeps nobody else from logging in.
func TestLoginsAtOnce(t *testing.T) {
	s := slowLogins{healthy, make(chan struct{}), make(chan struct{})}
	o := of(healthy, &expiry{})
	o.Authorization, o.NextID, o.Commands = true, func() int64 { return 1 }, s
	h := metrics.New(o)
	const logins = 8
	codes := make(chan int, logins)
	for range logins {
		go func() {
			r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			r.Host, r.RemoteAddr, r.TLS = "ebb.example.org:27019", "192.0.2.1:5000", &tls.ConnectionState{}
			r.SetBasicAuth("ann", "wrong")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			codes <- w.Code
		}()
	}
	for range logins {
		select {
		case <-s.begun:
		case code := <-codes:
			t.Fatal("a login is refused with", code)
		}
	}
	close(s.proceed)
	for range logins {
		if code := <-codes; code != http.StatusUnauthorized {
			t.Error(code)
		}
	}
}

func TestHealth(t *testing.T) {
	stopping := make(chan struct{})
	close(stopping)
	for _, c := range []struct {
		hello string
		stops bool
		want  int
		text  string
	}{
		{`{isWritablePrimary: true, ok: 1.0}`, false, 200, "ready"},
		{`{isWritablePrimary: false, secondary: true, ok: 1.0}`, false, 200, "ready"},
		{`{isWritablePrimary: false, secondary: false, ok: 1.0}`, false, 503, "neither primary nor secondary"},
		{`{ok: 0.0, errmsg: "broken"}`, false, 503, "hello: broken"},
		{`{isWritablePrimary: true, ok: 1.0}`, true, 503, "shutting down"},
	} {
		o := of(replies{"hello": c.hello}, &expiry{})
		if c.stops {
			o.Stopping = stopping
		}
		h := metrics.New(o)
		if w := ask(h, "/health/ready"); w.Code != c.want || !strings.Contains(w.Body.String(), c.text) {
			t.Errorf("%s: %d %s", c.hello, w.Code, w.Body)
		}
		if w := ask(h, "/health/live"); w.Code != http.StatusOK {
			t.Errorf("%s: not alive", c.hello)
		}
	}
}

// TestNothingElse has methods and paths that are not there.
func TestNothingElse(t *testing.T) {
	h := metrics.New(of(healthy, &expiry{}))
	for _, path := range []string{"/", "/metrics/", "/health", "/../metrics/x", "/debug/pprof/"} {
		if w := ask(h, path); w.Code == http.StatusOK {
			t.Errorf("%s is there", path)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/metrics", strings.NewReader("x"))
	r.Host, r.RemoteAddr = "127.0.0.1", "127.0.0.1:5000"
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code == http.StatusOK {
		t.Error("figures can be posted to")
	}
}

// TestDoor listens for real: requests are answered from Serve on, and none after Close.
func TestDoor(t *testing.T) {
	d, err := metrics.Listen(t.Context(), []string{"127.0.0.1"}, 0, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	d.Serve(metrics.New(of(healthy, &expiry{})))
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get("http://" + d.Addr() + "/health/ready")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK || string(body) != "ready\n" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := client.Get("http://" + d.Addr() + "/health/ready"); err == nil {
		t.Error("it is answered after Close")
	}
	if err := d.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

// TestDoorOfMany has more connections than may be: who does nothing with one keeps nobody out.
func TestDoorOfMany(t *testing.T) {
	d, err := metrics.Listen(t.Context(), []string{"127.0.0.1"}, 0, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.Serve(metrics.New(of(healthy, &expiry{})))
	for range metrics.MaxConns {
		c, err := net.Dial("tcp", d.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		// Its answer says that it has been accepted.
		fmt.Fprint(c, "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		client := http.Client{Transport: &http.Transport{}}
		resp, err := client.Get("http://" + d.Addr() + "/health/live")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
}

// TestDoorNeverServed closes one that nobody was answered at.
func TestDoorNeverServed(t *testing.T) {
	d, err := metrics.Listen(t.Context(), []string{"127.0.0.1"}, 0, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	again, err := metrics.Listen(t.Context(), []string{"127.0.0.1", "no.such.host.invalid"}, 0, nil, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Error("a host that is not there is listened on", again.Addr())
	}
}
