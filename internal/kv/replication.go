package kv

import "errors"

// Log is where the Commits of an engine that leads a replica set go before anybody sees them. An engine with a Log orders a Commit, appends it
// and applies it when the log says that it is committed: that enough members have it for it never to be lost. What never is committed was never
// seen, so nothing is taken back.
type Log interface {
	// Append adds the binary form of a Commit behind those that were appended before; the bytes are the Log's from then on. It is called for one
	// Commit at a time, in their order, and does not wait. What becomes of it the engine is told in another way: where it cannot be committed any
	// more the engine does not lead any more.
	Append(encoded []byte)
}

// ErrNotLeader is returned by what would write to an engine that follows another one.
var ErrNotLeader = errors.New("kv: the engine follows another one and takes no writes of its own")
