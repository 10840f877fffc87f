package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/storage"
)

// collScan walks all records in natural order, or backwards.
type collScan struct {
	src      Source
	seen     *Examined
	backward bool

	cursor *storage.RecordCursor
	after  storage.RecordID // where it stood when it was parked
	on     bool             // the cursor stands on a record
	done   bool
}

func (s *collScan) next(ctx context.Context) (storage.Record, bool, error) {
	if s.done {
		return storage.Record{}, false, nil
	}
	if s.cursor == nil {
		r, err := s.src.Reader(ctx)
		if err != nil {
			return storage.Record{}, false, err
		}
		if s.cursor, err = r.Scan(storage.RecordScan{Reverse: s.backward, After: s.after}); err != nil {
			return storage.Record{}, false, err
		}
	}
	if s.on = s.cursor.Next(); !s.on {
		s.done = true
		return storage.Record{}, false, s.cursor.Err()
	}
	s.seen.Docs++
	return s.cursor.Record(), true, nil
}

func (s *collScan) park() {
	if s.on {
		s.after = s.cursor.Record().ID.Clone()
		s.on = false
	}
	_ = s.close() // a cursor that is given back early has nothing to say
}

func (s *collScan) close() error {
	if s.cursor == nil {
		return nil
	}
	err := s.cursor.Close()
	s.cursor = nil
	return err
}
