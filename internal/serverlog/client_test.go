package serverlog

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// TestRedaction: neither the log, nor what getLog shows, nor somebody else's handler has clients' data.
func TestRedaction(t *testing.T) {
	var other bytes.Buffer
	l := Of(slog.New(slog.NewJSONHandler(&other, nil)))
	say := func() string {
		other.Reset()
		l.For("COMMAND").Info("Slow query", "ns", "a.b", "error", Client("dup key: hunter2"), "command", ClientOr("hunter2", func() any { return "short" }))
		recent, _ := l.Recent()
		return other.String() + recent[len(recent)-1]
	}
	if got := say(); strings.Count(got, `"error":"dup key: hunter2","command":"hunter2"`) != 2 {
		t.Error(got)
	}
	l.SetRedaction(true)
	if got := say(); strings.Count(got, `"ns":"a.b","error":"###","command":"short"`) != 2 || strings.Contains(got, "hunter2") {
		t.Error(got)
	}
	l.SetRedaction(false)
	if got := say(); !strings.Contains(got, "hunter2") {
		t.Error(got)
	}
}
