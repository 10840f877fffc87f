package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestSlowWatchman looks at the thread that is taken for the runtime's watchman: it exists, is not the first thread, and is late
// afterwards where that is allowed.
func TestSlowWatchman(t *testing.T) {
	id := watchman()
	if id == "" || id == strconv.Itoa(os.Getpid()) {
		t.Fatalf("the watchman is %q", id)
	}
	before, err := os.ReadFile("/proc/" + id + "/timerslack_ns")
	if err != nil {
		t.Skipf("this system does not tell: %v", err)
	}
	if err := os.WriteFile("/proc/"+id+"/timerslack_ns", before, 0); err != nil {
		t.Skipf("it takes CAP_SYS_NICE: %v", err)
	}
	slowWatchman()
	after, err := os.ReadFile("/proc/" + id + "/timerslack_ns")
	if err != nil || strings.TrimSpace(string(after)) != "1000000" {
		t.Errorf("the slack is %s, %v", after, err)
	}
}
