package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc: USER_HZ is 100 on every Linux that Go runs on.
const tick = time.Second / 100

// process is what /proc/<pid>/stat says of one process.
type process struct {
	pid, parent int
	cpu         time.Duration // its own, and that of children it has waited for
	rssPages    int64
}

// parseProcess reads a line of /proc/<pid>/stat (proc(5)). The name in the second field may hold blanks and brackets,
// so what follows counts from the last bracket.
func parseProcess(line []byte) (p process, err error) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return p, fmt.Errorf("no name in brackets in %q", line)
	}
	fields := strings.Fields(string(line[end+1:]))
	const state, ppid, utime, cstime, rss = 3, 4, 14, 17, 24 // as proc(5) counts them
	if len(fields) <= rss-state {
		return p, fmt.Errorf("%d fields behind the name", len(fields))
	}
	number := func(text string) (n int64) {
		if err == nil {
			n, err = strconv.ParseInt(text, 10, 64)
		}
		return n
	}
	p.pid = int(number(strings.TrimSpace(string(line[:open]))))
	p.parent = int(number(fields[ppid-state]))
	for i := utime; i <= cstime; i++ {
		p.cpu += time.Duration(number(fields[i-state])) * tick
	}
	p.rssPages = number(fields[rss-state])
	return p, err
}

func lookAt(pid int) (process, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, err
	}
	return parseProcess(line)
}

// family are the processes of pids and all below them that live now.
func family(pids []int) []process {
	children := map[int][]process{}
	byPID := map[int]process{}
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, path := range paths {
		line, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		if p, err := parseProcess(line); err == nil {
			children[p.parent], byPID[p.pid] = append(children[p.parent], p), p
		}
	}
	var out []process
	var take func(p process)
	take = func(p process) {
		out = append(out, p)
		for _, child := range children[p.pid] {
			take(child)
		}
	}
	for _, pid := range pids {
		if p, ok := byPID[pid]; ok {
			take(p)
		}
	}
	return out
}

// residentBytes adds up; pages that processes share are counted once for each.
func residentBytes(ps []process) (sum int64) {
	for _, p := range ps {
		sum += p.rssPages * int64(os.Getpagesize())
	}
	return sum
}

func cpuOf(ps []process) (sum time.Duration) {
	for _, p := range ps {
		sum += p.cpu
	}
	return sum
}

// parseBusy reads the first line of /proc/stat: what all processors did but idle and wait. What the hypervisor took is
// no work.
func parseBusy(text []byte) (busy time.Duration, err error) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) < 8 || fields[0] != "cpu" {
		return 0, fmt.Errorf("%q is no line of processors", line)
	}
	for _, i := range []int{1, 2, 3, 6, 7} { // user, nice, system, irq, softirq
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, err
		}
		busy += time.Duration(n) * tick
	}
	return busy, nil
}

// machineBusy is 0 where there is no /proc.
func machineBusy() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	busy, _ := parseBusy(text)
	return busy
}
