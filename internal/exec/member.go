package exec

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
)

// Member is what nodes of a plan hand up: a record, of which at first perhaps only the id is known, or the key by which an
// index has it. What it points to is valid until the next call of work, park or close on the node that gave it.
type Member struct {
	storage.Record // Doc is nil until the record is fetched
	// Entry is the entry of the index by which a scan found the record, nil where there was none.
	Entry *storage.IndexEntry
	// Key are the values of the key by which an index scan found the record, when somebody asked for them; see want.
	Key []bson.Value
	// IndexKey is that key as a document, when somebody asked for it; see want. Searches of a text index have none.
	IndexKey bson.Doc
	// FromKey says that Doc was made of the key, and has what a covered projection reads and nothing else.
	FromKey bool
	// Score is that of a search of a text index, which finds records with it; Scored says that there is one.
	Score  float64
	Scored bool
}

// status is what one unit of work has come to.
type status uint8

const (
	// needTime: nothing yet, more work is needed.
	needTime status = iota
	// advanced: the member is filled.
	advanced
	// ended: there is nothing more. work is not called again, unless a tail makes the end no end.
	ended
)

// node is a plan node at work. One call of work is a bounded piece of it, such as one key or one document looked at, so that
// plans can be raced and interrupted; work fills m when it advances.
//
// park lets go of what is held of the storage engine and keeps the place, as a Parker does; the member that was given last
// need not stay valid. After an error only close may be called; it may be called more than once.
type node interface {
	work(r *reading, m *Member) (status, error)
	park()
	close() error
}

// Stats are what a node has counted, with those of its children in the order of the plan's.
type Stats struct {
	Works, Advanced, NeedTime int64
	EOF                       bool
	// Keys and Docs are what it has looked at; Seeks how often it had to search for its place.
	Keys, Docs, Seeks int64
	// Dups are the record ids that it has met before and dropped; Tested those that it looked at for that.
	DupsTested, DupsDropped int64
	// Rejected are the members that did not match its filter.
	Rejected int64
	// Held is how many bytes it kept at most, and Disk whether it went on in files.
	Held int64
	Disk bool
	// Rings are those that a search by distance has walked.
	Rings []Ring

	Children []*Stats
}

// Ring is a ring around the center of a search by distance, with the records that were found there and those given.
type Ring struct {
	Low, High   float64
	Last        bool // High is in it
	Found, Gave int64
	// Scan is the walk of the index, nil when there was nothing to walk; Fetch counts the records behind it, and has the
	// walk's own counts below.
	Scan  *planner.IndexScan
	Fetch *Stats
}

func (s *Stats) ringGave() { s.Rings[len(s.Rings)-1].Gave++ }

// working is a node with its counters: the way in which all nodes call one another.
type working struct {
	node
	*Stats
}

func (w working) work(r *reading, m *Member) (status, error) {
	w.Works++
	s, err := w.node.work(r, m)
	switch s {
	case advanced:
		w.Advanced++
	case needTime:
		w.NeedTime++
	case ended:
		w.EOF = err == nil
	}
	return s, err
}
