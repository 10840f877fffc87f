//go:build !invariants

package pebblekv

// lent is what an iterator has handed out, which is its reader's until it moves or is closed.
type lent struct{}

func (*lent) lend(b []byte) []byte { return b }
func (*lent) spoil()               {}
