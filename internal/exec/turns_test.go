package exec

import (
	"context"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/planner"
)

// untilAdmitted gives documents until the operation has been admitted for a while, and keeps how many leases there were at most.
type untilAdmitted struct {
	doc         bson.Doc
	more, holds int
}

func (u *untilAdmitted) Next(context.Context) (bson.Doc, error) {
	longRunning.mu.Lock()
	n := len(longRunning.leases) + len(longRunning.line)
	longRunning.mu.Unlock()
	if u.holds = max(u.holds, n); u.holds > 0 {
		u.more--
	}
	if u.more == 0 {
		return nil, nil
	}
	return u.doc, nil
}

func (u *untilAdmitted) Close() error { return nil }

// TestOneLease: an operation has one lease, however many of its stages look whether others need the processor. Two that had several each would
// wait for each other all the time.
func TestOneLease(t *testing.T) {
	was := longRunning.lasts
	longRunning.lasts = 1 << 60
	defer func() { longRunning.lasts = was }()
	for _, stages := range []string{
		`[{$facet: {a: [{$group: {_id: "$a", n: {$sum: 1}}}], b: [{$sort: {a: 1}}, {$limit: 1}]}}]`,
		`[{$group: {_id: "$a", n: {$sum: 1}}}, {$sort: {n: 1}}]`,
	} {
		op := newTestOp(&collections{}, nil)
		p, err := op.Parser.Parse(bson.MustParse(stages), pipeline.Options{NS: namespace.NS{DB: "db", Coll: "c"}})
		if err != nil {
			t.Fatal(err)
		}
		source := &untilAdmitted{doc: mustDoc(t, `{_id: 1, a: 1}`), more: 200_000}
		it, err := Build(op, p, source)
		if err != nil {
			t.Fatal(err)
		}
		for d, err := it.Next(t.Context()); d != nil || err != nil; d, err = it.Next(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
		if source.holds != 1 || len(longRunning.leases) > 0 {
			t.Errorf("%s: %d leases at most, %d at the end", stages, source.holds, len(longRunning.leases))
		}
	}

	op := newTestOp(&collections{}, nil)
	op.Env = op.newEnv()
	records := Opening{Env: op.Env, Op: op}.Open(&planner.Plan{Root: &planner.CollScan{}})
	inner := Opening{Env: op.Env, Op: op.Sub()}.Open(&planner.Plan{Root: &planner.CollScan{}})
	if all := []*turns{records.reading.turns, inner.reading.turns}; slices.Contains(all, &records.reading.own) || all[0] != all[1] || all[0] != op.turns() {
		t.Error("what reads takes turns of its own")
	}
}
