package exec

import (
	"errors"

	"github.com/ebbdb/ebb/internal/planner"
)

// fetch gets the records of the ids that its child gives.
type fetch struct {
	plan    *planner.Fetch
	stats   *Stats
	in      working
	scan    *indexScan         // in, where it is one: it reads ahead
	records *sequentialFetcher // nil: not read from yet in this view
}

func (n *fetch) work(r *reading, m *Member) (status, error) {
	if s, err := n.in.work(r, m); s != advanced {
		return s, err
	}
	if m.Doc == nil {
		if there, err := n.get(r, m); !there {
			return needTime, err
		}
	}
	ok, err := r.matches(n.plan.Filter, m.Doc)
	if ok && err == nil {
		return advanced, nil
	}
	n.stats.Rejected++
	return needTime, err
}

func (n *fetch) get(r *reading, m *Member) (there bool, err error) {
	if n.records == nil {
		reader, err := r.reader()
		if err != nil {
			return false, err
		}
		n.records = newSequentialFetcher(reader)
	}
	if n.scan != nil && n.records.Expects() {
		if err := n.records.Expect(m.ID, n.scan.cursor); err != nil {
			return false, err
		}
	}
	rec, there, err := n.records.Get(m.ID)
	if n.scan != nil {
		n.scan.cursor.ReadAhead(!n.records.Walks())
	}
	if !there {
		return false, err
	}
	m.Record = rec
	n.stats.Docs++
	r.seen.Docs++
	return true, nil
}

func (n *fetch) park() {
	_ = letGo(&n.records) // what has been read is good all the same
	n.in.park()
}

func (n *fetch) close() error { return errors.Join(letGo(&n.records), n.in.close()) }
