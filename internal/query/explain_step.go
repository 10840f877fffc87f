package query

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// step is one stage of a plan as explain shows it, above the step it reads from.
type step struct {
	name   string
	filter *match.Filter
	// says appends what the plan says of the step; ran appends what its run has counted besides counts. Either may be nil.
	says, ran func(b *bson.Builder)
	// counts are those of the step's run; nil are those of the step below.
	counts func() exec.Counters
	input  *step
}

// counters are what the run of s has counted.
func (s *step) counters() exec.Counters {
	switch {
	case s.counts != nil:
		return s.counts()
	case s.input != nil:
		return s.input.counters()
	}
	return exec.Counters{EOF: true}
}

// print appends s and what is below it under key, with the counts of its run when it was run.
func (s *step) print(b *bson.Builder, key string, run bool) {
	b.Object(key).Bool("isCached", false)
	s.fields(b, run)
	b.End()
}

func (s *step) fields(b *bson.Builder, run bool) {
	b.String("stage", s.name)
	if s.filter != nil {
		b.Document("filter", s.filter.Print())
	}
	if run {
		s.printCounters(b)
	}
	if s.says != nil {
		s.says(b)
	}
	if run && s.ran != nil {
		s.ran(b)
	}
	if s.input != nil {
		b.Object("inputStage")
		s.input.fields(b, run)
		b.End()
	}
}

func (s *step) printCounters(b *bson.Builder) {
	c := s.counters()
	idle, end := c.Works-c.Returned, int32(0)
	if c.EOF {
		idle--
		end = 1
	}
	b.Number("nReturned", c.Returned).Int32("executionTimeMillisEstimate", 0).Number("works", c.Works).Number("advanced", c.Returned).
		Number("needTime", max(idle, 0)).Int32("needYield", 0).Int32("saveState", 0).Int32("restoreState", 0).Int32("isEOF", end)
}

// accessSteps are the steps that find a plan's documents. seen and found are what its run has looked at and given.
func accessSteps(access planner.Access, filter *match.Filter, seen *exec.Examined, found *exec.Counters) *step {
	given := func(looked func() int64) func() exec.Counters {
		return func() exec.Counters {
			c := *found
			c.Works = looked()
			if c.EOF {
				c.Works++
			}
			return c
		}
	}
	docs := func() int64 { return seen.Docs }
	switch a := access.(type) {
	case *planner.CollScan:
		return &step{name: "COLLSCAN", filter: filter, counts: given(docs),
			says: func(b *bson.Builder) { b.String("direction", direction(a.Backward)) },
			ran:  func(b *bson.Builder) { b.Number("docsExamined", seen.Docs) }}
	case *planner.IDHack:
		return &step{name: "IDHACK", counts: given(docs),
			ran: func(b *bson.Builder) { b.Number("keysExamined", seen.Keys).Number("docsExamined", seen.Docs) }}
	case *planner.GeoNear:
		return &step{name: a.Stage(), filter: filter, counts: given(docs), says: a.Describe,
			ran: func(b *bson.Builder) { b.Number("docsExamined", seen.Docs) }}
	case *planner.IndexScan:
		return &step{name: "FETCH", filter: filter, counts: given(docs), input: indexStep(a, seen, found),
			ran: func(b *bson.Builder) { b.Number("docsExamined", seen.Docs).Int32("alreadyHasObj", 0) }}
	}
	return &step{name: "EOF", counts: func() exec.Counters { return *found }}
}

func indexStep(a *planner.IndexScan, seen *exec.Examined, found *exec.Counters) *step {
	return &step{name: "IXSCAN", says: a.Describe,
		counts: func() exec.Counters {
			c := exec.Counters{Works: seen.Keys, Returned: seen.Docs, EOF: found.EOF}
			if c.EOF {
				c.Works++
			}
			return c
		},
		ran: func(b *bson.Builder) {
			b.Number("keysExamined", seen.Keys).Number("seeks", int64(len(a.Ranges)))
		}}
}

func direction(backward bool) string {
	if backward {
		return "backward"
	}
	return "forward"
}

// sortStep sorts, and keeps limit documents when that is not 0.
func sortStep(pattern bson.Doc, limit int64, counts func() exec.Counters, input *step) *step {
	return &step{name: "SORT", counts: counts, input: input, says: func(b *bson.Builder) {
		b.Document("sortPattern", pattern).Int32("memLimit", exec.DefaultMaxMemory)
		if limit > 0 {
			b.Number("limitAmount", limit)
		}
		b.String("type", "simple")
	}}
}

func skipStep(n int64, counts func() exec.Counters, input *step) *step {
	return &step{name: "SKIP", counts: counts, input: input, says: func(b *bson.Builder) { b.Number("skipAmount", n) }}
}

func limitStep(n int64, counts func() exec.Counters, input *step) *step {
	return &step{name: "LIMIT", counts: counts, input: input, says: func(b *bson.Builder) { b.Number("limitAmount", n) }}
}

func projectStep(spec bson.Doc, input *step) *step {
	return &step{name: projectionName(spec), input: input, says: func(b *bson.Builder) { b.Document("transformBy", spec) }}
}

// projectionName tells projections that take or leave fields of the first level from all others.
func projectionName(spec bson.Doc) string {
	for it := spec.Iter(); it.Next(); {
		v := it.Value()
		if strings.Contains(it.Key(), ".") || v.Type != bson.TypeBool && !v.IsNumber() {
			return "PROJECTION_DEFAULT"
		}
	}
	return "PROJECTION_SIMPLE"
}

// sortSpec is a sort's pattern as a document.
func sortSpec(p *sortpattern.Pattern) bson.Doc {
	b := bson.Build()
	for _, part := range p.Parts {
		switch {
		case part.Meta != "":
			b.Object("$computed").String("$meta", part.Meta).End()
		case part.Desc:
			b.Int32(part.Path.String(), -1)
		default:
			b.Int32(part.Path.String(), 1)
		}
	}
	return b.Doc()
}
