package ebb_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/auth/patience"
	"github.com/ebbdb/ebb/internal/certificate/certtest"
	"github.com/ebbdb/ebb/internal/clock"
)

// browser speaks to a console as its page does, unless a test changes what it says.
type browser struct {
	t      *testing.T
	url    string
	client *http.Client
	token  string
}

// openConsole serves a server with a console until the test ends.
func openConsole(t *testing.T, o ebb.Options) *browser {
	t.Helper()
	o.Engine, o.Port = ebb.InMemory, ebb.AnyPort
	if o.Console == nil {
		o.Console = &ebb.Console{Port: ebb.AnyPort}
	}
	s, err := ebb.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-served, s.Close()); err != nil {
			t.Error(err)
		}
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t: t, url: strings.TrimSuffix(s.ConsoleURL(), "/"), client: &http.Client{Jar: jar}}
}

// request is one as the page sends it.
func (b *browser) request(method, path, body string) *http.Request {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("X-Ebb-Console", "1")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == http.MethodPost {
		r.Header.Set("Origin", b.url)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Ebb-Token", b.token)
	}
	return r
}

// send returns the status and the body of the answer.
func (b *browser) send(r *http.Request) (int, string, http.Header) {
	b.t.Helper()
	res, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return res.StatusCode, string(body), res.Header
}

// enter takes the token out of an answer that tells who the browser is.
func (b *browser) enter(body string) {
	b.t.Helper()
	var said struct{ Token string }
	if err := json.Unmarshal([]byte(body), &said); err != nil || said.Token == "" {
		b.t.Fatal(body, err)
	}
	b.token = said.Token
}

func (b *browser) begin() {
	b.t.Helper()
	status, body, _ := b.send(b.request(http.MethodGet, "/api/session", ""))
	if status != http.StatusOK {
		b.t.Fatal(status, body)
	}
	b.enter(body)
}

// run wants a command to be answered, and gives the answer.
func (b *browser) run(command string) string {
	b.t.Helper()
	status, body, _ := b.send(b.request(http.MethodPost, "/api/command", command))
	if status != http.StatusOK {
		b.t.Fatal(command, status, body)
	}
	return body
}

func has(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%q is not in %.1000s", w, got)
		}
	}
}

// TestConsoleRunsCommands has values of BSON go in and out as they are.
func TestConsoleRunsCommands(t *testing.T) {
	b := openConsole(t, ebb.Options{})
	b.begin()
	has(t, b.run(`{"insert": "c", "documents": [{"_id": {"$numberLong": "9007199254740993"}, "2": 1, "1": {"$numberDouble": "2.0"}, "<b>": "</script>"}], "$db": "test"}`), `"n":{"$numberInt":"1"}`)
	has(t, b.run(`{"find": "c", "$db": "test"}`), `{"_id":{"$numberLong":"9007199254740993"},"2":{"$numberInt":"1"},"1":{"$numberDouble":"2.0"},"<b>":"</script>"}`)
	has(t, b.run(`{"nothing": 1, "$db": "test"}`), `"ok":{"$numberDouble":"0.0"}`, `"codeName":"CommandNotFound"`)
	has(t, b.run(`{"aggregate": 1, "pipeline": [{"$currentOp": {}}], "cursor": {}, "$db": "admin"}`), `"appName":"Ebb console"`)
	has(t, b.run(`{"ping": 1}`), `OP_MSG requests require a $db argument`)
	opened := b.run(`{"find": "c", "batchSize": 0, "$db": "test"}`)
	_, id, _ := strings.Cut(opened, `"id":{"$numberLong":"`)
	id, _, _ = strings.Cut(id, `"`)
	has(t, b.run(`{"getMore": {"$numberLong": "`+id+`"}, "collection": "c", "$db": "test"}`), `"nextBatch":[{"_id"`)
}

// TestConsoleRefuses has each thing that keeps foreign pages out be the one that is missing.
func TestConsoleRefuses(t *testing.T) {
	b := openConsole(t, ebb.Options{})
	b.begin()
	const ping = `{"ping": 1, "$db": "admin"}`
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"nothing changed":          {func(*http.Request) {}, 200},
		"a foreign name":           {func(r *http.Request) { r.Host = "evil.example" }, 421},
		"a foreign name and port":  {func(r *http.Request) { r.Host = "evil.example:27018" }, 421},
		"a name that begins right": {func(r *http.Request) { r.Host = "127.0.0.1.evil.example" }, 421},
		"localhost as a part":      {func(r *http.Request) { r.Host = "localhost.evil.example" }, 421},
		"its own name":             {func(r *http.Request) { r.Host = "localhost:9000"; r.Header.Set("Origin", "http://localhost:9000") }, 200},
		"another name's origin":    {func(r *http.Request) { r.Host = "localhost:9000" }, 403},
		"no mark":                  {func(r *http.Request) { r.Header.Del("X-Ebb-Console") }, 403},
		"another site":             {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"another port":             {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, 403},
		"no origin":                {func(r *http.Request) { r.Header.Del("Origin") }, 403},
		"origin null":              {func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		"another origin":           {func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, 403},
		"an origin over TLS":       {func(r *http.Request) { r.Header.Set("Origin", strings.Replace(b.url, "http:", "https:", 1)) }, 403},
		"a form":                   {func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }, 403},
		"text":                     {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain; application/json") }, 403},
		"no token":                 {func(r *http.Request) { r.Header.Del("X-Ebb-Token") }, 403},
		"another token":            {func(r *http.Request) { r.Header.Set("X-Ebb-Token", strings.Repeat("A", len(b.token))) }, 403},
		"no session":               {func(r *http.Request) { r.Header.Set("Cookie", "ebb_console=x") }, 401},
		"another method":           {func(r *http.Request) { r.Method = http.MethodPut }, 405},
		"no such interface":        {func(r *http.Request) { r.URL.Path = "/api/other" }, 404},
	} {
		t.Run(name, func(t *testing.T) {
			was := b.client
			defer func() { b.client = was }()
			r := b.request(http.MethodPost, "/api/command", ping)
			for _, cookie := range b.client.Jar.Cookies(r.URL) {
				r.AddCookie(cookie)
			}
			b.client = &http.Client{} // which would send them by the name that is called
			c.change(r)
			status, body, h := b.send(r)
			if status != c.status {
				t.Errorf("status %d, not %d: %s", status, c.status, body)
			}
			if (status == 200) != strings.Contains(body, `"ok":{"$numberDouble":"1.0"}`) {
				t.Error(body)
			}
			if h.Get("Access-Control-Allow-Origin") != "" {
				t.Error("another site is given leave")
			}
		})
	}
	preflight := b.request(http.MethodOptions, "/api/command", "")
	preflight.Header.Set("Origin", "http://evil.example")
	preflight.Header.Set("Access-Control-Request-Method", "POST")
	if status, _, h := b.send(preflight); status < 400 || h.Get("Access-Control-Allow-Headers") != "" {
		t.Error("a question of another site is answered", status)
	}
}

// TestConsoleBounds has bodies that are too large, nested too deep, or none.
func TestConsoleBounds(t *testing.T) {
	b := openConsole(t, ebb.Options{})
	b.begin()
	deep := func(n int) string {
		return `{"find": "c", "filter": ` + strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) + `, "$db": "test"}`
	}
	for name, c := range map[string]struct {
		path, body string
		status     int
	}{
		"too large":            {"/api/command", `{"ping": "` + strings.Repeat("x", 17<<20) + `"}`, 413},
		"a login that is":      {"/api/login", `{"user": "` + strings.Repeat("x", 17<<10) + `"}`, 413},
		"nothing":              {"/api/command", ``, 400},
		"no document":          {"/api/command", `[1]`, 400},
		"half":                 {"/api/command", `{"ping": 1`, 400},
		"something behind it":  {"/api/command", `{"ping": 1, "$db": "admin"} {"x"`, 400},
		"nested too deep":      {"/api/command", deep(100_000), 400},
		"nested a little":      {"/api/command", deep(50), 200},
		"a number of no type":  {"/api/command", `{"ping": {"$numberInt": "x"}, "$db": "admin"}`, 400},
		"a name with a nul":    {"/api/command", `{"find": "a\u0000b", "$db": "test"}`, 200},
		"a field with a nul":   {"/api/command", `{"find": "c", "filter": {"a\u0000b": 1}, "$db": "test"}`, 400},
		"an id that is no hex": {"/api/command", `{"find": "c", "filter": {"_id": {"$oid": "z"}}, "$db": "test"}`, 400},
		"a login of nobody":    {"/api/login", `{}`, 400},
		"a login of numbers":   {"/api/login", `{"user": 1, "password": 2}`, 400},
	} {
		t.Run(name, func(t *testing.T) {
			status, body, _ := b.send(b.request(http.MethodPost, c.path, c.body))
			if status != c.status {
				t.Errorf("status %d, not %d: %.300s", status, c.status, body)
			}
		})
	}
}

// TestConsoleOfUnknown has those who have not logged in send little and slowly: neither keeps others from what they do.
func TestConsoleOfUnknown(t *testing.T) {
	b := openConsole(t, ebb.Options{Authorization: true})
	b.begin()
	has(t, b.run(`{"createUser": "root", "pwd": "p", "roles": ["root"], "$db": "admin"}`), `"ok":{"$numberDouble":"1.0"}`)
	large := `{"ping": "` + strings.Repeat("x", 17<<10) + `", "$db": "admin"}`
	if status, body, _ := b.send(b.request(http.MethodPost, "/api/command", large)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d: %.100s", status, body)
	}
	const sessions, each = 9, 8 // more than requests may run
	for range sessions {
		slow := &browser{t: t, url: b.url, client: &http.Client{}}
		slow.client.Jar, _ = cookiejar.New(nil)
		slow.begin()
		for range each {
			r := slow.request(http.MethodPost, "/api/login", "")
			for _, cookie := range slow.client.Jar.Cookies(r.URL) {
				r.AddCookie(cookie)
			}
			c, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			var head bytes.Buffer
			fmt.Fprintf(&head, "POST /api/login HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n", r.Host)
			_ = r.Header.Write(&head)
			head.WriteString("\r\n{")
			if _, err := c.Write(head.Bytes()); err != nil {
				t.Fatal(err)
			}
		}
	}
	status, body, _ := b.send(b.request(http.MethodPost, "/api/login", `{"user": "root", "password": "p"}`))
	if status != http.StatusOK {
		t.Fatal(status, body)
	}
	b.enter(body)
	has(t, b.run(large), `"ok":{"$numberDouble":"1.0"}`)
}

// stillClock is a clock that stands still.
type stillClock struct{ *clock.Fake }

func (c stillClock) NewTimer(d time.Duration) ebb.Timer { return c.Fake.NewTimer(d) }

// TestConsoleOfGuesses has many logins wait for their turn, since others from there have failed: they keep nobody from what can be done without.
func TestConsoleOfGuesses(t *testing.T) {
	still := stillClock{clock.NewFake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	b := openConsole(t, ebb.Options{Authorization: true, Clock: still})
	b.begin()
	has(t, b.run(`{"createUser": "root", "pwd": "p", "roles": ["root"], "$db": "admin"}`), `"ok":{"$numberDouble":"1.0"}`)
	const wrong = `{"user": "root", "password": "no"}`
	for range patience.Free + 1 {
		if status, body, _ := b.send(b.request(http.MethodPost, "/api/login", wrong)); status != http.StatusUnauthorized {
			t.Fatal(status, body)
		}
	}
	before := still.Waiting()
	ctx, hangUp := context.WithCancel(t.Context())
	var guessing sync.WaitGroup
	defer guessing.Wait()
	defer hangUp()
	for range 4 {
		other := &browser{t: t, url: b.url, client: &http.Client{}}
		other.client.Jar, _ = cookiejar.New(nil)
		other.begin()
		for range 8 {
			r := other.request(http.MethodPost, "/api/login", wrong).WithContext(ctx)
			guessing.Go(func() {
				if res, err := other.client.Do(r); err == nil {
					res.Body.Close()
					t.Error("a guess did not wait", res.Status)
				}
			})
		}
	}
	for still.Waiting() < before+patience.MaxWaiting {
		runtime.Gosched()
	}
	has(t, b.run(`{"ping": 1, "$db": "admin"}`), `"ok":{"$numberDouble":"1.0"}`)
}

// TestConsoleWaitsForNoBody has requests be refused whose bodies never come: they are answered, and their connections end.
func TestConsoleWaitsForNoBody(t *testing.T) {
	b := openConsole(t, ebb.Options{})
	address := strings.TrimPrefix(b.url, "http://")
	for _, path := range []string{"/", "/app.js", "/metrics", "/health/live", "/api/command", "/api/session", "/api/none"} {
		answered(t, address, path)
	}
}

// answered sends a request but for the end of its body, and wants an answer.
func answered(t *testing.T, address, path string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second)) // or the test would wait for ever
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", path)
	if all, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 ") {
		t.Errorf("%s: %q, %v", path, all, err)
	}
}

// TestConsoleBesideAnother has a browser at two consoles of one host, whose cookies go to each of its ports.
func TestConsoleBesideAnother(t *testing.T) {
	one, other := openConsole(t, ebb.Options{}), openConsole(t, ebb.Options{})
	other.client.Jar = one.client.Jar
	one.begin()
	other.begin()
	for _, b := range []*browser{one, other} {
		has(t, b.run(`{"ping": 1, "$db": "admin"}`), `"ok":{"$numberDouble":"1.0"}`)
	}
}

// TestConsoleClosesIdle has more connections be opened than there may be, all of which ask nothing.
func TestConsoleClosesIdle(t *testing.T) {
	b := openConsole(t, ebb.Options{})
	for range 300 {
		c, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
	b.begin()
	has(t, b.run(`{"ping": 1, "$db": "admin"}`), `"ok":{"$numberDouble":"1.0"}`)
}

// TestConsoleTime has a browser be told the time of the database, however that is set, and again with each reply.
func TestConsoleTime(t *testing.T) {
	b := openConsole(t, ebb.Options{Parameters: map[string]string{"enableTestCommands": "1"}})
	b.begin()
	const day = 24 * 3600 * 1000
	b.run(`{"ebbTurnClock": 1, "offsetMillis": {"$numberLong": "172800000"}, "$db": "admin"}`)
	_, _, h := b.send(b.request(http.MethodPost, "/api/command", `{"ping": 1, "$db": "admin"}`))
	if told, _ := strconv.ParseInt(h.Get("X-Ebb-Now"), 10, 64); told < time.Now().UnixMilli()+day {
		t.Error("a reply tells", h.Get("X-Ebb-Now"))
	}
	_, body, _ := b.send(b.request(http.MethodGet, "/api/session", ""))
	var said struct{ Now int64 }
	if err := json.Unmarshal([]byte(body), &said); err != nil || said.Now < time.Now().UnixMilli()+day {
		t.Error("a session tells", body, err)
	}
}

// TestConsoleFiles has nothing be served but the console's own files, and each with what a browser has to keep to.
func TestConsoleFiles(t *testing.T) {
	b := openConsole(t, ebb.Options{})
	get := func(path string, change func(*http.Request)) (int, string, http.Header) {
		r := b.request(http.MethodGet, "/", "")
		r.URL.Opaque = path // as it is, however it looks
		if change != nil {
			change(r)
		}
		return b.send(r)
	}
	for _, path := range []string{"/../../etc/passwd", "/..%2f..%2fetc/passwd", "/assets/../assets.go", "/%2e%2e/server.go", "/app.js/", "/app.js%00", "/.", "/index.html", "/assets/", "/api", "/favicon.ico"} {
		if status, body, _ := get(path, nil); status != 404 && status != 400 {
			t.Errorf("%s is answered by %d: %.100s", path, status, body)
		}
	}
	first, page, h := get("/", nil)
	if first != 200 || !strings.Contains(page, `<script type="module" src="/app.js">`) || strings.Contains(page, "{{") {
		t.Error(first, page)
	}
	policy := h.Get("Content-Security-Policy")
	has(t, policy, "default-src 'none'", "script-src 'self';", "frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'", "connect-src 'self'")
	if strings.Contains(policy, "unsafe") {
		t.Error(policy)
	}
	if _, again, _ := get("/", nil); again == page {
		t.Error("two pages have the same nonce")
	}
	for _, path := range []string{"/app.js", "/style.css"} {
		status, body, h := get(path, nil)
		if status != 200 || len(body) < 1000 || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Security-Policy") == "" {
			t.Error(path, status, len(body), h)
		}
		if status, _, _ := get(path, func(r *http.Request) { r.Header.Set("If-None-Match", h.Get("ETag")) }); status != http.StatusNotModified {
			t.Error(path, "is sent again", status)
		}
	}
	if status, _, _ := b.send(b.request(http.MethodPost, "/", "")); status != http.StatusMethodNotAllowed {
		t.Error(status)
	}
	r := b.request(http.MethodGet, "/", "")
	r.Host = "evil.example"
	if status, _, _ := b.send(r); status != http.StatusMisdirectedRequest {
		t.Error("the page is given to another name", status)
	}
}

// TestConsoleLogin has users of the database log in, be refused, do what they may, and log out.
func TestConsoleLogin(t *testing.T) {
	b := openConsole(t, ebb.Options{Authorization: true})
	b.begin()
	has(t, b.run(`{"find": "c", "$db": "app"}`), `"codeName":"Unauthorized"`)
	has(t, b.run(`{"createUser": "root", "pwd": "päss", "roles": ["root"], "$db": "admin"}`), `"ok":{"$numberDouble":"1.0"}`)
	login := func(body string) (int, string, http.Header) {
		t.Helper()
		return b.send(b.request(http.MethodPost, "/api/login", body))
	}
	for _, wrong := range []string{`{"user": "root", "password": "pass"}`, `{"user": "nobody", "password": "päss"}`, `{"user": "root", "password": "päss", "db": "test"}`, `{"user": "root\u0000", "password": "päss"}`, `{"user": "u", "password": "p", "db": "$external"}`} {
		if status, body, _ := login(wrong); status != http.StatusUnauthorized {
			t.Error(wrong, status, body)
		}
	}
	anonymous := b.token
	status, body, h := login(`{"user": "root", "password": "päss"}`)
	if status != 200 {
		t.Fatal(status, body)
	}
	has(t, h.Get("Set-Cookie"), "HttpOnly", "SameSite=Strict", "Path=/api")
	has(t, body, `"user":{"user":"root","db":"admin"}`)
	b.enter(body)
	if b.token == anonymous {
		t.Error("the session goes on")
	}
	has(t, b.run(`{"connectionStatus": 1, "$db": "admin"}`), `"authenticatedUsers":[{"user":"root","db":"admin"}]`)
	has(t, b.run(`{"createUser": "reader", "pwd": "r", "roles": ["read"], "mechanisms": ["SCRAM-SHA-1"], "$db": "app"}`), `"ok":{"$numberDouble":"1.0"}`)
	second := &browser{t: t, url: b.url}
	second.client = &http.Client{}
	second.client.Jar, _ = cookiejar.New(nil)
	second.begin()
	if status, body, _ = second.send(second.request(http.MethodPost, "/api/login", `{"user": "reader", "password": "r", "db": "app"}`)); status != 200 {
		t.Fatal(status, body)
	}
	second.enter(body)
	has(t, second.run(`{"find": "c", "$db": "app"}`), `"ok":{"$numberDouble":"1.0"}`)
	has(t, second.run(`{"insert": "c", "documents": [{}], "$db": "app"}`), `"codeName":"Unauthorized"`)
	has(t, b.run(`{"dropUser": "reader", "$db": "app"}`), `"ok":{"$numberDouble":"1.0"}`)
	has(t, second.run(`{"find": "c", "$db": "app"}`), `"ok":{"$numberDouble":"0.0"}`)
	out := b.request(http.MethodPost, "/api/logout", "{}")
	old := b.client.Jar.Cookies(b.request(http.MethodPost, "/api/logout", "").URL)
	status, body, _ = b.send(out)
	if status != 200 {
		t.Fatal(status, body)
	}
	b.enter(body)
	has(t, b.run(`{"find": "c", "$db": "app"}`), `"codeName":"Unauthorized"`)
	stale := b.request(http.MethodPost, "/api/command", `{"ping": 1, "$db": "admin"}`)
	stale.AddCookie(old[0])
	if status, _, _ := (&browser{t: t, client: &http.Client{}}).send(stale); status != http.StatusUnauthorized {
		t.Error("a session goes on after its logout", status)
	}
}

// TestConsoleWithoutItsPort has the server be there all the same.
func TestConsoleWithoutItsPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var log bytes.Buffer
	s, err := ebb.Open(ebb.Options{Engine: ebb.InMemory, Port: ebb.AnyPort, Console: &ebb.Console{Port: portOf(t, l.Addr().String())}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if s.ConsoleURL() != "" {
		t.Error(s.ConsoleURL())
	}
	has(t, log.String(), "The console is not open", "address already in use")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestConsoleForOthers has it be reached from other machines over TLS alone, by those who log in.
func TestConsoleForOthers(t *testing.T) {
	m := certtest.New(t, time.Now())
	ca := m.Authority("the authority")
	secure := &ebb.TLS{Mode: ebb.AllowTLS, CertificateKeyFile: m.Write("server.pem", m.Issue(ca, "server", certtest.Local).PEM()), CAFile: m.Write("ca.pem", ca.CertPEM()), AllowConnectionsWithoutCertificates: true}
	all := &ebb.Console{Addresses: []string{"*"}, Port: ebb.AnyPort}
	for _, o := range []ebb.Options{{}, {Authorization: true}, {TLS: secure}} {
		o.Engine, o.Port, o.Console = ebb.InMemory, ebb.AnyPort, all
		if s, err := ebb.Open(o); err == nil {
			t.Errorf("it is open: %+v", o)
			s.Close()
		}
	}
	b := openConsole(t, ebb.Options{Authorization: true, TLS: secure, Console: all})
	has(t, b.url, "https://")
	b.url = strings.Replace(b.url, "0.0.0.0", "127.0.0.1", 1)
	b.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: certtest.Pool(ca), ServerName: "localhost"}, DisableKeepAlives: true}
	b.begin()
	has(t, b.run(`{"hello": 1, "$db": "admin"}`), `"isWritablePrimary":true`)
}
