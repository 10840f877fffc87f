package exec

import (
	"context"
	"math"

	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/planner"
)

// The bounds of a race, as MongoDB's internalQueryPlanEvaluationWorks, …CollFraction and …MaxResults have them.
const (
	raceWorks      = 10_000
	raceFraction   = 0.3
	maxRaceResults = 101
	// maxRaceBytes is how many bytes a racer finds at most before it has given enough.
	maxRaceBytes = 32 << 20
)

// Opening is what plans are opened with.
type Opening struct {
	Source Source
	// Env is what $expr and $where are evaluated in.
	Env  *expr.Env
	Seen *Examined
	// Details, when not nil, is filled for each document found.
	Details *match.Details
	// Op is the operation's; plans that sort need it.
	Op *Op
	// IndexKeys asks for the keys by which records are found.
	IndexKeys bool
	// Repeats lets records come again after each park, for somebody who tells them apart, and who has got one that is new before
	// each: so what walks all records need not remember them.
	Repeats bool
	// Documents is how many there are in the collection, which bounds a race; Enough is how many are wanted, 0 for all.
	Documents, Enough int64
}

// Racer is a plan that took part in a race, with what it had counted when the race was over.
type Racer struct {
	Plan  *planner.Plan
	Stats *Stats
	Seen  Examined
	Score float64
	// Err says why the plan cannot go on.
	Err error

	records *Records // of the winner
}

// Records are those of the winner, those that it found in the race first.
func (r *Racer) Records() *Records { return r.records }

// runner is a racer under way.
type runner struct {
	Racer
	done bool
}

// Race works on plans in turns until one has come to its end, has given enough, or all have had a bounded number of works.
// The most productive one wins; of equals the first. all are the racers in the order of plans; only the winner has records.
func (o Opening) Race(ctx context.Context, plans []*planner.Plan) (all []Racer, winner int, err error) {
	runners := make([]*runner, len(plans))
	for i, p := range plans {
		runners[i] = o.enter(p)
	}
	if err := o.run(ctx, runners, o.works()); err != nil {
		giveUp(runners)
		return nil, 0, err
	}
	winner = best(runners)
	won := runners[winner]
	if won.Err != nil {
		giveUp(runners)
		return nil, 0, won.Err
	}
	for _, r := range runners {
		all = append(all, r.finish(r == won))
	}
	o.take(won)
	return all, winner, nil
}

func giveUp(runners []*runner) {
	for _, r := range runners {
		_ = r.records.Close() // what is given up has nothing to say
	}
}

// take has the records of r counted with the operation's from now on.
func (o Opening) take(r *runner) *Records {
	o.Seen.Keys += r.Seen.Keys
	o.Seen.Docs += r.Seen.Docs
	r.records.reading.seen = o.Seen
	return r.records
}

// Try works on one plan as a race would, at most works pieces. ok is false when it has not come to enough by then.
func (o Opening) Try(ctx context.Context, plan *planner.Plan, works int64) (records *Records, ok bool, err error) {
	r := o.enter(plan)
	if err := o.run(ctx, []*runner{r}, works); err != nil {
		_ = r.records.Close()
		return nil, false, err
	}
	if !r.done {
		_ = r.records.Close()
		return nil, false, nil
	}
	return o.take(r), true, nil
}

func (o Opening) enter(p *planner.Plan) *runner {
	r := &runner{Racer: Racer{Plan: p}}
	mine := o
	mine.Seen = &r.Seen
	r.records = mine.Open(p)
	return r
}

func (o Opening) works() int64 { return max(raceWorks, int64(raceFraction*float64(o.Documents))) }

func (o Opening) enough() int {
	if o.Enough > 0 {
		return int(min(o.Enough, maxRaceResults))
	}
	return maxRaceResults
}

// run works on all in turns. Errors that would end the operation whatever the plan are returned.
func (o Opening) run(ctx context.Context, runners []*runner, works int64) error {
	enough := o.enough()
	for range works {
		if err := interrupted(ctx); err != nil {
			return err
		}
		over, left := false, false
		for _, r := range runners {
			if r.Err != nil {
				continue
			}
			if r.Err = r.work(ctx, enough); r.Err != nil && !failsAlone(r.Err) {
				return r.Err
			}
			over, left = over || r.done, left || r.Err == nil
		}
		if over || !left {
			return nil
		}
	}
	return nil
}

// failsAlone says whether another plan may do what one has failed to.
func failsAlone(err error) bool {
	return shortOfMemory(err)
}

func (r *runner) work(ctx context.Context, enough int) error {
	r.records.reading.under(ctx)
	r.records.reading.turns.step()
	s, err := r.records.root.work(&r.records.reading, &r.records.member)
	switch {
	case err != nil:
		return err
	case s == advanced:
		before := len(r.records.kept.buf)
		r.records.kept.add(&r.records.member)
		if err := r.records.reading.remember(len(r.records.kept.buf) - before); err != nil {
			return err
		}
		r.done = r.records.kept.len() >= enough || len(r.records.kept.buf) > maxRaceBytes
	case s == ended:
		r.done = true
	}
	return nil
}

// finish notes the counters of now: the winner's go on. What loses is closed.
func (r *runner) finish(won bool) Racer {
	r.Stats = r.records.Stats().clone()
	if !won {
		_ = r.records.Close()
		r.records = nil
	}
	return r.Racer
}

func (s *Stats) clone() *Stats {
	c := *s
	c.Children = nil
	for _, child := range s.Children {
		c.Children = append(c.Children, child.clone())
	}
	return &c
}

func best(runners []*runner) int {
	at := 0
	for i, r := range runners {
		r.Score = score(r)
		if r.Score > runners[at].Score {
			at = i
		}
	}
	return at
}

// score is MongoDB's: how productive the works were, a little for what the plan spares, and one for having come to the end.
func score(r *runner) float64 {
	s := r.records.Stats()
	if r.Err != nil || s.Works == 0 {
		return 0
	}
	works := float64(s.Works)
	little := math.Min(1/(10*works), 1e-4)
	sum := 1 + float64(s.Advanced)/works + little // for the intersection of indexes, which no plan makes
	for _, spared := range []bool{!has[*planner.Fetch](r.Plan.Root), !has[*planner.Sort](r.Plan.Root)} {
		if spared {
			sum += little
		}
	}
	if s.EOF {
		sum++
	}
	return sum
}

// has says whether a node of a type is in the tree.
func has[T planner.Node](n planner.Node) bool {
	if _, is := n.(T); is {
		return true
	}
	for _, c := range n.Children() {
		if has[T](c) {
			return true
		}
	}
	return false
}
