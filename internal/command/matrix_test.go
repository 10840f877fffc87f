package command

import (
	"cmp"
	"fmt"
	"maps"
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
//
// The directive system asks of each command and stage that is among these cases, on a collection c, who may run it on other collections: those of
// the system, a line of its input each. What comes out is, below each collection, who may, and what.

// matrix asks one question a role.
type matrix struct {
	*guarded
	// allowed and refused are the rows of both tables that have such a case, elsewhere those that were tried on other databases than own.
	allowed, refused, elsewhere map[string]bool
	// onCollections are the cases about one collection, by what they are of: a command, or a stage.
	onCollections map[string]bson.Doc
}

func TestWhoMayRunWhat(t *testing.T) {
	m := &matrix{newGuarded(t, newHarness(t)), map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bson.Doc{}}
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
			if d.Cmd == "system" {
				for coll := range strings.SplitSeq(d.Input, "\n") {
					out.WriteString(m.onSystem(t, coll))
				}
				return out.String()
			}
			for line := range strings.SplitSeq(strings.ReplaceAll(d.Input, "\n ", " "), "\n") {
				db, text, _ := strings.Cut(line, " ")
				doc, err := bson.ParseDoc(text)
				if err != nil {
					d.Fatalf(t, "%s: %v", line, err)
				}
				if m.note(db, doc); db != "own" {
					m.tick(m.elsewhere, m.server.table[doc.FirstKey()].Name, doc)
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
	m.tick(to, row.Name, command)
	return ok
}

// tick takes note of a case of a command, and of the stages in it.
func (*matrix) tick(in map[string]bool, name string, command bson.Doc) {
	in[name] = true
	if stages := command.Lookup("pipeline"); name == "aggregate" {
		for it := stages.Doc().Iter(); it.Next(); {
			in[it.Value().Doc().FirstKey()] = true
		}
	}
}

// answer is one line of the table.
func (m *matrix) answer(t *testing.T, db string, command bson.Doc) string {
	db, both := strings.CutSuffix(db, "*")
	return fmt.Sprintf("%-60s  %s\n", db+" "+command.String(), m.who(t, db, both, command))
}

// who may run the command, on the database other as well where both is set.
func (m *matrix) who(t *testing.T, db string, both bool, command bson.Doc) string {
	if m.judge(t, NewConn(1, "127.0.0.1:50001", "127.0.0.1:27018"), db, command) {
		return "everybody"
	}
	if m.may(t, auth.Name{}, db, command) {
		return "every user"
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
	return strings.Join(out, ", ")
}

// note keeps a case for onSystem, the first of its kind.
func (m *matrix) note(db string, command bson.Doc) {
	of := command.FirstKey()
	if named := command.Lookup(of); db != "own*" || named.Type != bson.TypeString || named.Str() != "c" {
		return
	}
	if of == "aggregate" {
		if it := command.Lookup("pipeline").Doc().Iter(); it.Next() {
			of = it.Value().Doc().FirstKey()
		}
	}
	if m.onCollections[of] == nil {
		m.onCollections[of] = command
	}
}

// onSystem tells who may run what on a collection, of the database own as a rule.
func (m *matrix) onSystem(t *testing.T, coll string) string {
	db, name, _ := strings.Cut(coll, ".")
	may := map[string][]string{}
	for _, of := range slices.Sorted(maps.Keys(m.onCollections)) {
		it := m.onCollections[of].Iter()
		it.Next()
		b := bson.Build().String(it.Key(), name)
		for it.Next() {
			b.Value(it.Key(), it.Value())
		}
		who := m.who(t, db, db == "own", b.Doc())
		may[who] = append(may[who], of)
	}
	var out strings.Builder
	out.WriteString(coll + "\n")
	for _, who := range slices.Sorted(maps.Keys(may)) {
		fmt.Fprintf(&out, "  %s\n    %s\n", cmp.Or(who, "nobody"), strings.Join(may[who], " "))
	}
	return out.String()
}

// complete wants a case that is allowed and one that is refused of each row of both tables, and one on another database of each row for which
// databases matter.
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
		if c.NoAuth {
			continue
		}
		look(c.Name)
		if n := c.Needs; !c.AdminOnly && !n.Nothing && (n.Also != nil || len(n.OnDatabase)+len(n.OnCollection) > 0) && !m.elsewhere[c.Name] {
			missing = append(missing, c.Name+" is never tried on another database")
		}
	}
	for _, s := range pipeline.Rows() {
		look(s.Name)
		if !m.elsewhere[s.Name] {
			missing = append(missing, s.Name+" is never tried on another database")
		}
	}
	slices.Sort(missing)
	for _, text := range missing {
		t.Error(text)
	}
}
