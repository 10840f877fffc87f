//go:build !invariants

package wire

// spoil is for tests (spoil_invariants.go).
func spoil([]byte) {}
