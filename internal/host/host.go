// Package host says what machine and what process this is: processors, memory, operating system, and what the process
// has used of them. It knows nothing of databases. Where the system does not tell, figures are 0 and texts empty.
package host

import (
	"os"
	"runtime"
)

// Machine is what does not change while the process runs.
type Machine struct {
	Name string
	// Cores is the processors there are, Available those this process may use, Physical the cores behind them.
	Cores, Available, Physical, Sockets, NumaNodes int
	// Arch is as uname says it: x86_64, aarch64.
	Arch string
	// MemoryBytes is all memory; MemoryLimit is what a control group leaves of it.
	MemoryBytes, MemoryLimit int64
	CPU                      string
	CPUMHz                   string
	CPUFeatures              string
	// OSType is "Linux", "Darwin", "Windows"; OSName and OSVersion are its distribution.
	OSType, OSName, OSVersion string
	Kernel, KernelVersion     string
	PageBytes                 int64
	MaxOpenFiles              int64
}

// Usage is what the process has used so far.
type Usage struct {
	ResidentBytes, VirtualBytes       int64
	UserMicros, SystemMicros          int64
	MaxResidentKB                     int64
	InputBlocks, OutputBlocks         int64
	PageReclaims, PageFaults          int64
	VoluntarySwitches, ForcedSwitches int64
	Threads                           int64
}

// Look finds out about the machine.
func Look() Machine {
	m := Machine{Cores: runtime.NumCPU(), Available: runtime.NumCPU(), NumaNodes: 1, Sockets: 1, Arch: arch(), PageBytes: int64(os.Getpagesize())}
	m.Physical = m.Cores
	m.Name, _ = os.Hostname()
	m.look()
	if m.MemoryLimit == 0 || m.MemoryLimit > m.MemoryBytes {
		m.MemoryLimit = m.MemoryBytes
	}
	return m
}

func arch() string {
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return runtime.GOARCH
}
