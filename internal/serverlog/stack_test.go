package serverlog

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// A panic deep down is one line of the log, whose stack can be read.
func TestStackIsOneLine(t *testing.T) {
	var out bytes.Buffer
	log := New(&out, 0).For("TTL")
	var down func(n int)
	down = func(n int) {
		if n == 0 {
			panic("deep")
		}
		down(n - 1)
	}
	func() {
		defer func() { log.Error("it panicked", "panic", recover(), Stack()) }()
		down(200)
	}()
	var line struct{ Attr struct{ Stack []string } }
	if strings.Count(out.String(), "\n") != 1 || json.Unmarshal(out.Bytes(), &line) != nil {
		t.Fatalf("logged %q", out.String())
	}
	if s := line.Attr.Stack; len(s) != maxFrames || !strings.Contains(s[0], "TestStackIsOneLine") || !strings.Contains(s[10], "stack_test.go:") {
		t.Errorf("%d frames: %q", len(s), s)
	}
	if strings.Contains(out.String(), `\n`) || strings.Contains(out.String(), `\t`) {
		t.Error("there are line ends in it")
	}
}
