package exec

import "github.com/ebbdb/ebb/internal/planner"

// or gives what its inputs give, one after the other, each record once.
type or struct {
	plan   *planner.Or
	inputs []working
	at     int
	given  givenIDs
}

func (n *or) work(r *reading, m *Member) (status, error) {
	if n.at == len(n.inputs) {
		return ended, nil
	}
	switch s, err := n.inputs[n.at].work(r, m); {
	case err != nil || s == needTime:
		return s, err
	case s == ended:
		n.at++
		return needTime, n.inputs[n.at-1].close()
	}
	if first, err := n.given.add(r, m.ID); !first {
		return needTime, err
	}
	if n.plan.Filter == nil {
		return advanced, nil
	}
	ok, err := r.matches(n.plan.Filter, m.Doc)
	if ok && err == nil {
		return advanced, nil
	}
	n.given.stats.Rejected++
	return needTime, err
}

func (n *or) park() {
	for _, in := range n.inputs[n.at:] {
		in.park()
	}
}

func (n *or) close() (err error) {
	for _, in := range n.inputs {
		if e := in.close(); err == nil {
			err = e
		}
	}
	return err
}
