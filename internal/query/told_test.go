package query

import (
	"context"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
)

// toldPlans are the plans that a call tells of, and how many documents it had looked at by then.
type toldPlans struct {
	call  *Call
	names []string
	docs  int64
}

func (p *toldPlans) SetPlanSummary(text string) {
	p.names = append(p.names, text)
	p.docs += p.call.Seen.Docs
}

// TestPlansAreTold: who watches an operation sees its plan while it runs.
func TestPlansAreTold(t *testing.T) {
	x := &tried{t: t, ns: namespace.NS{DB: "test", Coll: "c"}}
	defer x.open()()
	_, _, err := x.engine.Insert(context.Background(), x.ns, []bson.Doc{bson.MustDoc("{_id: 1, a: 1}")}, true, x.call())
	x.must(err)
	filter := bson.MustDoc("{a: 1}")
	for name, run := range map[string]func(call *Call) error{
		"count": func(call *Call) error {
			_, err := x.engine.Count(context.Background(), Count{NS: x.ns, Filter: filter}, call)
			return err
		},
		"distinct": func(call *Call) error {
			_, err := x.engine.Distinct(context.Background(), Distinct{NS: x.ns, Key: "a", Filter: filter}, call)
			return err
		},
		"update": func(call *Call) error {
			_, err := x.engine.Update(context.Background(), Update{NS: x.ns, Filter: filter, Change: bson.MustDoc("{$set: {b: 1}}").Value()}, call)
			return err
		},
	} {
		p := &toldPlans{call: x.call()}
		p.call.Told = p
		x.must(run(p.call))
		if len(p.names) == 0 || p.names[0] != "COLLSCAN" || p.docs > 0 || p.call.Seen.Docs != 1 {
			t.Errorf("%s: %q after %d of %d documents", name, p.names, p.docs, p.call.Seen.Docs)
		}
	}
}
