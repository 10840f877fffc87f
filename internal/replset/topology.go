package replset

import (
	"crypto/rand"
	"sync/atomic"
)

// Topology counts what hello tells of, for as long as a process lives: its Nodes, one after the other, go on with one count. Drivers take what
// comes with an older count for stale, and what comes with another id for younger than all that they know. So an error that a Node's end has
// left on its way would undo what they have learned of the next one, if each had an id of its own.
type Topology struct {
	// ID names the process.
	ID    [12]byte
	count atomic.Int64
}

// NewTopology is that of a process that has told nothing yet.
func NewTopology() *Topology {
	t := &Topology{}
	_, _ = rand.Read(t.ID[:]) // never fails
	t.count.Store(-1)
	return t
}

func (t *Topology) next() int64 { return t.count.Add(1) }
