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
// steps or the direction turns. A try that was in vain makes the next one wait, four times as long each time. Who knows the ids that
// come says so (Expect): a walk then begins at the first, and where records lie apart those in memory are looked up together.
//
// Invariants: while there is a cursor, it stands on or behind the last id that was asked for, in its direction. A walk sees
// the snapshot that Get sees; in a transaction, whose writes a walk would not see, there is none, and what was looked up together
// counts until the transaction writes it.
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

	ahead storage.Ahead // of what was expected; empty while there is a cursor
	ids   []storage.RecordID
	room  [storage.MaxAhead]storage.RecordID // for ids, where they are few
}

// upcoming knows which records come.
type upcoming interface {
	Upcoming([]storage.RecordID) []storage.RecordID
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
	n.wait = max(n.wait-1, 0)
	if rec := n.ahead.Take(id); rec != nil {
		if n.reader.IsHidden(rec) {
			return storage.Record{}, false, nil
		}
		return *rec, true, nil
	}
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

// Walks says whether it walks from record to record, so that nothing is to be expected.
func (n *sequentialFetcher) Walks() bool { return n.cursor != nil }

// Expects says whether Expect is of use now.
func (n *sequentialFetcher) Expects() bool {
	return n.cursor == nil && n.ahead.IsEmpty()
}

// Expect is told that the record with the id is asked for next, and then those whose entries the cursor has read, which stay as they are until then.
// Some of these may be left out.
func (n *sequentialFetcher) Expect(id storage.RecordID, upcoming upcoming) error {
	if n.ids == nil {
		n.ids = n.room[:0]
	}
	ids := upcoming.Upcoming(append(n.ids[:0], id))
	n.ids = ids
	if len(ids) == 1 {
		return nil
	}
	ids = ids[:min(len(ids), n.reader.MostAhead())]
	if n.reader.View().InTransaction() {
		return n.reader.LookAhead(&n.ahead, ids)
	}
	if down, near := areNear(ids); near && n.wait == 0 {
		n.last, n.down, n.run = n.last[:0], down, 0
		return n.begin(id)
	}
	return n.reader.LookAhead(&n.ahead, ids)
}

// areNear says whether ids go in one direction, as far as their numbers tell in steps that a walk takes too.
func areNear(ids []storage.RecordID) (down, near bool) {
	if len(ids) < sequentialRun {
		return false, false
	}
	down = bytes.Compare(ids[1], ids[0]) < 0
	for i := range ids[1:] {
		if order := bytes.Compare(ids[i+1], ids[i]); order == 0 || order < 0 != down {
			return down, false
		}
	}
	first, plain := ids[0].Sequence()
	last, _ := ids[len(ids)-1].Sequence()
	if !plain || ids[0].IsOrdered() || ids[len(ids)-1].IsOrdered() {
		return down, true
	}
	return down, max(first, last)-min(first, last) <= uint64(sequentialSteps*len(ids))
}

// turn takes note of the direction that id lies in from the one before, and ends or begins a walk.
func (n *sequentialFetcher) turn(id storage.RecordID) error {
	if len(n.last) == 0 {
		n.run++
		return nil
	}
	order := bytes.Compare(id, n.last)
	if down := order < 0; order == 0 || down != n.down {
		n.down, n.run = down, 0
		return n.end()
	}
	if n.run++; n.cursor != nil || n.wait > 0 || n.run < sequentialRun {
		return nil
	}
	return n.begin(id)
}

// begin begins a walk at id.
func (n *sequentialFetcher) begin(id storage.RecordID) error {
	scan := storage.RecordScan{Low: id, Reverse: n.down}
	if n.down {
		scan = storage.RecordScan{High: append(id.Clone(), 0), Reverse: true}
	}
	cursor, err := n.reader.Unhidden().Scan(scan)
	n.cursor, n.stands, n.found = cursor, false, -1 // where it begins is no find
	return err
}

// walk goes to id. met is false when the walk has ended without an answer; a record without document is not there.
func (n *sequentialFetcher) walk(id storage.RecordID) (rec storage.Record, met bool, err error) {
	for steps := 0; ; steps++ {
		if n.stands {
			at := n.cursor.Current()
			switch order := bytes.Compare(at.ID, id); {
			case order == 0 && n.reader.IsHidden(at):
				return storage.Record{}, true, nil
			case order == 0:
				n.found++
				return *at, true, nil
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
