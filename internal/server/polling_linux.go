package server

import (
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

const (
	// stuckAfter is how long a request may hold up the other connections of a poller, up to twice that.
	stuckAfter = 5 * time.Millisecond
	// dozeAfter is how many looks without a new request it takes until nobody looks any more.
	dozeAfter = 20
)

// polling is a server's pollers, and the goroutine that looks whether they come on: a request that was taken for quick may
// wait for a lock or a disk all the same.
type polling struct {
	// off leaves the pollers out.
	off     bool
	pollers []*poller
	next    atomic.Int64

	dozing atomic.Bool
	woken  chan struct{}
	quit   chan struct{}
	ended  chan struct{}
}

// start starts the pollers. Without any each connection has a goroutine of its own.
func (g *polling) start(s *Server) error {
	processors := runtime.GOMAXPROCS(0)
	if g.off = g.off || processors < 2; g.off { // the lead keeps one while it waits
		return nil
	}
	g.woken, g.quit, g.ended = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	var err error
	for range processors / 2 {
		var p *poller
		if p, err = startPoller(s); err != nil {
			break
		}
		g.pollers = append(g.pollers, p)
	}
	go g.keepMoving()
	return err
}

// stop ends the pollers. No connection is left.
func (g *polling) stop() {
	if g.off {
		return
	}
	close(g.quit)
	<-g.ended
	for _, p := range g.pollers {
		p.stop()
	}
}

// adopt has a poller look after c, which is connected by conn, once it is released; nil leaves conn as it is.
func (g *polling) adopt(conn net.Conn, c *Conn) heldSocket {
	if len(g.pollers) == 0 {
		return nil
	}
	s := polled(conn, g.pollers[g.next.Add(1)%int64(len(g.pollers))])
	if s == nil {
		return nil
	}
	s.conn = c
	s.hold.Store(held)
	return s
}

// rouse has the looks begin again.
func (g *polling) rouse() {
	if g.dozing.Load() && g.dozing.CompareAndSwap(true, false) {
		g.woken <- struct{}{}
	}
}

// keepMoving gives the lead to another goroutine where one has been at the same request for too long.
func (g *polling) keepMoving() {
	defer close(g.ended)
	seen := make([]progress, len(g.pollers))
	for quiet := 1; g.pause(quiet == 0); quiet = (quiet + 1) % dozeAfter {
		for i, p := range g.pollers {
			now := progress{p.lead.Load(), 0}
			now.steps = now.lead.steps.Load()
			if now != seen[i] {
				quiet = 1
			} else if now.steps%2 == 1 {
				now.lead.give()
			}
			seen[i] = now
		}
	}
}

// progress is how far a poller has come.
type progress struct {
	lead  *lead
	steps int64
}

// pause waits until the next look; false ends the looks.
func (g *polling) pause(doze bool) bool {
	var due <-chan time.Time
	if doze {
		g.dozing.Store(true)
	} else {
		timer := clock.Wall().NewTimer(stuckAfter) // it is about real threads and locks, whatever the server's clock says
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-due:
	case <-g.woken:
	case <-g.quit:
		return false
	}
	return true
}
