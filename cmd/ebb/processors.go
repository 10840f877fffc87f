package main

import (
	"os"
	"runtime"
)

// addProcessor gives Go's scheduler one processor more than there are, unless the environment (GOMAXPROCS) says how many it has. Where
// all of them are at work Go asks the network only every 10 ms, and a find by _id waits for that. Long operations are
// admitted to as many as there are (exec), so that one more is left for who needs it for a moment.
func addProcessor() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}
