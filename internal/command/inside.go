package command

import "github.com/ebbdb/ebb/internal/auth"

// Inside is a connection of the server to itself, as which it may do everything. Nobody else sees it but while it runs a command.
func (s *Server) Inside() *Conn {
	c := NewConn(0, "", "")
	c.become(auth.Internal())
	return c
}
