package exec

import (
	"bytes"

	"github.com/ebbdb/ebb/internal/storage"
)

// sequentialFetcher gets records as storage.Reader.Get does, and much faster when they lie near one another in the order in which they are
// asked for, up or down: it then walks from one to the next instead of searching for each. Ids that an index gives often
// follow one another so: those of one value, and those of values that rise as documents come. Close it.
//
// Whether a walk pays is tried: after some ids in one direction it begins, and it ends when an id is not found within a few
// steps or the direction turns. A try that was in vain makes the next one wait, four times as long each time.
//
// Invariants: while there is a cursor, it stands on or behind the last id that was asked for, in its direction. A walk sees
// the snapshot that Get sees; in a transaction, whose writes a walk would not see, there is none.
type sequentialFetcher struct {
	reader   *storage.Reader
	last     storage.RecordID
	down     bool // the direction of the last two ids
	run      int  // how many ids have come in this direction
	wait     int  // gets until a walk may be tried again
	nextWait int

	cursor *storage.RecordCursor // nil: no walk
	stands bool                  // the cursor is on a record
	found  int                   // by this walk
}

const (
	// sequentialRun ids in one direction begin a walk. By chance that is one of twelve.
	sequentialRun = 4
	// sequentialSteps cost about as much as one search that finds its record in memory.
	sequentialSteps = 4
	// A walk that has found sequentialPays has paid for itself.
	sequentialPays                         = 16
	sequentialFirstWait, sequentialMaxWait = 16, 4096
)

// newSequentialFetcher begins without a walk.
func newSequentialFetcher(r *storage.Reader) *sequentialFetcher {
	return &sequentialFetcher{reader: r, nextWait: sequentialFirstWait}
}

// Get is the record with the id, valid until the next call. ok is false when there is none.
func (n *sequentialFetcher) Get(id storage.RecordID) (rec storage.Record, ok bool, err error) {
	if n.reader.View().InTransaction() {
		return n.reader.Get(id)
	}
	if err := n.turn(id); err != nil {
		return storage.Record{}, false, err
	}
	n.last = append(n.last[:0], id...)
	if n.cursor != nil {
		rec, met, err := n.walk(id)
		if met || err != nil {
			return rec, rec.Doc != nil, err
		}
	}
	return n.reader.Get(id)
}

// turn takes note of the direction that id lies in from the one before, and ends or begins a walk. A walk begins behind
// the last id.
func (n *sequentialFetcher) turn(id storage.RecordID) error {
	n.wait = max(n.wait-1, 0)
	order := bytes.Compare(id, n.last)
	if down := order < 0; order == 0 || down != n.down {
		n.down, n.run = down, 0
		return n.end()
	}
	if n.run++; n.cursor != nil || n.wait > 0 || n.run < sequentialRun {
		return nil
	}
	cursor, err := n.reader.Unhidden().Scan(storage.RecordScan{After: n.last.Clone(), Reverse: n.down})
	n.cursor, n.stands, n.found = cursor, false, 0
	return err
}

// walk goes to id. met is false when the walk has ended without an answer; a record without document is not there.
func (n *sequentialFetcher) walk(id storage.RecordID) (rec storage.Record, met bool, err error) {
	for steps := 0; ; steps++ {
		if n.stands {
			rec = n.cursor.Record()
			switch order := bytes.Compare(rec.ID, id); {
			case order == 0 && n.reader.IsHidden(rec):
				return storage.Record{}, true, nil
			case order == 0:
				n.found++
				return rec, true, nil
			case order < 0 == n.down: // it lies behind id
				return storage.Record{}, true, nil
			}
		}
		if steps == sequentialSteps {
			break
		}
		if n.stands = n.cursor.Next(); !n.stands {
			break
		}
	}
	if err := n.cursor.Err(); err != nil {
		return storage.Record{}, false, err
	}
	return storage.Record{}, false, n.end()
}

// end ends the walk there is, and says how long to wait until the next.
func (n *sequentialFetcher) end() error {
	if n.cursor == nil {
		return nil
	}
	if n.found >= sequentialPays {
		n.nextWait = sequentialFirstWait
	} else {
		n.wait, n.nextWait = n.nextWait, min(4*n.nextWait, sequentialMaxWait)
	}
	cursor := n.cursor
	n.cursor, n.run = nil, 0
	return cursor.Close()
}

// Close ends the walk there is. Get may be called again as long as the view is open.
func (n *sequentialFetcher) Close() error { return n.end() }
