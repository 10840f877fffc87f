//go:build !linux

package host

import (
	"runtime"
	"runtime/metrics"
)

func (m *Machine) look() {
	m.OSType = runtime.GOOS
	if runtime.GOOS == "darwin" {
		m.OSType = "Darwin"
	}
}

// Used is what the process has used until now: of its memory what the Go runtime knows.
func Used() Usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Usage{ResidentBytes: int64(m.Sys), VirtualBytes: int64(m.Sys)}
}

// ResidentOf is how many bytes of memory of its own another process has now: nobody tells.
func ResidentOf(int) int64 { return 0 }

// Resident is how many bytes of memory the process has now, as far as the Go runtime knows.
func Resident() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}
