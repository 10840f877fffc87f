package serverlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// pieces is a value that leaves out what is behind its first piece.
type pieces []string

func (p pieces) JSONWithin(int) (text, truncated json.RawMessage, size int) {
	if len(p) == 1 {
		return json.RawMessage(`["` + p[0] + `"]`), nil, 0
	}
	return json.RawMessage(`["` + p[0] + `"]`), json.RawMessage(`{"1":{"type":"string","size":5}}`), 99
}

// TestLimit: a line has no attribute longer than mongod's has, and says so beside the attributes.
func TestLimit(t *testing.T) {
	long, lines := strings.Repeat("x", 2*maxAttrBytes), strings.Repeat("\n", maxAttrBytes)
	x, n := long[:maxAttrBytes], strings.Repeat(`\n`, maxAttrBytes/2)
	for _, c := range []struct {
		name string
		log  func(*slog.Logger)
		want string
	}{
		{"nothing", func(l *slog.Logger) { l.Info("m", "a", x, "p", pieces{"p"}) }, `"ctx":"-","attr":{"a":"` + x + `","p":["p"]}}`},
		{"a text", func(l *slog.Logger) { l.Info("m", "a", long, "b", 1) },
			`"ctx":"-","attr":{"a":"` + x + `","b":1},"truncated":{"a":{"type":"string","size":20480}}}`},
		{"escapes", func(l *slog.Logger) { l.Info("m", "a", lines) }, `"attr":{"a":"` + n + `"},"truncated":{"a":{"type":"string","size":20480}}}`},
		{"an error", func(l *slog.Logger) { l.Warn("m", "error", Client(errors.New(long)), "ctx", "conn1") },
			`"ctx":"conn1","attr":{"error":"` + x + `"},"truncated":{"error":{"type":"string","size":20480}}}`},
		{"a document", func(l *slog.Logger) {
			l.With("u", 1).Info("Slow query", "command", ClientOr(pieces{"p", "q"}, nil), "b", long)
		},
			`"ctx":"-","attr":{"u":1,"command":["p"],"b":"` + x + `"},"truncated":{"command":{"1":{"type":"string","size":5}},"b":{"type":"string","size":20480}},"size":{"command":99}}`},
		{"a character", func(l *slog.Logger) { l.Info("m", "a", x[1:]+"ä") }, `"attr":{"a":"` + x[1:] + `"},"truncated":{"a":{"type":"string","size":10241}}}`},
	} {
		var out, other bytes.Buffer
		c.log(New(&out, 0).For("COMMAND"))
		c.log(Of(slog.New(slog.NewJSONHandler(&other, nil))).For("COMMAND"))
		if got := strings.TrimSpace(out.String()); !strings.HasSuffix(got, c.want) || !json.Valid([]byte(got)) {
			t.Errorf("%s: %.200s … %s", c.name, got, got[max(0, len(got)-200):])
		}
		if got := other.String(); len(got) > 3*maxAttrBytes || strings.Contains(got, `"truncated"`) != strings.Contains(c.want, `"truncated"`) {
			t.Errorf("%s: to somebody else: %.200s", c.name, got)
		}
	}
}
