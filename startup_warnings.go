package ebb

import (
	"net"
	"os"
	"slices"

	"github.com/ebbdb/ebb/internal/host"
)

// minOpenFiles is how many files mongod wants to be able to open.
const minOpenFiles = 64000

// warnOfSurroundings logs what an operator should know about how the server runs, in mongod's words; getLog keeps it.
func (s *Server) warnOfSurroundings(m host.Machine) {
	log := s.log.Startup()
	if s.opts.Authorization {
		s.warnOfMachine(m)
		return
	}
	log.Warn("Access control is not enabled for the database. Read and write access to data and configuration is unrestricted")
	if slices.ContainsFunc(s.network.Addrs(), isUnspecified) {
		log.Warn("This server is bound to all addresses, and access control is not enabled: whoever reaches it can read and change all data. " +
			"Start the server with --bind_ip <address> to specify which IP addresses it should serve responses from")
	}
	s.warnOfMachine(m)
}

// warnOfMachine logs what is not about who may do what.
func (s *Server) warnOfMachine(m host.Machine) {
	log := s.log.Startup()
	if os.Geteuid() == 0 {
		log.Warn("You are running this process as the root user, which is not recommended")
	}
	if m.MemoryLimit > 0 && m.MemoryLimit < m.MemoryBytes {
		log.Warn("Memory available to mongo process is less than total system memory", "availableMemSizeMB", m.MemoryLimit>>20, "systemMemSizeMB", m.MemoryBytes>>20)
	}
	if m.MaxOpenFiles > 0 && m.MaxOpenFiles < minOpenFiles {
		log.Warn("Soft rlimits for open file descriptors too low", "currentValue", m.MaxOpenFiles, "recommendedMinimum", minOpenFiles)
	}
}

func isUnspecified(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsUnspecified()
}
