package query

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/planner"
)

// step is one stage of what explain shows: a node of the plan, or what stands above the plan.
type step struct {
	node planner.Node
	// says appends what is to be said besides the node's own description; ran appends what the run has counted besides
	// stats. Either may be nil.
	says, ran func(b *bson.Builder)
	// stats are those of the step's run; nil are those of the step below.
	stats  func() *exec.Stats
	inputs []*step
}

// planSteps are the steps of a plan's tree, whose run has counted stats; nil stats are of one that has not run.
func planSteps(n planner.Node, stats *exec.Stats) *step {
	if stats == nil {
		stats = &exec.Stats{}
	}
	s := &step{node: n, stats: func() *exec.Stats { return stats }}
	for i, child := range n.Children() {
		var below *exec.Stats
		if i < len(stats.Children) {
			below = stats.Children[i]
		}
		s.inputs = append(s.inputs, planSteps(child, below))
	}
	return s
}

// above is a step that reads from s.
func (s *step) above(n planner.Node, stats func() *exec.Stats) *step {
	return &step{node: n, stats: stats, inputs: []*step{s}}
}

// counted are what the run of s has counted.
func (s *step) counted() *exec.Stats {
	switch {
	case s.stats != nil:
		return s.stats()
	case len(s.inputs) > 0:
		return s.inputs[0].counted()
	}
	return &exec.Stats{EOF: true}
}

// print appends s and what is below it under key, with the counts of its run when it was run.
func (s *step) print(b *bson.Builder, key string, run bool) {
	b.Object(key).Bool("isCached", false)
	s.fields(b, run)
	b.End()
}

func (s *step) fields(b *bson.Builder, run bool) {
	if b.Len() > planner.ExplainThreshold {
		b.String("warning", "stats tree exceeded BSON size limit for explain")
		return
	}
	b.String("stage", s.node.Stage())
	if f := planner.FilterOf(s.node); f != nil {
		ifRoom(b, "filter", f.Explained().Value(), planner.ExplainThreshold)
	}
	if _, express := s.node.(*planner.Express); run && !express {
		printWorks(b, s.counted())
	}
	s.node.Describe(b)
	if s.says != nil {
		s.says(b)
	}
	if run {
		printCounts(b, s.node, s.counted())
		if s.ran != nil {
			s.ran(b)
		}
	}
	s.below(b, run)
}

// ifRoom appends v unless b gets larger than most, which it says then.
func ifRoom(b *bson.Builder, key string, v bson.Value, most int) {
	if b.Len()+len(v.Data) > most {
		b.String("warning", key+" exceeded BSON size limit for explain")
		return
	}
	b.Value(key, v)
}

func (s *step) below(b *bson.Builder, run bool) {
	switch len(s.inputs) {
	case 0:
	case 1:
		b.Object("inputStage")
		s.inputs[0].fields(b, run)
		b.End()
	default:
		b.Array("inputStages")
		for i, in := range s.inputs {
			b.Object(bson.IndexKey(i))
			in.fields(b, run)
			b.End()
		}
		b.End()
	}
}

// printWorks appends what all stages count.
func printWorks(b *bson.Builder, c *exec.Stats) {
	end := int32(0)
	if c.EOF {
		end = 1
	}
	b.Number("nReturned", c.Advanced).Int32("executionTimeMillisEstimate", 0).Number("works", c.Works).Number("advanced", c.Advanced).
		Number("needTime", c.NeedTime).Int32("needYield", 0).Int32("saveState", 0).Int32("restoreState", 0).Int32("isEOF", end)
}

// printCounts appends what a kind of stage counts of its own.
func printCounts(b *bson.Builder, n planner.Node, c *exec.Stats) {
	switch n.(type) {
	case *planner.CollScan:
		b.Number("docsExamined", c.Docs)
	case *planner.GeoNear:
		printRings(b, c.Rings)
	case *planner.IDHack:
		b.Number("keysExamined", c.Keys).Number("docsExamined", c.Docs)
	case *planner.Express:
		b.Number("keysExamined", c.Keys).Number("docsExamined", c.Docs).Number("nReturned", c.Advanced)
	case *planner.Fetch:
		b.Number("docsExamined", c.Docs).Int32("alreadyHasObj", 0)
	case *planner.IndexScan:
		b.Number("keysExamined", c.Keys).Number("seeks", c.Seeks).Number("dupsTested", c.DupsTested).Number("dupsDropped", c.DupsDropped)
	case *planner.CountScan, *planner.DistinctScan:
		b.Number("keysExamined", c.Keys)
	case *planner.Or, *planner.SortMerge:
		b.Number("dupsTested", c.DupsTested).Number("dupsDropped", c.DupsDropped)
	case *planner.Sort:
		b.Number("totalDataSizeSorted", c.Held).Bool("usedDisk", c.Disk)
	}
}

// printRings appends the rings of a search by distance, and how the index was walked for each.
func printRings(b *bson.Builder, rings []exec.Ring) {
	b.Array("searchIntervals")
	for i, r := range rings {
		b.Object(bson.IndexKey(i)).Double("minDistance", r.Low).Double("maxDistance", r.High).Bool("maxInclusive", r.Last).
			Number("nBuffered", r.Found).Number("nReturned", r.Gave).End()
	}
	b.End()
	walks := &step{}
	for _, r := range rings {
		if r.Scan != nil {
			walks.inputs = append(walks.inputs, planSteps(&planner.Fetch{Child: r.Scan}, r.Fetch))
		}
	}
	walks.below(b, true)
}

// limitedSort is the limit under a sort, 0 for none.
func limitedSort(skip, limit int64) int64 {
	if limit == 0 {
		return 0
	}
	return skip + limit
}

// named is a stage above all plans, of which there is only the name to tell.
type named string

// Stage implements planner.Node.
func (n named) Stage() string { return string(n) }

// Children implements planner.Node.
func (named) Children() []planner.Node { return nil }

// Describe implements planner.Node.
func (named) Describe(*bson.Builder) {}
