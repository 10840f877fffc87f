package main

import (
	"os"
	"runtime"
)

// spareProcessors is how many threads more than there are processors may run at once: one is with the disk most of the
// time, and then no other has to be woken to take its place.
const spareProcessors = 1

// addProcessors sets what the environment (GOMAXPROCS) has left open. From then on the runtime no longer follows a
// container's limit that is changed while it runs.
func addProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + spareProcessors)
	}
}
