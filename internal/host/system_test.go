package host

import (
	"fmt"
	"strings"
	"testing"
)

func TestSystemFigures(t *testing.T) {
	const stat = "cpu  10 2 3 400 5 0 7 0 0 0\ncpu0 1 1 1 1\nintr 5 6 7\nctxt 900\nbtime 1700000000\nprocesses 12\nprocs_running 2\nprocs_blocked x\n\ncpu\n"
	const mem = "MemTotal:       100 kB\nMemFree:  40 kB\nActive(anon):  7 kB\nHugePages_Total: 0\nVmallocUsed: 1 kB\nCached: much kB\nBroken\n"
	for _, c := range []struct {
		got  []Figure
		want string
	}{
		{cpuFigures(stat), "[{user_ms 100} {nice_ms 20} {system_ms 30} {idle_ms 4000} {iowait_ms 50} {irq_ms 0} {softirq_ms 70} {steal_ms 0} {guest_ms 0} {guest_nice_ms 0} {ctxt 900} {btime 1.7e+12} {processes 12} {procs_running 2}]"},
		{memoryFigures(mem), "[{MemTotal_kb 100} {MemFree_kb 40} {Active(anon)_kb 7}]"},
		{cpuFigures(""), "[]"},
		{memoryFigures("\x00: 1 kB\n"), "[]"},
	} {
		if got := fmt.Sprint(c.got); got != c.want {
			t.Errorf("got %s\nwant %s", got, c.want)
		}
	}
	if many := cpuFigures(strings.Repeat("ctxt 1\n", 1000)); len(many) != maxFigures {
		t.Errorf("%d figures of one file", len(many))
	}
	if s := Measure(); len(s.CPU) == 0 || s.CPU[0].Value < 1 {
		t.Errorf("this machine has %+v", s)
	}
}
