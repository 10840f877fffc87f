package failpoint

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func set(t *testing.T, p *Point, text string) int64 {
	t.Helper()
	s, err := Parse(bson.MustDoc(text))
	if err != nil {
		t.Fatal(err)
	}
	return p.Set(s)
}

// enter enters the point so often, and writes when it was on.
func enter(p *Point, often int, applies bool) string {
	var out strings.Builder
	for range often {
		if _, on := p.Enter(func(bson.Doc) bool { return applies }); on {
			out.WriteByte('+')
		} else {
			out.WriteByte('-')
		}
	}
	return out.String()
}

// TestModes: in which passes a point is on; one that its data is not about is no pass.
func TestModes(t *testing.T) {
	for mode, want := range map[string]string{
		"'off'": "----", "'alwaysOn'": "++++", "{times: 2}": "++--", "{times: 0}": "+---", "{skip: 0}": "++++", "{skip: 3}": "---+",
		"{activationProbability: 0}": "----", "{activationProbability: 1}": "++++",
	} {
		var p Point
		set(t, &p, fmt.Sprintf("{mode: %s}", mode))
		if got := enter(&p, 4, false); got != "----" {
			t.Errorf("%s: others: %s", mode, got)
		}
		if got := enter(&p, 4, true); got != want {
			t.Errorf("%s: %s, want %s", mode, got, want)
		}
		if got := set(t, &p, "{mode: 'off'}"); got != int64(strings.Count(want, "+")) {
			t.Errorf("%s: entered %d times", mode, got)
		}
	}
}

func TestDescribe(t *testing.T) {
	var p Point
	if got := p.Describe().String(); got != "{ mode: 0, data: {}, timesEntered: 0 }" {
		t.Error(got)
	}
	set(t, &p, "{mode: {times: 5}, data: {a: 1}}")
	enter(&p, 2, true)
	if got := p.Describe().String(); got != "{ mode: 3, data: { a: 1 }, timesEntered: 2 }" {
		t.Error(got)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]mongoerr.Code{
		"{}":                                        mongoerr.IllegalOperation,
		"{mode: 'on'}":                              mongoerr.BadValue,
		"{mode: 1}":                                 mongoerr.TypeMismatch,
		"{mode: {}}":                                mongoerr.BadValue,
		"{mode: {times: 'x'}}":                      mongoerr.TypeMismatch,
		"{mode: {times: 1.5}}":                      mongoerr.BadValue,
		"{mode: {times: -1}}":                       mongoerr.BadValue,
		"{mode: {skip: 4294967296}}":                mongoerr.BadValue,
		"{mode: {activationProbability: 'x'}}":      mongoerr.TypeMismatch,
		"{mode: {activationProbability: 1.5}}":      mongoerr.BadValue,
		"{mode: {activationProbability: NaN}}":      mongoerr.BadValue,
		"{mode: 'alwaysOn', data: 'x'}":             mongoerr.TypeMismatch,
		"{mode: {activationProbability: '', x: 1}}": mongoerr.TypeMismatch,
	} {
		if _, err := Parse(bson.MustDoc(text)); !mongoerr.Is(err, want) {
			t.Errorf("%s: %v, want code %d", text, err, want)
		}
	}
}

// TestAwait: who waits for a point to be entered is told, by whoever enters it.
func TestAwait(t *testing.T) {
	var p Point
	set(t, &p, "{mode: 'alwaysOn'}")
	done := make(chan error)
	go func() { done <- p.Await(t.Context(), 3) }()
	enter(&p, 3, true)
	if err := <-done; err != nil {
		t.Error(err)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := p.Await(ctx, 4); err != gone {
		t.Error(err)
	}
}
