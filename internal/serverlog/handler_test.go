package serverlog

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// Somebody else's logger gets what it wants, whatever the verbosity, and the last lines are kept beside it.
func TestOfAnotherLogger(t *testing.T) {
	var text bytes.Buffer
	l := Of(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})))
	log := l.For("STORAGE").With("collection", "db.c")
	log.Info("Opened", "ms", 5)
	log.Debug("Looked")
	l.Startup().Warn("No access control")
	for _, want := range []string{`msg=Opened c=STORAGE attr.collection=db.c attr.ms=5`, `msg=Looked`, `level=WARN msg="No access control"`} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	lines, total := l.Recent()
	if total != 2 || !strings.Contains(lines[0], `"c":"STORAGE"`) || len(l.StartupWarnings()) != 1 {
		t.Errorf("%d lines: %q, of the start %q", total, lines, l.StartupWarnings())
	}
	l.SetVerbosity(1)
	log.Debug("Looked again")
	if _, total := l.Recent(); total != 3 {
		t.Errorf("%d lines are kept", total)
	}
}

// The Log behind a logger of its own is found again, and nothing at all is a Log that throws lines away.
func TestOfItsOwn(t *testing.T) {
	l := New(nil, 0)
	if Of(l.Logger()) != l || Of(l.For("TTL").With("a", 1)) != l {
		t.Error("it is another one")
	}
	none := Of(nil)
	none.For("TTL").Info("Said")
	if lines, _ := none.Recent(); len(lines) != 1 {
		t.Errorf("%q", lines)
	}
}
