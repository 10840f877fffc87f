package main

import (
	"os"
	"runtime"
)

// addProcessor gives Go's scheduler one processor more than the machine has. Where all of them are at work Go asks the network only every
// 10 ms, and a find by _id waits for that. Long operations are admitted to as many as there are (host.ProcessorCount), so that one more
// is left for who needs it for a moment.
func addProcessor() {
	if os.Getenv("GOMAXPROCS") == "" {
		if n := schedulerProcessors(runtime.GOMAXPROCS(0), runtime.NumCPU()); n > 0 {
			runtime.GOMAXPROCS(n)
		}
	}
}

// schedulerProcessors is how many Go's scheduler is to have instead of the given number on a machine that has so many; 0 leaves it
// alone. Where the system's quota gives the process fewer than there are Go follows the quota, also when it changes, and one more
// could not be told from those that the quota gives.
func schedulerProcessors(given, machine int) int {
	if given != machine {
		return 0
	}
	return machine + 1
}
