package host

import (
	"runtime"
	"time"
)

// Processors is processor time, counted since some moment in the past: what one differs from an earlier one is what was
// used in between.
type Processors struct {
	// Count is how many processors the process may use at once.
	Count int
	// Used is what the process has used of them. Idle is what nobody used of all that the machine has, which may be more;
	// negative where the system does not tell.
	Used, Idle time.Duration
}

// ProcessorCount is how many processors the process may use at once. Go's scheduler may have one more than the machine (cmd/ebb), which
// does not count.
func ProcessorCount() int { return min(runtime.GOMAXPROCS(0), runtime.NumCPU()) }

// LookAtProcessors is cheap enough to be called ten times a second.
func LookAtProcessors() Processors {
	return Processors{Count: ProcessorCount(), Used: processUsed(), Idle: machineIdle()}
}
