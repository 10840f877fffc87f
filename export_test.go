package ebb

// Fail is what the engine calls when it can no longer keep what it promised.
func (s *Server) Fail(cause error) { s.fail(cause) }
