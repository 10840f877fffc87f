package server

import (
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/establishment"
)

type counters struct {
	active   atomic.Int64
	rejected atomic.Int64
	bytesIn  atomic.Int64
	bytesOut atomic.Int64
	requests atomic.Int64
	// tls12 and tls13 count handshakes by what was agreed on, slowTLS those that took long.
	tls12, tls13, slowTLS atomic.Int64
}

// Stats are serverStatus's figures about connections and the network.
type Stats struct {
	// Current is the open connections; Available is how many more are allowed; Active is those that run an operation.
	Current, Available, Active int64
	// TotalCreated and Rejected count since the start.
	TotalCreated, Rejected int64
	// BytesIn and BytesOut are as they travel, compressed where they are. Requests counts messages.
	BytesIn, BytesOut, Requests int64
	// TLS12 and TLS13 count connections over TLS since the start by the protocol's version, SlowTLS those whose handshake took long.
	TLS12, TLS13, SlowTLS int64
	// Establishment is of those that begin, Queued among Current.
	Establishment establishment.Stats
}

// Stats is a look at the figures now.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	current, created := int64(len(s.mu.conns)), s.mu.created
	s.mu.Unlock()
	return Stats{
		Current: current, Available: int64(s.opts.MaxConns) - current, Active: s.counters.active.Load(),
		TotalCreated: created, Rejected: s.counters.rejected.Load(),
		BytesIn: s.counters.bytesIn.Load(), BytesOut: s.counters.bytesOut.Load(), Requests: s.counters.requests.Load(),
		TLS12: s.counters.tls12.Load(), TLS13: s.counters.tls13.Load(), SlowTLS: s.counters.slowTLS.Load(),
		Establishment: s.opts.Establishment.Stats(),
	}
}
