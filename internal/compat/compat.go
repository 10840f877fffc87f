// Package compat writes docs/compatibility.md: every operator, stage and command of MongoDB 8.2's manual with what it is
// here. What is here it takes from the operators' own tables; it knows of operators only what those do not tell: that one is
// missing, or lacks something. Each such claim carries a command, and the tests see that the server answers it as claimed.
package compat

//go:generate go test . -run TestPage -update

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

// state is what an operator is here.
type state string

const (
	complete   state = "complete"
	partial    state = "partial"
	refused    state = "refused" // as MongoDB does: a standalone has no replica set, no shards, no search process
	notYet     state = "not yet"
	notOffered state = "not offered"
)

// exception is what the tables do not tell of an operator.
type exception struct {
	name  string
	state state
	// note says what is missing.
	note string
	// since and doc are for operators without a row.
	since, doc string
	// try is a command that shows it, on the database admin for commands that want that; code is what it is answered with,
	// 0 when it succeeds; empty says that it succeeds with an empty batch.
	try   string
	code  mongoerr.Code
	empty bool
}

// section is one kind of operators.
type section struct {
	key, title, intro string
	rows              []row
	// unknown is a command that names an operator, in the place of %s, and code what it answers when there is none.
	unknown string
	code    mongoerr.Code
}

// row is an operator that there is.
type row struct{ name, since, doc string }

// entry is one line of the page.
type entry struct {
	row
	state state
	note  string
}

// entries are the lines of a section: the manual's operators, then those that the manual does not list.
func (s *section) entries() (listed, beyond []entry) {
	manual := manualOf(s.key)
	for _, m := range manual {
		listed = append(listed, s.entry(m.name, m.since))
	}
	for _, r := range s.rows {
		if !slices.ContainsFunc(manual, func(m row) bool { return m.name == r.name }) {
			beyond = append(beyond, s.entry(r.name, ""))
		}
	}
	slices.SortFunc(beyond, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return listed, beyond
}

func (s *section) entry(name, since string) entry {
	e := entry{row: row{name: name, since: since}, state: notYet}
	if i := slices.IndexFunc(s.rows, func(r row) bool { return r.name == name }); i >= 0 {
		e.row, e.state = s.rows[i], complete
		if e.since == "" {
			e.since = since
		}
	}
	if x, ok := find(s.key, name); ok {
		e.state, e.note = x.state, x.note
		if x.doc != "" {
			e.since, e.doc = cmpOr(x.since, since), x.doc
		}
		if x.code != 0 {
			e.note = strings.TrimSpace(e.note + fmt.Sprintf(" Answers %s (%d).", x.code.Name(), x.code))
		}
	}
	return e
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func find(key, name string) (exception, bool) {
	all := exceptions()[key]
	i := slices.IndexFunc(all, func(x exception) bool { return x.name == name })
	if i < 0 {
		return exception{}, false
	}
	return all[i], true
}

// Page is docs/compatibility.md.
func Page() string {
	var b strings.Builder
	b.WriteString(`# Compatibility with MongoDB 8.2

What MongoDB's manual lists, and what it is here on one node. This page is made from the tables of operators by
` + "`go generate ./internal/compat`" + `; a test fails when it is out of date, when an operator has a row and no line, or when the
server does not answer as a line says. Known differences in behaviour are in [differences.md](differences.md).

- **complete**: it is there, and nothing is known to be missing.
- **partial**: it is there, but for what the note says.
- **refused**: it answers with the error of a MongoDB that runs as this server does: a standalone, without shards or a search
  process. What is refused because it needs a replica set is there where the server is [one](replica-set.md).
- **not yet**: it answers with the error in the note, and never with a wrong result.
- **not offered**: it belongs to a part of MongoDB that there is none of here.

`)
	all := sections()
	b.WriteString("| | complete | partial | refused | not yet | not offered |\n|---|---:|---:|---:|---:|---:|\n")
	for i := range all {
		listed, _ := all[i].entries()
		count := map[state]int{}
		for _, e := range listed {
			count[e.state]++
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d |\n", all[i].title, count[complete], count[partial], count[refused], count[notYet], count[notOffered])
	}
	for i := range all {
		all[i].write(&b)
	}
	return b.String()
}

func (s *section) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n", s.title)
	if s.intro != "" {
		b.WriteString(s.intro + "\n\n")
	}
	listed, beyond := s.entries()
	writeTable(b, listed)
	if len(beyond) > 0 {
		b.WriteString("\nBeyond the manual's list:\n\n")
		writeTable(b, beyond)
	}
}

func writeTable(b *strings.Builder, entries []entry) {
	b.WriteString("| name | since | state | what it is |\n|---|---|---|---|\n")
	for _, e := range entries {
		text := strings.TrimSpace(e.doc + " " + e.note)
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", e.name, e.since, e.state, strings.ReplaceAll(text, "|", `\|`))
	}
}
