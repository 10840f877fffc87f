package javascript

import (
	"os"
	"syscall"
)

const (
	// niceness is by how much workers let others go first.
	niceness = 5
	// rlimitData bounds what a process may write to of its own memory. What Go only reserves is not counted.
	rlimitData = syscall.RLIMIT_DATA
)

// confine bounds this process: its memory, and its turn where processors or memory are short. What the kernel does not
// grant is left: the limits of the Go runtime hold without it.
func confine(bytes uint64) {
	if !raced {
		_ = syscall.Setrlimit(rlimitData, &syscall.Rlimit{Cur: bytes, Max: bytes})
	}
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
}
