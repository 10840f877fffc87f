package ttl

import "time"

// A sweep that tells of each document works for a microsecond or two a document, and as much again is done elsewhere for each: entries
// are synced, flushed and compacted, and change streams make events of them. Were it to take what is spare, a million documents
// would fill two processors for three seconds, a few milliseconds at a time, and whoever asks for a document meanwhile would wait for
// that. So as long as clients ask for anything it takes no more than it needs to be through in time, evenly from beginning to end.

// toldWithin is how long after the beginning of its pass a sweep that tells of each document is to be through. From then on it does not
// rest any more: who listens is to hear of a million documents within ten seconds of their deadline.
const toldWithin = 8 * time.Second

// telling is how far such sweeps of a target have come in a pass.
type telling struct {
	documents int64
	worked    time.Duration // for so long
	left      int64         // about how many documents are left
	lag       time.Duration // how long the pass has been at it
}

// did takes account of a step.
func (t *telling) did(documents int64, worked time.Duration, left int64, lag time.Duration) {
	t.documents += documents
	t.worked += worked
	t.left, t.lag = left, lag
}

// share is which part of one processor is needed to be through in time.
func (t *telling) share() float64 {
	rest := toldWithin - t.lag
	if rest <= 0 || t.documents <= 0 {
		return 1
	}
	needed := float64(t.worked) / float64(t.documents) * float64(t.left)
	return min(needed/float64(rest), 1)
}
