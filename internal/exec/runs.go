package exec

import "github.com/ebbdb/ebb/internal/spill"

// runs are a stage's runs in the order in which they were written. spill.MaxRuns that were merged equally often are merged
// into one in their place, so that what is written is written again a few times only, however small the runs are.
type runs struct {
	list   []*spill.Run
	merged []int // how often each was
}

func (r *runs) none() bool { return len(r.list) == 0 }

// add appends a run, and has merge make one of those at the end when there are many.
func (r *runs) add(run *spill.Run, merge func([]*spill.Run) (*spill.Run, error)) error {
	r.list, r.merged = append(r.list, run), append(r.merged, 0)
	for {
		from, times := len(r.list), r.merged[len(r.merged)-1]
		for from > 0 && r.merged[from-1] == times {
			from--
		}
		if len(r.list)-from < spill.MaxRuns {
			return nil
		}
		one, err := merge(r.list[from:])
		if err != nil {
			return err
		}
		spill.Close(r.list[from:])
		r.list, r.merged = append(r.list[:from], one), append(r.merged[:from], times+1)
	}
}

func (r *runs) close() {
	spill.Close(r.list)
	*r = runs{}
}
