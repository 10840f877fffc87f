package compat

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

const page = "../../docs/compatibility.md"

// TestPage fails when the page is not what the tables say; -update writes it anew.
func TestPage(t *testing.T) {
	want := Page()
	if *rewrite {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/compatibility.md is out of date%s: run go generate ./internal/compat", firstDifference(string(got), want))
	}
}

var rewrite = flag.Bool("update", false, "write docs/compatibility.md")

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf(" in line %d\n  is:        %s\n  should be: %s\n", i+1, g[i], w[i])
		}
	}
	return ""
}

// TestEveryEntry holds the tables and the manual together: no operator twice, none without version and text, none that
// neither a row nor an exception describes, and no exception for what nobody lists.
func TestEveryEntry(t *testing.T) {
	for _, s := range sections() {
		listed, beyond := s.entries()
		if len(listed) == 0 {
			t.Errorf("%s: the manual lists nothing", s.title)
		}
		seen := map[string]bool{}
		for _, e := range append(listed, beyond...) {
			if seen[e.name] {
				t.Errorf("%s: %s stands twice", s.title, e.name)
			}
			seen[e.name] = true
			if _, excepted := find(s.key, e.name); e.state == notYet && !excepted {
				t.Errorf("%s: %s has neither a row nor an exception", s.title, e.name)
			}
			if e.since == "" && s.key != "command" || e.doc == "" && e.note == "" {
				t.Errorf("%s: %s lacks its version or what it is", s.title, e.name)
			}
		}
		for _, x := range exceptions()[s.key] {
			hasRow := slices.ContainsFunc(s.rows, func(r row) bool { return r.name == x.name })
			switch {
			case !seen[x.name]:
				t.Errorf("%s: an exception for %s, which nobody lists", s.title, x.name)
			case x.state == complete && hasRow:
				t.Errorf("%s: an exception for %s, whose row says it all", s.title, x.name)
			case !hasRow && x.doc == "" && s.key != "command":
				t.Errorf("%s: %s has no row and nothing says what it is", s.title, x.name)
			case hasRow && x.try == "":
				t.Errorf("%s: %s has a row and is said to be %s: nothing shows it", s.title, x.name, x.state)
			}
		}
	}
}

// TestClaims asks a server: what is said to be missing is answered with the error that is named, and what has no row with
// that of an unknown name.
func TestClaims(t *testing.T) {
	db := connect(t)
	for _, s := range sections() {
		for _, x := range exceptions()[s.key] {
			try, code := x.try, x.code
			if try == "" {
				try, code = fmt.Sprintf(s.unknown, x.name), s.code
			}
			got, batch := run(t, db, s.key, try)
			if x.empty && batch != 0 {
				t.Errorf("%s: %s is said to give nothing: it gave %d documents", s.title, x.name, batch)
			}
			if got != code {
				t.Errorf("%s: %s is said to be %s, to be answered with %d: %s is answered with %d", s.title, x.name, x.state, code, try, got)
			}
		}
		if got, _ := run(t, db, s.key, fmt.Sprintf(s.unknown, "$nope")); got != s.code {
			t.Errorf("%s: an unknown name is answered with %d", s.title, got)
		}
	}
}

// TestRowsAreKnown asks a server about each row: whatever is wrong with the argument, the name is known.
func TestRowsAreKnown(t *testing.T) {
	db := connect(t)
	for _, s := range sections() {
		if s.key == "command" || s.key == "query" || s.key == "update" || s.key == "window" {
			continue // unknown names are told apart by their text only, or the command would run
		}
		for _, r := range s.rows {
			if got, _ := run(t, db, s.key, fmt.Sprintf(s.unknown, r.name)); got == s.code {
				t.Errorf("%s: %s is answered as an unknown name", s.title, r.name)
			}
		}
	}
}

func connect(t *testing.T) *mongo.Client {
	srv := ebbtest.Start(t)
	client, err := mongo.Connect(options.Client().ApplyURI(srv.URI()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Disconnect(context.Background()) })
	for _, command := range []string{
		`{insert: "c", documents: [{_id: 1, a: [1, 2], loc: [1, 1]}]}`,
		`{createIndexes: "c", indexes: [{key: {loc: "2d"}, name: "2d"}, {key: {loc: "2dsphere"}, name: "2dsphere"}]}`,
		`{create: "capped", capped: true, size: 4096}`,
	} {
		if code, _ := run(t, client, "", command); code != 0 {
			t.Fatalf("%s is answered with %d", command, code)
		}
	}
	return client
}

// run is the code that a command is answered with, 0 for none, and how many documents its batch has. Commands of the table
// run on admin.
func run(t *testing.T, client *mongo.Client, key, command string) (code mongoerr.Code, batch int) {
	doc, err := bson.ParseDoc(command)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	db := "test"
	if key == "command" || doc.Index(0).Type != bson.TypeString {
		db = "admin"
	}
	if strings.Contains(command, `"c"`) || strings.Contains(command, `"capped"`) {
		db = "test"
	}
	reply, err := client.Database(db).RunCommand(context.Background(), driver.Raw(doc)).Raw()
	var failed mongo.CommandError
	var unwritten mongo.WriteException
	switch {
	case errors.As(err, &failed):
		return mongoerr.Code(failed.Code), 0
	case errors.As(err, &unwritten) && len(unwritten.WriteErrors) > 0:
		return mongoerr.Code(unwritten.WriteErrors[0].Code), 0
	case err != nil:
		t.Fatalf("%s: %v", command, err)
	}
	if cursor := bson.Doc(reply).Lookup("cursor"); cursor.Type == bson.TypeObject {
		batch = cursor.Doc().Lookup("firstBatch").Doc().Count()
	}
	return 0, batch
}
