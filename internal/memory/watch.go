package memory

import (
	"runtime/debug"
	"time"
)

const (
	// watchEvery is how often Watch looks. In that time two processors can ask for some hundred megabytes.
	watchEvery = 50 * time.Millisecond
	// tightShare and fullShare are the parts of the machine's memory from which on accounts may have less, and nothing more.
	// The first lies above what the process is meant to have under full load: Go's memory limit and the store's caches. Go's
	// heap grows up to its limit before it is collected, so that much says nothing about who holds how much. What is above
	// the second is for what is asked for until the next look.
	tightShare = 0.68
	fullShare  = 0.85
	// collectEvery is how often garbage is collected at most because an account was denied what only garbage is in the way of.
	collectEvery = time.Second
)

// Watch looks at what the process has of the machine, or of the container, which has so many bytes in all, until the Governor
// is closed. It is called once, if at all.
func (g *Governor) Watch(resident func() int64, machineBytes int64) {
	if g == nil || machineBytes <= 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.over {
		return
	}
	g.relieving.Go(func() {
		var collected, trimmed time.Time
		for {
			g.squeeze(resident(), machineBytes)
			if now := g.clock.Now(); g.isStrangled() && now.Sub(collected) >= collectEvery {
				debug.FreeOSMemory()
				collected = g.clock.Now()
				g.squeeze(resident(), machineBytes)
			}
			if now := g.clock.Now(); now.Sub(trimmed) >= trimEvery {
				g.trim()
				trimmed = now
			}
			timer := g.clock.NewTimer(watchEvery)
			select {
			case <-timer.C():
			case <-g.closed:
				timer.Stop()
				return
			}
		}
	})
}

// isStrangled says whether somebody was denied memory, since this was asked last, that is there but for the squeeze: what the
// process has may be garbage, of which the collector leaves as much as it may.
func (g *Governor) isStrangled() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	denied := g.mu.denied
	g.mu.denied = false
	return denied && g.mu.squeezed > 0
}

// squeeze sets how much less may be used where the process has so many of the machine's bytes.
func (g *Governor) squeeze(resident, machineBytes int64) {
	tight, full := tightShare*float64(machineBytes), fullShare*float64(machineBytes)
	part := min(max((float64(resident)-tight)/(full-tight), 0), 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.mu.squeezed
	g.mu.stats.Resident = resident
	g.mu.squeezed = int64(part * float64(g.total))
	if over := g.mu.used - (g.total - g.mu.squeezed); over > 0 && g.mu.squeezed > 0 {
		g.mu.wanted = max(g.mu.wanted, over)
		g.relieve()
	}
	if g.mu.squeezed < before {
		g.serve()
	}
}
