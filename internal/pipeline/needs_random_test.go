package pipeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/testseed"
)

// TestNeedsKnowWhatIsRead makes pipelines at random, good and bad ones, with fields left out, doubled and of wrong types. Of whatever the parser
// takes, each collection that is read or written must have been asked for.
func TestNeedsKnowWhatIsRead(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.Of(t), 1))
	table, taken := NewTable(), 0
	for range 20_000 {
		text := randomStages(r, 0)
		doc, err := bson.ParseDoc("{p: " + text + "}")
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		on := namespace.NS{DB: "own", Coll: "c"}
		p, err := testParser().Parse(doc.Lookup("p"), Options{NS: on})
		if err != nil {
			continue
		}
		taken++
		asked := map[privilege.Resource]privilege.Actions{}
		asker := &Asker{Is: func(string, string) bool { return false }, May: func(on privilege.Resource, a privilege.Action) bool {
			as := asked[on]
			as.Add(a)
			asked[on] = as
			return true
		}}
		if ok, err := table.Permits(asker, on, doc.Lookup("p")); !ok || err != nil {
			t.Fatalf("%s: %v, %v", text, ok, err)
		}
		check := func(ns namespace.NS, any ...privilege.Action) {
			as := asked[privilege.Namespace(ns)]
			if !slices.ContainsFunc(any, func(a privilege.Action) bool { return as.Has(a) }) {
				t.Errorf("%s: nobody asks for %s on %s", text, any, ns)
			}
		}
		check(on, privilege.Find, privilege.CollStats, privilege.IndexStats)
		for _, ns := range p.Namespaces() {
			check(ns, privilege.Find, privilege.CollStats, privilege.IndexStats)
		}
		switch s := p.Last().(type) {
		case *Out:
			check(s.To, privilege.Insert)
			check(s.To, privilege.Remove)
		case *Merge:
			check(s.Into, privilege.Insert, privilege.Update)
		}
	}
	if taken < 1000 {
		t.Errorf("the parser has taken %d only", taken)
	}
}

func randomStages(r *rand.Rand, depth int) string {
	n := r.IntN(3)
	if depth == 0 {
		n++
	}
	var stages []string
	for range n {
		stages = append(stages, randomStage(r, depth))
	}
	return "[" + strings.Join(stages, ", ") + "]"
}

// randomName is a collection, or what may be taken for one.
func randomName(r *rand.Rand) string {
	return []string{`"a"`, `"b"`, `"system.users"`, `"d.e"`, `"a"`, `"b"`, `"c"`, `{db: "config", coll: "x"}`, `{db: "local", coll: "oplog.rs"}`, `{coll: "z"}`, `null`, `1`, `""`}[r.IntN(13)]
}

// fields writes some of the fields, now and then one twice.
func fields(r *rand.Rand, all ...string) string {
	var out []string
	for _, f := range all {
		if r.IntN(12) > 0 {
			out = append(out, f)
		}
	}
	if len(out) > 0 && r.IntN(20) == 0 {
		out = append(out, out[r.IntN(len(out))])
	}
	if r.IntN(10) == 0 {
		r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	}
	return "{" + strings.Join(out, ", ") + "}"
}

func randomStage(r *rand.Rand, depth int) string {
	sub := func() string {
		if depth > 3 {
			return "[]"
		}
		return randomStages(r, depth+1)
	}
	db := `db: "` + []string{"own", "other", "admin", ""}[r.IntN(4)] + `"`
	switch r.IntN(13) {
	case 0:
		return "{$lookup: " + fields(r, "from: "+randomName(r), `as: "x"`, "pipeline: "+sub()) + "}"
	case 1:
		return "{$lookup: " + fields(r, "from: "+randomName(r), `as: "x"`, `localField: "a"`, `foreignField: "b"`) + "}"
	case 2:
		return "{$lookup: " + fields(r, "from: "+randomName(r), `as: "x"`, `localField: "a"`, `foreignField: "b"`, "pipeline: "+sub()) + "}"
	case 3:
		return "{$lookup: {" + `as: "x", pipeline: [{$documents: [{a: 1}]}, ` + randomStage(r, depth+1) + "]}}"
	case 4:
		return "{$unionWith: " + randomName(r) + "}"
	case 5:
		return "{$unionWith: " + fields(r, "coll: "+randomName(r), "pipeline: "+sub()) + "}"
	case 6:
		return "{$unionWith: " + fields(r, "coll: "+randomName(r), db, "pipeline: "+sub()) + "}"
	case 7:
		return fmt.Sprintf("{$graphLookup: %s}", fields(r, "from: "+randomName(r), `startWith: "$a"`, `connectFromField: "a"`, `connectToField: "b"`, `as: "x"`, "from: "+randomName(r)))
	case 8:
		return "{$facet: {a: " + sub() + ", b: " + sub() + "}}"
	case 9:
		return "{$out: " + randomName(r) + "}"
	case 10:
		return "{$out: " + fields(r, db, "coll: "+randomName(r)) + "}"
	case 11:
		return "{$merge: " + fields(r, "into: "+[]string{randomName(r), fields(r, db, "coll: "+randomName(r))}[r.IntN(2)], `whenMatched: "`+[]string{"merge", "replace", "fail", "keepExisting"}[r.IntN(4)]+`"`,
			`whenNotMatched: "`+[]string{"insert", "fail", "discard"}[r.IntN(3)]+`"`) + "}"
	}
	return []string{"{$match: {}}", "{$collStats: {}}", "{$indexStats: {}}", "{$rankFusion: {input: {pipelines: {a: [{$sort: {a: 1}}]}}}}"}[r.IntN(4)]
}
