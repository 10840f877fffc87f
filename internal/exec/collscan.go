package exec

import (
	"errors"

	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/recordset"
)

// collScan walks all records, or those of a span, in natural order or backwards.
//
// Records of a plain collection move: with their dates, where it has a TTL index, and all of them when it gets the first. So
// a scan remembers what it has given, and does not give again what moves in front of it while it is parked. What moves to
// where it had been it would miss: so when any may have, it looks at the end for what it has not given, until it has looked
// through all in one view. That comes to an end: a scan is parked behind a record that it has given, so that each time it
// looks there is at least one record less to give.
type collScan struct {
	plan  *planner.CollScan
	stats *Stats

	cursor *storage.RecordCursor
	after  storage.RecordID // where it stood when it was parked
	on     bool             // the cursor stands on a record
	done   bool
	// seen are the records that were given, where they may move while the scan is parked and nobody else remembers them.
	seen  recordset.Set
	moves bool
	// again says that it is past the scan proper, and looks for what that has missed.
	again  bool
	begun  bool
	parked bool   // since the walk was begun
	before uint64 // how many moves there were before it was begun
	// tails has the end be no end: the scan looks again from where it stands, as long as the record there is there.
	tails bool
}

// errTooManySeen ends a scan that can no longer tell what it has given, where records have moved.
var errTooManySeen = mongoerr.New(mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed,
	"documents move while they are read, and telling apart those that were given needs too much memory; read in the order of an index")

func (s *collScan) work(r *reading, m *Member) (status, error) {
	if s.done {
		return ended, nil
	}
	if s.cursor == nil {
		if err := s.open(r); err != nil {
			return ended, err
		}
	}
	if s.on = s.cursor.Next(); !s.on {
		if missed, err := s.mayHaveMissed(r); missed || err != nil {
			return needTime, errors.Join(err, s.lookAgain())
		}
		return ended, s.end()
	}
	m.Record = s.cursor.Record()
	if s.moves && !r.repeats && !s.seen.Add(m.ID) {
		return needTime, nil
	}
	s.stats.Docs++
	r.seen.Docs++
	if s.tails {
		s.after = append(s.after[:0], m.ID...)
	}
	ok, err := r.matches(s.plan.Filter, m.Doc)
	if ok && err == nil {
		return advanced, nil
	}
	s.stats.Rejected++
	return needTime, err
}

// open begins the walk, or takes it up where it was parked.
func (s *collScan) open(r *reading) error {
	reader, err := r.reader()
	if err != nil {
		return err
	}
	s.moves = reader.Relocates()
	switch {
	case !s.begun:
		s.begun, s.before = true, reader.View().Relocations()
	case s.moves && s.seen.Full() && (reader.MovedSince(s.before, true) || reader.MovedSince(s.before, false)):
		return errTooManySeen // it might be given twice
	}
	if s.tails && s.after != nil {
		if err := s.standing(reader); err != nil {
			return err
		}
	}
	scan := storage.RecordScan{Low: s.plan.Records.Low, High: s.plan.Records.High, Reverse: s.plan.Backward, After: s.after}
	if s.again {
		scan.Reverse, scan.Ordered = false, true
	}
	if s.tails && s.after == nil && scan.Low != nil {
		if scan.Low, err = before(reader, scan.Low); err != nil {
			return err
		}
	}
	s.cursor, err = reader.Scan(scan)
	return err
}

// before is the id of the last record in front of low, or low where there is none. A tailing scan begins there, so that it has a
// place to go on from where nothing that it wants is there yet.
func before(r *storage.Reader, low storage.RecordID) (storage.RecordID, error) {
	c, err := r.Scan(storage.RecordScan{High: low, Reverse: true})
	if err != nil {
		return nil, err
	}
	if c.Next() {
		low = c.Record().ID.Clone()
	}
	return low, errors.Join(c.Err(), c.Close())
}

// mayHaveMissed says whether the walk that has come to its end may have missed records that moved while it was parked.
func (s *collScan) mayHaveMissed(r *reading) (bool, error) {
	if !s.moves || !s.parked || s.cursor.Err() != nil {
		return false, nil
	}
	reader, err := r.reader()
	if err != nil || !reader.MovedSince(s.before, s.again || !s.plan.Backward) {
		return false, err
	}
	if s.seen.Full() {
		return false, errTooManySeen
	}
	return true, nil
}

// lookAgain begins to walk the records that lie in order, of which some may have come to where the scan had been.
func (s *collScan) lookAgain() error {
	s.again = true
	s.begun, s.parked, s.after = false, false, nil
	return s.close()
}

// end is where no record is left to give. A tailing scan that has seen none ends for good, as in MongoDB.
func (s *collScan) end() error {
	err := s.cursor.Err()
	s.done = !s.tails || s.after == nil || err != nil
	if closed := s.close(); err == nil {
		err = closed
	}
	return err
}

// standing fails when the record behind which a tailing scan goes on is gone, and with it perhaps some that it has not seen.
func (s *collScan) standing(r *storage.Reader) error {
	_, there, err := r.Unhidden().Get(s.after)
	if err == nil && !there {
		err = mongoerr.New(mongoerr.CappedPositionLost,
			"CollectionScan died due to position in capped collection being deleted. Last seen record id: RecordId(%s)", s.after.Value())
	}
	return err
}

func (s *collScan) park() {
	s.parked = s.begun
	if s.on {
		s.after = s.cursor.Record().ID.Clone()
	}
	_ = s.close() // a cursor that is given back early has nothing to say
}

func (s *collScan) close() error {
	s.on = false
	return letGo(&s.cursor)
}
