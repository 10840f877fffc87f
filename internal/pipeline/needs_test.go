package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
)

// TestNeeds shows what pipelines need. The input is a pipeline; ns is what it runs on (own.c), and bypass says that what it writes is not
// validated.
func TestNeeds(t *testing.T) {
	table := NewTable()
	datadriven.RunTest(t, "testdata/needs.txt", func(t *testing.T, d *datadriven.TestData) string {
		ns := "own.c"
		d.MaybeScanArgs(t, "ns", &ns)
		db, coll, _ := strings.Cut(ns, ".")
		var out strings.Builder
		asker := &Asker{Bypass: d.HasArg("bypass"), Is: func(name, db string) bool { return name == "me" && db == "own" }, May: func(on privilege.Resource, a privilege.Action) bool {
			fmt.Fprintln(&out, a, "on", on)
			return true
		}}
		doc, err := bson.ParseDoc("{p: " + strings.ReplaceAll(d.Input, "\n", " ") + "}")
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		if _, err := table.Permits(asker, namespace.NS{DB: db, Coll: coll}, doc.Lookup("p")); err != nil {
			fmt.Fprintln(&out, err)
		}
		return out.String()
	})
}

func TestStagesSayWhatTheyNeed(t *testing.T) {
	for _, row := range Rows() {
		n := &row.Needs
		something := n.Source || n.Also != nil || len(n.Own)+len(n.Cluster) > 0
		if n.Nothing == something {
			t.Errorf("%s does not say what it needs, or says both something and nothing", row.Name)
		}
	}
}

// TestNeedsAreNeeded refuses one after the other of what a pipeline asks for: each refusal has to be one of the pipeline.
func TestNeedsAreNeeded(t *testing.T) {
	table := NewTable()
	for _, text := range []string{
		`[{$lookup: {from: "a", pipeline: [{$unionWith: {coll: "b", pipeline: [{$graphLookup: {from: "c"}}]}}]}}, {$facet: {x: [{$lookup: {from: "d"}}]}}, {$out: "e"}]`,
		`[{$collStats: {}}, {$merge: {into: {db: "x", coll: "y"}}}]`,
		`[{$currentOp: {allUsers: true}}]`, `[{$listSessions: {users: [{user: "you", db: "own"}]}}]`, `[{$changeStream: {}}]`, `[{$ebbTTL: {}}]`,
	} {
		for refused := 0; ; refused++ {
			asked := 0
			asker := &Asker{Bypass: true, Is: func(string, string) bool { return false }, May: func(privilege.Resource, privilege.Action) bool {
				asked++
				return asked != refused+1
			}}
			ok, err := table.Permits(asker, namespace.NS{DB: "own", Coll: "c"}, bson.MustDoc("{p: "+text+"}").Lookup("p"))
			if err != nil {
				t.Fatal(err)
			}
			if ok != (asked <= refused) {
				t.Errorf("%s: permitted is %v though demand %d of it was refused", text, ok, refused)
			}
			if asked <= refused {
				break
			}
		}
	}
}

func TestNeedsHaveLimits(t *testing.T) {
	stages := `[]`
	for range MaxDepth + 1 {
		stages = `[{$unionWith: {coll: "c", pipeline: ` + stages + `}}]`
	}
	asker := &Asker{May: func(privilege.Resource, privilege.Action) bool { return true }}
	if ok, err := NewTable().Permits(asker, namespace.NS{DB: "own", Coll: "c"}, bson.MustDoc("{p: "+stages+"}").Lookup("p")); ok || err == nil {
		t.Error("there is no end to the depth that is looked at")
	}
}
