package exec

import (
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
)

// recordGet looks up the one record that a walk's span can have.
type recordGet struct {
	plan  *planner.CollScan
	stats *Stats
	done  bool
}

func (n *recordGet) work(r *reading, m *Member) (status, error) {
	if n.done {
		return ended, nil
	}
	n.done = true
	reader, err := r.reader()
	if err != nil {
		return ended, err
	}
	rec, there, err := reader.Get(storage.RecordID(n.plan.Records.Low))
	if !there {
		return ended, err
	}
	n.stats.Docs++
	r.seen.Docs++
	m.Record = rec
	ok, err := r.matches(n.plan.Filter, rec.Doc)
	if ok && err == nil {
		return advanced, nil
	}
	n.stats.Rejected++
	return needTime, err
}

func (*recordGet) park()        {}
func (*recordGet) close() error { return nil }
