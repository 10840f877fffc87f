package serverlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

type line struct {
	T struct {
		Date string `json:"$date"`
	} `json:"t"`
	ID        int
	S, C, Msg string
	Ctx, Svc  string
	Tags      []string
	Attr      map[string]any
}

func lines(t *testing.T, text string) []line {
	t.Helper()
	var out []line
	for raw := range strings.Lines(text) {
		var l line
		if err := json.Unmarshal([]byte(raw), &l); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		out = append(out, l)
	}
	return out
}

func TestLinesAreMongods(t *testing.T) {
	var out bytes.Buffer
	New(&out, 0).For("NETWORK").Warn("Connection ended", "connectionId", 5, "remote", "x")
	got := lines(t, out.String())[0]
	if _, err := time.Parse(timeLayout, got.T.Date); err != nil {
		t.Error(err)
	}
	if got.S != "W" || got.C != "NETWORK" || got.Msg != "Connection ended" || fmt.Sprint(got.Attr) != "map[connectionId:5 remote:x]" {
		t.Errorf("%+v", got)
	}
	if got.ID != 22944 || got.Ctx != "-" || got.Svc != "" {
		t.Errorf("%+v", got)
	}
	out.Reset()
	New(&out, 0).For("STORAGE").Info("A line that mongod does not have", "ctx", "conn5")
	if got := lines(t, out.String())[0]; got.ID != 0 || got.Ctx != "conn5" || got.Svc != "" {
		t.Errorf("%+v", got)
	}
}

func TestVerbosity(t *testing.T) {
	for verbosity, want := range []string{"E W I", "E W I D1", "E W I D1 D2", "E W I D1 D2 D3", "E W I D1 D2 D3 D4", "E W I D1 D2 D3 D4 D5"} {
		var out bytes.Buffer
		log := New(&out, verbosity).For("CONTROL")
		for _, level := range []slog.Level{slog.LevelError, slog.LevelWarn, slog.LevelInfo, slog.LevelDebug, slog.LevelDebug - 1, slog.LevelDebug - 2, slog.LevelDebug - 3, slog.LevelDebug - 4} {
			log.Log(t.Context(), level, "x")
		}
		var got []string
		for _, l := range lines(t, out.String()) {
			got = append(got, l.S)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("at %d: %s, not %s", verbosity, s, want)
		}
	}
}

func TestRecentKeepsTheLastLines(t *testing.T) {
	log := Discard()
	for i := range keptLines + 10 {
		log.For("CONTROL").Info(fmt.Sprintf("line %d", i))
	}
	log.For("CONTROL").Info(strings.Repeat("x", 2*keptLineBytes))
	got, total := log.Recent()
	if total != keptLines+11 || len(got) != keptLines {
		t.Fatalf("%d of %d lines", len(got), total)
	}
	if !strings.Contains(got[0], `"line 11"`) || !strings.Contains(got[keptLines-2], fmt.Sprintf(`"line %d"`, keptLines+9)) {
		t.Errorf("from %s to %s", got[0], got[keptLines-2])
	}
	if n := len(got[keptLines-1]); n != keptLineBytes {
		t.Errorf("a line of %d bytes is kept", n)
	}
}

func TestLinesWaitForTheOutput(t *testing.T) {
	log := New(nil, 0)
	log.For("CONTROL").Info("first")
	var out bytes.Buffer
	if err := log.SetOutput(&out); err != nil {
		t.Fatal(err)
	}
	log.For("CONTROL").Info("second")
	if got := lines(t, out.String()); len(got) != 2 || got[0].Msg != "first" || got[1].Msg != "second" {
		t.Errorf("%+v", got)
	}
}

func TestWaitingLinesAreBounded(t *testing.T) {
	log := New(nil, 0)
	for range maxPending/1000 + 100 {
		log.For("CONTROL").Info(strings.Repeat("x", 1000))
	}
	if n := len(log.mu.pending); n > maxPending {
		t.Errorf("%d bytes wait", n)
	}
}

func TestLinesStayWhole(t *testing.T) {
	var out bytes.Buffer
	log := New(&out, 0)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 100 {
				log.For("CONTROL").Info(strings.Repeat(fmt.Sprint(i), 300))
			}
		})
	}
	all.Wait()
	if got := lines(t, out.String()); len(got) != 800 {
		t.Errorf("%d lines", len(got))
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "log")
	f, err := OpenFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Abandon(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("a start that failed left a log file")
	}

	if err := os.WriteFile(name, []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err = OpenFile(name); err != nil {
		t.Fatal(err)
	}
	if err := f.Abandon(); err != nil {
		t.Fatal(err)
	}
	if f, err = OpenFile(name); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Rotate(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("new\n")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{name: "new\n", name + ".2026-01-02T03-04-05": "old\n"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s holds %q: %v", name, got, err)
		}
	}

	if f, err = OpenFile(name); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("more\n")); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if got, _ := os.ReadFile(name); string(got) != "new\nmore\n" {
		t.Errorf("appended: %q", got)
	}
	if f, err = OpenFile(name); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Rotate(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("rotated over what was kept: %v", err)
	}
	if err := os.Rename(name, name+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := f.Reopen(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("anew\n")); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for name, want := range map[string]string{name: "anew\n", name + ".moved": "new\nmore\n"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s holds %q: %v", name, got, err)
		}
	}
	if _, err := OpenFile(filepath.Join(dir, "no", "log")); err == nil {
		t.Error("a log in a directory that does not exist was opened")
	}
	if _, err := OpenFile(dir); err == nil {
		t.Error("a directory was opened as a log")
	}
}

// What an operator should know since the start has a tag, and is kept for getLog.
func TestStartupWarnings(t *testing.T) {
	var out bytes.Buffer
	log := New(&out, 0)
	log.For("CONTROL").Warn("another")
	log.Startup().Warn("beware", "of", "dogs")
	got := log.StartupWarnings()
	if len(got) != 1 || !strings.Contains(out.String(), got[0]) {
		t.Fatalf("%q of\n%s", got, &out)
	}
	if l := lines(t, got[0]+"\n")[0]; l.Msg != "beware" || l.S != "W" || l.C != "CONTROL" || l.Attr["of"] != "dogs" || fmt.Sprint(l.Tags) != "[startupWarnings]" {
		t.Errorf("%+v", l)
	}
}

// TestIDsAndContexts: lines that mongod has too have its number, and the connection stands beside the attributes, those of the logger included.
func TestIDsAndContexts(t *testing.T) {
	var out bytes.Buffer
	log := New(&out, 0)
	log.For("NETWORK").Info("Connection accepted", "remote", "x", "ctx", "listener")
	log.For("TTL").With("a", 1).Info("Something of our own", "b", 2, "ctx", "conn7")
	log.For("TTL").With("a", 1).Info("Slow query", "b", 2)
	log.Startup().Warn("Soft rlimits for open file descriptors too low", "currentValue", 5)
	want := []string{
		`"id":22943,"msg":"Connection accepted","c":"NETWORK","ctx":"listener","attr":{"remote":"x"}}`,
		`"msg":"Something of our own","c":"TTL","ctx":"conn7","attr":{"a":1,"b":2}}`,
		`"id":51803,"msg":"Slow query","c":"TTL","ctx":"-","attr":{"a":1,"b":2}}`,
		`"id":22184,"msg":"Soft rlimits for open file descriptors too low","c":"CONTROL","tags":["startupWarnings"],"ctx":"-","attr":{"currentValue":5}}`,
	}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, w := range want {
		if !strings.HasSuffix(got[i], w) || strings.Contains(w, `"id"`) != strings.Contains(got[i], `"id"`) {
			t.Errorf("%s\nwant %s", got[i], w)
		}
		if !json.Valid([]byte(got[i])) {
			t.Errorf("no JSON: %s", got[i])
		}
	}
}
