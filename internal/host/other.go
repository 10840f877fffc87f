//go:build !linux

package host

import "runtime"

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
