package chaos

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// reporter is a test that says once more in the end what has failed, behind the servers' logs: CI shows the end of what a test prints.
type reporter struct {
	testing.TB

	mu     sync.Mutex // guards failed
	failed []string
}

// report makes a reporter of a test. What is cleaned up afterwards is so before it says what has failed.
func report(t *testing.T) *reporter {
	r := &reporter{TB: t}
	t.Cleanup(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.failed) > 0 {
			t.Logf("what failed:\n%s", strings.Join(r.failed, "\n"))
		}
	})
	return r
}

// failuresKept are so many as are said again.
const failuresKept = 10

func (r *reporter) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failed) < failuresKept {
		r.failed = append(r.failed, what)
	}
}

func (r *reporter) Error(args ...any) {
	r.Helper()
	r.note(fmt.Sprintln(args...))
	r.TB.Error(args...)
}

func (r *reporter) Errorf(format string, args ...any) {
	r.Helper()
	r.note(fmt.Sprintf(format, args...))
	r.TB.Errorf(format, args...)
}

func (r *reporter) Fatal(args ...any) {
	r.Helper()
	r.note(fmt.Sprintln(args...))
	r.TB.Fatal(args...)
}

func (r *reporter) Fatalf(format string, args ...any) {
	r.Helper()
	r.note(fmt.Sprintf(format, args...))
	r.TB.Fatalf(format, args...)
}
