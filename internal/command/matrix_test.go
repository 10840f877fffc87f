package command

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/role"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// The cases in testdata/authorization tell who may run what. A line of the input is a database and a command. What comes out is that line's
// command, and behind it who may run it, one line each:
//
//	own.find     own: dbOwner read readWrite, admin: backup readAnyDatabase …
//
// "own" are roles of the database own, "admin" roles of the admin database, which are granted to a user who has nothing else. The
// database own* is own, and other as well: what roles of own may do there stands behind "other". "every user" says that no role is needed.
// Whoever has not logged in may run none of it. A role that is not named is refused.

// matrix asks one question a role.
type matrix struct {
	*guarded
	// allowed and refused are the rows of both tables that have such a case.
	allowed, refused map[string]bool
}

func TestWhoMayRunWhat(t *testing.T) {
	m := &matrix{newGuarded(t, newHarness(t)), map[string]bool{}, map[string]bool{}}
	m.server.Authorization = false
	for _, setup := range []string{`{create: "c"}`, `{create: "v", viewOn: "c", pipeline: []}`, `{create: "ts", timeseries: {timeField: "t"}}`} {
		m.setUp("own", setup)
	}
	m.server.Authorization = true
	files, err := filepath.Glob("testdata/authorization/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			for line := range strings.SplitSeq(strings.ReplaceAll(d.Input, "\n ", " "), "\n") {
				db, text, _ := strings.Cut(line, " ")
				doc, err := bson.ParseDoc(text)
				if err != nil {
					d.Fatalf(t, "%s: %v", line, err)
				}
				out.WriteString(m.answer(t, db, doc))
			}
			return out.String()
		})
	}
	m.complete(t)
}

func (m *matrix) setUp(db, command string) {
	m.t.Helper()
	if reply := m.send(m.t.Context(), "setup", db, bson.MustDoc(command)).Body; !reply.Lookup("ok").Truthy() {
		m.t.Fatalf("%s: %s", command, reply)
	}
}

// may says whether a user of one role, none for an empty name, may run the command.
func (m *matrix) may(t *testing.T, granted auth.Name, db string, command bson.Doc) bool {
	var roles []auth.Name
	if granted.Name != "" {
		roles = append(roles, granted)
	}
	conn := NewConn(1, "127.0.0.1:50001", "127.0.0.1:27018")
	conn.become(m.is(auth.Name{Name: "somebody", DB: "own"}, roles))
	return m.judge(t, conn, db, command)
}

// judge says whether who has logged in on the connection may run the command, which is not run.
func (m *matrix) judge(t *testing.T, conn *Conn, db string, command bson.Doc) bool {
	row := m.server.table[command.FirstKey()]
	if row == nil {
		t.Fatalf("there is no command %s", command.FirstKey())
	}
	if row.AdminOnly && db != "admin" {
		t.Fatalf("%s is for the admin database", row.Name)
	}
	op := &Op{Server: m.server, Conn: conn, Command: row, DB: db, Args: NewArgs(row.Name, bson.Build().Fields(command).String("$db", db).Doc())}
	err := op.authorize(t.Context())
	ok := err == nil
	if !ok && !strings.Contains(err.Error(), "not authorized on") && !strings.Contains(err.Error(), "requires authentication") {
		t.Fatalf("%s: %v", command, err)
	}
	to := m.refused
	if ok {
		to = m.allowed
	}
	to[row.Name] = true
	if stages := command.Lookup("pipeline"); row.Name == "aggregate" {
		for it := stages.Doc().Iter(); it.Next(); {
			to[it.Value().Doc().FirstKey()] = true
		}
	}
	return ok
}

// answer is one line of the table.
func (m *matrix) answer(t *testing.T, db string, command bson.Doc) string {
	db, both := strings.CutSuffix(db, "*")
	label := fmt.Sprintf("%-60s", db+" "+command.String())
	if m.judge(t, NewConn(1, "127.0.0.1:50001", "127.0.0.1:27018"), db, command) {
		return label + "  everybody\n"
	}
	if m.may(t, auth.Name{}, db, command) {
		return label + "  every user\n"
	}
	var out []string
	list := func(title, rolesOf, db string) {
		var names []string
		for _, name := range role.Names(rolesOf) {
			if m.may(t, auth.Name{Name: name, DB: rolesOf}, db, command) {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			out = append(out, title+": "+strings.Join(names, " "))
		}
	}
	list("own", "own", db)
	if both {
		list("other", "own", "other")
	}
	list("admin", "admin", db)
	return label + "  " + strings.Join(out, ", ") + "\n"
}

// complete wants a case that is allowed and one that is refused of each row of both tables.
func (m *matrix) complete(t *testing.T) {
	var missing []string
	look := func(name string) {
		if !m.allowed[name] {
			missing = append(missing, name+" is never allowed")
		}
		if !m.refused[name] {
			missing = append(missing, name+" is never refused")
		}
	}
	for _, c := range Rows() {
		if !c.NoAuth {
			look(c.Name)
		}
	}
	for _, s := range pipeline.Rows() {
		look(s.Name)
	}
	slices.Sort(missing)
	for _, text := range missing {
		t.Error(text)
	}
}
