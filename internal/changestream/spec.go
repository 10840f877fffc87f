// Package changestream makes the events of change streams out of the entries of the oplog: which entries a stream is about, and what
// its events say, in MongoDB's form. It reads entries as they lie in the oplog, and does not know where that is, nor who waits for
// events.
package changestream

import (
	"strings"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/resumetoken"
)

// Mode says which image of a document an event carries.
type Mode uint8

const (
	// Off: none but what the event itself has.
	Off Mode = iota
	// UpdateLookup: the document as it is when the event is read.
	UpdateLookup
	// WhenAvailable: that of the change, null where it was not kept.
	WhenAvailable
	// Required: that of the change; an event that has none is an error.
	Required
)

// Counts are what all change streams of a server have done together.
type Counts struct {
	// Expanded are those that were opened with Spec.Expanded; TooLarge the events at which one failed because they are larger than a
	// document may be; Split the events that were split instead.
	Expanded, TooLarge, Split atomic.Int64
}

// Spec is what a stream is asked for.
type Spec struct {
	// NS is what is watched: a collection, a database where it has no Coll, everything where it has no DB either.
	NS namespace.NS
	// FullDocument is the image of updates, BeforeChange the one of what was there before.
	FullDocument, BeforeChange Mode
	// Expanded asks for the events of definitions, and for more in others; System for those of collections of the server's own; RawUpdates
	// for updates as the oplog has them.
	Expanded, System, RawUpdates bool
	// Splits says that large events come in parts, so that a stream may go on behind one of these.
	Splits bool
	// Start is where the stream begins, if HasStart: at the first event of its time, or behind the event that it names.
	Start    resumetoken.Token
	HasStart bool
}

// Single says whether the stream is about one collection.
func (s *Spec) Single() bool { return s.NS.Coll != "" }

// WantsPreImage says whether events need the documents that there were before.
func (s *Spec) WantsPreImage() bool {
	return s.BeforeChange != Off || s.FullDocument == WhenAvailable || s.FullDocument == Required
}

// inDB says whether a database is watched, or a collection in it.
func (s *Spec) inDB(db string) bool {
	if s.NS.DB != "" {
		return s.NS.DB == db
	}
	return db != "admin" && db != "config" && db != "local"
}

// hasColl says whether a collection of a database that is watched is.
func (s *Spec) hasColl(coll string) bool {
	if s.NS.Coll != "" {
		return s.NS.Coll == coll
	}
	if coll == "" || coll[0] == '$' {
		return false
	}
	return s.System || !strings.HasPrefix(coll, "system.")
}

func (s *Spec) hasNS(ns namespace.NS) bool { return s.inDB(ns.DB) && s.hasColl(ns.Coll) }

// hasText is hasNS of "db.coll".
func (s *Spec) hasText(ns string) bool {
	if s.NS.Coll != "" { // without taking it apart
		return len(ns) == len(s.NS.DB)+1+len(s.NS.Coll) && ns[len(s.NS.DB)] == '.' && strings.HasPrefix(ns, s.NS.DB) && strings.HasSuffix(ns, s.NS.Coll)
	}
	return s.hasNS(namespace.Split(ns))
}
