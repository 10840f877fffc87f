package ebb

import (
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// hangTime is for how long the disk may bring nothing to its end before a server that is to end does not wait for it any more. A supervisor would kill
// the process after 30 seconds or so, and without one nobody would. hangLook is how often that is looked at.
const (
	hangTime = 10 * time.Second
	hangLook = time.Second
)

// closeUnlessHung closes the server. Where the disk hangs it returns before that is done, which goes on by itself.
func (s *Server) closeUnlessHung() error {
	closed := make(chan error, 1)
	go func() { closed <- s.close() }()
	for {
		look := clock.Wall().NewTimer(hangLook)
		select {
		case err := <-closed:
			look.Stop()
			return err
		case <-look.C():
		}
		if stalled := s.watch.Stalled(); stalled >= hangTime {
			s.tellHung(stalled)
			return ErrDiskHangs
		}
	}
}

func (s *Server) tellHung(stalled time.Duration) {
	s.log.For("STORAGE").Error("The disk hangs, and the server ends without it; what was acknowledged is safe", "millis", stalled.Milliseconds())
}
