package host

import (
	"strconv"
	"strings"
	"syscall"
	"time"
)

func processUsed() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// tick is the unit of /proc/stat.
const tick = time.Second / 100

func machineIdle() time.Duration { return idleTime(read("/proc/stat")) }

// idleTime reads the first line of /proc/stat: "cpu", then the ticks of user, nice, system, idle, iowait and more.
func idleTime(text string) time.Duration {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 6 || fields[0] != "cpu" {
		return -1
	}
	idle, err := strconv.ParseInt(fields[4], 10, 64)
	waiting, failed := strconv.ParseInt(fields[5], 10, 64)
	if err != nil || failed != nil {
		return -1
	}
	return time.Duration(idle+waiting) * tick
}
