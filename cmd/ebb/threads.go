package main

import (
	"os"
	"runtime"
)

// minThreads is how many threads must be able to run Go code at once, for one of them keeps the right to while it waits for
// clients in the kernel.
const minThreads = 2

// setThreads sets what the environment (GOMAXPROCS) has left open.
func setThreads() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < minThreads {
		runtime.GOMAXPROCS(minThreads)
	}
	if runtime.GOMAXPROCS(0) >= minThreads {
		slowWatchman()
	}
}
