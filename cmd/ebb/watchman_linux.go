package main

import (
	"os"
	"strconv"
	"time"
)

// watchmanSlack is how late the kernel may wake the thread by which Go's runtime watches its other threads ("sysmon"). While one
// of those waits in the kernel it looks every 20 µs if that lasts; on a machine with nothing else to do each of these looks
// wakes a processor, and all of them together took a sixth of what the server needed for small inserts that are synced.
// What it does late then, taking a processor from a thread that waits, is of use after a millisecond too.
const watchmanSlack = time.Millisecond

// slowWatchman sets watchmanSlack, where the process may: it takes CAP_SYS_NICE, which root has outside of containers.
func slowWatchman() {
	if id := watchman(); id != "" {
		_ = os.WriteFile("/proc/"+id+"/timerslack_ns", strconv.AppendInt(nil, watchmanSlack.Nanoseconds(), 10), 0)
	}
}

// watchman is the thread's number: it is the first that Go's runtime starts, and the kernel lists threads in the order in which
// they began. Empty means that there is none to be seen.
func watchman() string {
	dir, err := os.Open("/proc/self/task")
	if err != nil {
		return ""
	}
	defer dir.Close()
	threads, err := dir.Readdirnames(2)
	if err != nil || len(threads) < 2 {
		return ""
	}
	return threads[1]
}
