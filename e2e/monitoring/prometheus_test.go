// Package monitoring has a real Prometheus watch the real server by the configuration, the alert rules and the dashboard of deploy. It must not
// know what the figures mean.
package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/binary"
)

const (
	deploy = "../../deploy"
	// patience is how long Prometheus may take to see what it should.
	patience = 90 * time.Second
)

// need skips the test where a program is missing, but not in CI.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") == "true":
		t.Fatalf("%s is missing: e2e/install.sh has not run", program)
	default:
		t.Skipf("%s is not on this machine", program)
	}
	return ""
}

// TestAlerts has promtool look at the rules, and run their tests.
func TestAlerts(t *testing.T) {
	promtool := need(t, "promtool")
	for _, args := range [][]string{
		{"check", "config", "prometheus.yml"}, {"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"},
	} {
		c := exec.Command(promtool, args...)
		c.Dir = filepath.Join(deploy, "prometheus")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestEveryAlertIsTested: a rule that no test names may never fire.
func TestEveryAlertIsTested(t *testing.T) {
	rules, err := os.ReadFile(filepath.Join(deploy, "prometheus/alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile(filepath.Join(deploy, "prometheus/alerts_test.yml"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(rules), -1)
	if len(found) < 10 {
		t.Fatalf("only %d alerts were found", len(found))
	}
	for _, m := range found {
		if !regexp.MustCompile(`alertname="` + m[1] + `"}'|alertname: ` + m[1] + `\b`).Match(tests) {
			t.Errorf("no test has %s fire", m[1])
		}
	}
}

// TestDashboard starts a server and a Prometheus that scrapes it, and asks each question of the dashboard.
func TestDashboard(t *testing.T) {
	prometheus := need(t, "prometheus")
	port := freePort(t)
	server := binary.Start(t, binary.Build(t), "--dbpath", t.TempDir(), "--metricsPort", port, "--replSet", "rs0", "--replSetInitiate")
	p := startPrometheus(t, prometheus, "127.0.0.1:"+port)
	ctx, stop := context.WithCancel(t.Context())
	worked := make(chan error, 1)
	go func() { worked <- work(ctx, server.URI("directConnection=true")) }()
	defer func() {
		stop()
		if err := <-worked; err != nil {
			t.Error(err)
		}
	}()

	p.await(t, `up{job="ebb"} == 1`)
	p.await(t, `rate(ebb_ttl_collection_deleted_documents_total{db="app", collection="sessions"}[10s]) > 0`)
	p.await(t, `rate(ebb_commands_failed_total{command="nosuch"}[10s]) > 0 or rate(ebb_commands_failed_total[10s]) > 0`)
	questions := dashboard(t)
	if len(questions) < 20 {
		t.Fatalf("the dashboard asks only %d questions", len(questions))
	}
	for _, q := range questions {
		p.await(t, q)
	}
	p.checkRules(t)
}

// work is what clients do: write what expires, read, and fail at times.
func work(ctx context.Context, uri string) error {
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		return err
	}
	defer client.Disconnect(context.Background())
	c := client.Database("app").Collection("sessions")
	if _, err := c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "at", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(1)}); err != nil && ctx.Err() == nil {
		return fmt.Errorf("create the index: %w", err)
	}
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return nil
		case <-tick.C:
		}
		if _, err := c.InsertOne(ctx, bson.D{{Key: "at", Value: time.Now()}}); err != nil && ctx.Err() == nil {
			return fmt.Errorf("insert: %w", err)
		}
		if _, err := c.CountDocuments(ctx, bson.D{}); err != nil && ctx.Err() == nil {
			return fmt.Errorf("count: %w", err)
		}
		if found, err := c.Find(ctx, bson.D{}); err == nil {
			_ = found.Close(ctx)
		}
		_, _ = c.Find(ctx, bson.D{{Key: "x", Value: bson.D{{Key: "$nosuch", Value: 1}}}}) // which is to fail
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// prom is a Prometheus under way.
type prom struct{ base string }

// startPrometheus starts one with the configuration of deploy, of which the target and the intervals are others here.
func startPrometheus(t *testing.T, program, target string) *prom {
	t.Helper()
	dir := t.TempDir()
	config, err := os.ReadFile(filepath.Join(deploy, "prometheus/prometheus.yml"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(config)
	for old, now := range map[string]string{"127.0.0.1:27019": target, "scrape_interval: 15s": "scrape_interval: 1s", "evaluation_interval: 15s": "evaluation_interval: 1s"} {
		if !strings.Contains(text, old) {
			t.Fatalf("deploy/prometheus/prometheus.yml does not say %q any more", old)
		}
		text = strings.Replace(text, old, now, 1)
	}
	rules, err := os.ReadFile(filepath.Join(deploy, "prometheus/alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"prometheus.yml": []byte(text), "alerts.yml": rules} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := "127.0.0.1:" + freePort(t)
	c := exec.Command(program, "--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", address)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		log.Close()
		if t.Failed() {
			said, _ := os.ReadFile(log.Name())
			t.Logf("Prometheus said:\n%s", said[max(0, len(said)-4000):])
		}
	})
	return &prom{"http://" + address}
}

// get asks the interface of Prometheus, and reads the data of its answer.
func (p *prom) get(ctx context.Context, path string, data any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	var reply struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.Unmarshal(body, &reply); err != nil {
		return fmt.Errorf("%s: %.200s", resp.Status, body)
	}
	if reply.Status != "success" {
		return fmt.Errorf("%s", reply.Error)
	}
	return json.Unmarshal(reply.Data, data)
}

// await asks until there is something in the answer.
func (p *prom) await(t *testing.T, query string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		var data struct{ Result []json.RawMessage }
		err := p.get(ctx, "/api/v1/query?query="+url.QueryEscape(query), &data)
		if err == nil && len(data.Result) > 0 {
			return
		}
		select {
		case <-ctx.Done():
			t.Errorf("nothing comes of %s: %v", query, err)
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// checkRules looks that Prometheus has loaded every alert, evaluates it, and that a server that is well fires none.
func (p *prom) checkRules(t *testing.T) {
	t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct {
				Name, Health, State, LastError string
			}
		}
	}
	if err := p.get(t.Context(), "/api/v1/rules", &data); err != nil || len(data.Groups) != 1 || len(data.Groups[0].Rules) < 10 {
		t.Fatalf("the rules are %+v: %v", data, err)
	}
	for _, r := range data.Groups[0].Rules {
		if r.Health != "ok" || r.State != "inactive" && !strings.HasPrefix(r.Name, "EbbCommandsFail") {
			t.Errorf("%s: %s, %s %s", r.Name, r.Health, r.State, r.LastError)
		}
	}
}

// dashboard is every question of the dashboard and of its variables, about all that there is.
func dashboard(t *testing.T) (questions []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploy, "grafana/ebb.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct {
				Type  string
				Query json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	all := strings.NewReplacer("$__rate_interval", "10s", "$instance", ".*", "$db", ".*", "$collection", ".*")
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			questions = append(questions, all.Replace(target.Expr))
		}
	}
	values := regexp.MustCompile(`^label_values\((.*), \w+\)$`)
	for _, v := range d.Templating.List {
		if v.Type == "datasource" {
			continue
		}
		var q struct{ Query string }
		if err := json.Unmarshal(v.Query, &q); err != nil {
			t.Fatal(err)
		}
		m := values.FindStringSubmatch(q.Query)
		if m == nil {
			t.Fatalf("a variable asks %s", q.Query)
		}
		questions = append(questions, all.Replace(m[1]))
	}
	return questions
}
