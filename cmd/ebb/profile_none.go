//go:build !cpuprofile

package main

// profileCPU does nothing: see profile_cpu.go.
func profileCPU() (stop func() error, err error) { return func() error { return nil }, nil }
