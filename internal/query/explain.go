package query

import (
	"context"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/plancache"
	"github.com/ebbdb/ebb/internal/planner"
)

// Verbosity is how much explain tells.
type Verbosity uint8

// The verbosities. All but the first run the operation; writes among them change nothing.
const (
	QueryPlanner Verbosity = iota
	ExecutionStats
	AllPlansExecution
)

// Explanation is what explain tells of an operation.
type Explanation struct {
	// Fields are those that describe the plan and its run: queryPlanner and executionStats, or stages.
	Fields bson.Doc
	// Shape is the same text for operations that differ in their constants only.
	Shape string
}

// explained is an operation that was planned, and perhaps run.
type explained struct {
	engine    *Engine
	verbosity Verbosity
	ns        namespace.NS
	coll      *catalog.Collection // nil: there is no such collection
	lang      *language
	filter    *match.Filter
	plan      *planner.Plan // nil when the store answers without one
	choice    *choice       // of which plan is the winner
	steps     *step
	// shape is what the plan is made for, without the constants; command is the part of it that index filters go by.
	shape, command string
	// setting is what is set for the operation; nil: nothing.
	setting *Setting

	seen     exec.Examined // of the plan's own collection
	stats    *exec.Stats   // of the plan's nodes, once it is opened
	returned int64
	millis   int64
	err      error
}

// runs says whether x is to be run, too.
func (x *explained) runs() bool { return x.verbosity >= ExecutionStats }

// run runs f and notes how long it took. A failure is part of what is told, unless the operation has to end.
func (x *explained) run(ctx context.Context, f func() error) error {
	start := x.engine.Store.Now()
	err := f()
	x.millis = x.engine.Store.Now() - start
	if err != nil && (ctx.Err() != nil || !isUserError(err)) {
		return err
	}
	x.err = err
	return nil
}

// count takes note of a document that x gives.
func (x *explained) count(bson.Doc) error {
	x.returned++
	return nil
}

// access are the steps of the plan. They are made once it is open, if it is to run.
func (x *explained) access() *step {
	if x.plan.Express != nil {
		return &step{node: x.plan.Express, stats: func() *exec.Stats { return flat(x.stats) }}
	}
	s := planSteps(x.plan.Root, x.stats)
	if _, ends := x.plan.Root.(*planner.EOF); ends {
		why := "predicateEvalsToFalse"
		if x.coll == nil {
			why = "nonExistentNamespace"
		}
		s.says = func(b *bson.Builder) { b.String("type", why) }
	}
	return s
}

// maxExplained is the largest description of a plan and its run: the rest of a reply still has room.
const maxExplained = bson.MaxDocSize - 1<<20

// print appends queryPlanner and, when x was run, executionStats.
func (x *explained) print(b *bson.Builder) {
	x.printPlanner(b)
	if x.runs() {
		x.printStats(b)
	}
}

func (x *explained) printPlanner(b *bson.Builder) {
	b.Object("queryPlanner").String("namespace", x.ns.String())
	if x.filter != nil {
		ifRoom(b, "parsedQuery", x.filter.Explained().Value(), maxExplained)
	} else {
		b.Object("parsedQuery").End()
	}
	if x.lang.collation != nil {
		b.Document("collation", x.lang.collation.Doc())
	}
	if x.setting != nil {
		b.Document("querySettings", x.setting.Doc)
	}
	hash := hash32(x.shape)
	b.Bool("indexFilterSet", x.filtered()).String("queryHash", hash).String("planCacheShapeHash", hash).
		String("planCacheKey", x.key()).Int32("optimizationTimeMillis", 0)
	var reached planner.Limits
	if x.plan != nil {
		reached = x.plan.Reached
	}
	b.Bool("maxIndexedOrSolutionsReached", reached.Or).Bool("maxIndexedAndSolutionsReached", reached.And).
		Bool("maxScansToExplodeReached", reached.Explode).Bool("prunedSimilarIndexes", false)
	x.steps.print(b, "winningPlan", false)
	b.Array("rejectedPlans")
	if x.choice != nil && x.plan != nil && len(x.choice.racers) > 0 {
		for i, r := range x.choice.ranked()[1:] {
			planSteps(r.Plan.Root, nil).print(b, bson.IndexKey(i), false)
		}
	}
	b.End().End()
}

// filtered says whether an index filter held for the plan.
func (x *explained) filtered() bool {
	return x.coll != nil && x.engine.Plans.Of(x.coll.ID).Filter(plancache.ShapeOf(x.command)) != nil
}

func hash32(text string) string { return fmt.Sprintf("%08X", crc32.ChecksumIEEE([]byte(text))) }

// key is what the plan cache has the plan under, where it keeps plans of such operations.
func (x *explained) key() string {
	if x.choice != nil && x.choice.shape != nil {
		return x.choice.key().String()
	}
	return hash32(x.shape + x.indexes())
}

// indexes are the names of the indexes that a plan may use.
func (x *explained) indexes() string {
	if x.coll == nil {
		return ""
	}
	var names strings.Builder
	for _, d := range x.coll.Indexes {
		if !d.Hidden {
			names.WriteByte(0)
			names.WriteString(d.Name)
		}
	}
	return names.String()
}

func (x *explained) printStats(b *bson.Builder) {
	b.Object("executionStats").Bool("executionSuccess", x.err == nil)
	if x.err != nil {
		e := mongoerr.From(x.err)
		b.String("errorMessage", e.Message).Int32("errorCode", int32(e.Code))
	}
	b.Number("nReturned", x.returned).Number("executionTimeMillis", x.millis).
		Number("totalKeysExamined", x.seen.Keys).Number("totalDocsExamined", x.seen.Docs)
	x.steps.print(b, "executionStages", true)
	if x.verbosity == AllPlansExecution {
		x.printRace(b)
	}
	b.End()
}

// printRace appends what each plan has done in the race, the winner first; nothing when there was none.
func (x *explained) printRace(b *bson.Builder) {
	b.Array("allPlansExecution")
	if x.choice != nil {
		for i, r := range x.choice.ranked() {
			b.Object(bson.IndexKey(i)).Number("nReturned", r.Stats.Advanced).Int32("executionTimeMillisEstimate", 0).
				Number("totalKeysExamined", r.Seen.Keys).Number("totalDocsExamined", r.Seen.Docs).Double("score", r.Score)
			planSteps(r.Plan.Root, r.Stats).print(b, "executionStages", true)
			b.End()
		}
	}
	b.End()
}

// explanation is x alone, as most operations are.
func (x *explained) explanation(shape string) *Explanation {
	b := bson.Build()
	x.print(b)
	return &Explanation{Fields: b.Doc(), Shape: shape}
}
