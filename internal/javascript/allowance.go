package javascript

import (
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/host"
)

const (
	// restBytes is what a worker is given to begin with: what one has that has just begun, and a step.
	restBytes = 16 << 20
	// stepBytes is how much more than it has a worker is given: about what it can grow by until it is looked at again.
	stepBytes = 8 << 20
	// unknownBytes is what a worker is given for good where the system does not tell what it has.
	unknownBytes = 64 << 20
)

// least is what a worker is given to begin with.
func (p *pool) least() int64 {
	if p.unmeasured {
		return unknownBytes
	}
	return restBytes
}

// measure has the worker given what it has of the machine's memory and a step more, and what it has no longer taken back. It
// returns why the worker has to end: it has more than there is to give. The caller holds the lock of now.
func (w *worker) measure() error {
	now := clock.Wall().Now()
	if w.pool.unmeasured || w.over() || now.Sub(w.now.measured) < watchEvery {
		return nil
	}
	w.now.measured = now
	has := host.ResidentOf(w.cmd.Process.Pid)
	w.resident.Store(has)
	defer func() { w.granted.Store(w.now.room.Used()) }()
	wants := max(has+stepBytes, restBytes)
	switch lacks := wants - w.now.room.Used(); {
	case lacks < -stepBytes:
		w.now.room.Give(-lacks)
	case lacks > 0 && !w.now.room.Take(lacks):
		if lacks = has - w.now.room.Used(); lacks > 0 && !w.now.room.Take(lacks) {
			return w.now.room.Refuse(lacks)
		}
	}
	return nil
}
