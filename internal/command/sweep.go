package command

import "context"

// SweepGate is the door that the TTL monitor's deletes go through: the one for all writers.
type SweepGate struct{ *Server }

// Locked says whether fsync with lock keeps writers out.
func (g SweepGate) Locked() bool { return g.Writes.Locks() > 0 }

// Enter begins a write.
func (g SweepGate) Enter(ctx context.Context) error { return g.Writes.Enter(ctx) }

// Leave ends it.
func (g SweepGate) Leave() { g.Writes.Leave() }

// WritesBlocked says whether users may not write; a standalone has no setUserWriteBlockMode.
func (g SweepGate) WritesBlocked() bool { return false }

// wakeSweep lets the TTL monitor know that it is not held up any more.
func (s *Server) wakeSweep() {
	if s.TTL != nil {
		s.TTL.Wake()
	}
}
