package exec

import (
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
)

// fetch gets the records of the ids that its child gives.
type fetch struct {
	plan   *planner.Fetch
	stats  *Stats
	in     working
	reader *storage.Reader
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
	if n.reader == nil {
		if n.reader, err = r.reader(); err != nil {
			return false, err
		}
	}
	rec, there, err := n.reader.Get(m.ID)
	if !there {
		return false, err
	}
	m.Record = rec
	n.stats.Docs++
	r.seen.Docs++
	return true, nil
}

func (n *fetch) park() {
	n.reader = nil
	n.in.park()
}

func (n *fetch) close() error {
	n.reader = nil
	return n.in.close()
}
