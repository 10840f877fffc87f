package query

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/planner"
)

// execution is how an operation's (last) plan ran, kept so that the profiler can tell. It costs nothing until then.
type execution struct {
	plan  *planner.Plan // nil: the store answered without one, or nothing was asked of it
	stats *exec.Stats
	find  *prepared // what stands above the plan of a find
	op    *exec.Op
	above stageCounts
	// express is how the plan is told where it is an express one.
	express *planner.Express
}

// stageCounts are a stage above a plan, "COUNT", "UPDATE", "DELETE" or "RECORD_STORE_FAST_COUNT", "" for none, and what it has counted.
type stageCounts struct {
	stage string
	n     [3]int64
}

// stage notes the stage above the plan, and what it has counted. The summary of an express plan names it, too.
func (c *Call) stage(name string, n ...int64) {
	x := &c.execution
	x.above.stage = name
	copy(x.above.n[:], n)
	if x.express != nil {
		c.PlanSummary = writeSummary(x.express, name)
	}
}

// ExecStats is how the operation was executed, in the form in which explain tells it; nil when there is nothing to tell.
func (c *Call) ExecStats() bson.Doc {
	s := c.execution.steps(c)
	if s == nil {
		return nil
	}
	b := bson.Build()
	s.fields(b, true)
	return b.Doc()
}

// Opened tells how the plan runs that has been opened just now, whatever else the operation opens later, for a $lookup say.
func (c *Call) Opened() *Call { return &Call{PlanSummary: c.PlanSummary, execution: c.execution} }

// ExecStatsOfID is ExecStats of a find by _id alone, with the summary, that has looked at so many keys and documents.
func ExecStatsOfID(summary string, keys, docs int64) bson.Doc {
	b, s := bson.Build(), idSteps(exec.Examined{Keys: keys, Docs: docs})
	if summary == expressByID.found {
		s = &step{node: expressByID.plan, stats: s.stats}
	}
	s.fields(b, true)
	return b.Doc()
}

func idSteps(seen exec.Examined) *step {
	return planSteps(&planner.IDHack{}, &exec.Stats{Works: seen.Docs + 1, Advanced: seen.Docs, EOF: true, Keys: seen.Keys, Docs: seen.Docs})
}

func (x *execution) steps(c *Call) (s *step) {
	switch {
	case x.express != nil:
		return x.expressStep(c)
	case x.find != nil && x.above.stage == "":
		s = x.find.steps(&explained{plan: x.plan, stats: x.stats, coll: x.find.coll}, x.op)
	case x.plan != nil:
		s = planSteps(x.plan.Root, x.stats)
	case c.PlanSummary == "IDHACK":
		s = idSteps(c.Seen)
	case x.above.stage == "":
		return nil
	}
	if x.above.stage == "" {
		return s
	}
	top := &step{node: named(x.above.stage), ran: x.above.print}
	if s != nil {
		top.inputs = []*step{s}
	}
	works := x.above.n[0] + 1
	switch {
	case s == nil:
		works = 1 // what is counted already takes one look
	case x.stats != nil:
		works = max(x.stats.Works, 1)
	}
	top.stats = func() *exec.Stats { return &exec.Stats{Works: works, NeedTime: works - 1, EOF: true} }
	return top
}

// print appends what the stage has counted.
func (c stageCounts) print(b *bson.Builder) {
	switch c.stage {
	case "UPDATE":
		b.Number("nMatched", c.n[0]).Number("nWouldModify", c.n[1]).Number("nWouldUpsert", c.n[2])
	case "DELETE":
		b.Number("nWouldDelete", c.n[0])
	default:
		b.Number("nCounted", c.n[0]).Number("nSkipped", c.n[1])
	}
}
