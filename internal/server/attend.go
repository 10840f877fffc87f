package server

import "errors"

// attentive is a socket that tells when there may be something to read: attend calls ready then, until ready is done. Meanwhile
// a read that would have to wait fails with errNothing.
type attentive interface {
	attend(ready func() (done bool)) error
}

// errNothing says that nothing has arrived.
var errNothing = errors.New("nothing to read")

// attend answers the messages that arrive as a whole, as nearly all do, and says whether the connection goes on: then with a
// message of which there is a part, or with an error. All that is one read as the net package sees it: each read by itself
// would begin with a look whether there is something already, and there never is when the client waited for its reply.
func (s *Server) attend(c *Conn) bool {
	for c.attentive != nil {
		over := false
		err := c.attentive.attend(func() (done bool) {
			done, over = s.ready(c)
			return done
		})
		if nudged := c.awake(); err == nil || !nudged {
			return !over
		}
	}
	return true
}

// ready answers what has arrived. It is done when the rest must be read the plain way, or the connection is over.
func (s *Server) ready(c *Conn) (done, over bool) {
	c.awake()
	// The order matters: stop sets stopping first and the deadline that ends the wait afterwards, and awake lifts a deadline
	// before this look at stopping.
	if s.isStopping() {
		return true, true
	}
	for drained := false; ; {
		for c.reader.Whole() {
			if !s.next(c) {
				return true, true
			}
		}
		if c.reader.Buffered() > 0 {
			return true, false
		}
		if drained {
			c.watch.turn(idle)
			return false, false
		}
		// What fills less than the buffer is all there is. A read could say so too, and would cost as much as this one.
		full, err := c.reader.Fill()
		if err != nil && err != errNothing {
			return true, false
		}
		drained = !full
	}
}
