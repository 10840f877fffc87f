package exec

import (
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
)

// recordGet looks up the one record that a walk's span can have.
type recordGet struct {
	plan *planner.CollScan
	loneRecord
}

func (n *recordGet) work(r *reading, m *Member) (status, error) {
	there, err := n.fetch(r, m, func(reader *storage.Reader) (storage.Record, bool, error) {
		return reader.Get(storage.RecordID(n.plan.Records.Low))
	})
	if !there {
		return ended, err
	}
	ok, err := r.matches(n.plan.Filter, m.Doc)
	if ok && err == nil {
		return advanced, nil
	}
	n.stats.Rejected++
	return needTime, err
}
