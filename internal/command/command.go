// Package command is MongoDB's commands: a table of them, one file each, and what all of them share: reading their
// documents, running them as operations, and answering in MongoDB's shape. It knows nothing of sockets.
package command

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/query"
)

// Command is one row of the table.
type Command struct {
	Name    string
	Aliases []string
	// Doc is one sentence for listCommands.
	Doc string
	// AdminOnly commands run against the admin database only.
	AdminOnly bool
	// Kind is MongoDB's op in currentOp and the profiler when it is not "command".
	Kind string
	// ReadConcern and WriteConcern say which of the two the command takes.
	ReadConcern, WriteConcern bool
	// NoSession commands refuse nothing but do not count as use of a session.
	NoSession bool
	// NoAuth commands may be run by who has not logged in. The others say what they need.
	NoAuth bool
	// NoAuthIf says whether one of the others may be run so for now; nil: never.
	NoAuthIf func(*Op) bool
	Needs    Needs
	// Sensitive are the fields that hold secrets; see Conceal.
	Sensitive []string
	// Known says whether the command has a field of that name, beside its own and generic ones; nil where that is nobody's matter. Of a command that
	// has it other fields hold secrets as well: their names may be mistyped.
	Known func(name string) bool
	// Written are the fields with what is written, which hold secrets where that goes to users.
	Written []string
	// RawData commands work on the buckets of a time series where rawData is true.
	RawData bool
	// HoldsCommands says that the arguments are commands, or entries of an oplog.
	HoldsCommands bool
	// Audited is what the audit log is told of the command when it has succeeded; nil where it is told nothing, or in another place.
	Audited func(*Op) bson.Doc
	// Sequences are the fields whose documents may come in document sequences.
	Sequences []string
	// Lasts says that the command goes on when its client hangs up.
	Lasts bool
	// Quiet commands are neither logged as slow nor profiled.
	Quiet bool
	// ChangesTTL commands may make, change or drop TTLs, of which the log and local.ttl_history tell.
	ChangesTTL bool
	// Explain tells how Run would do the work; nil for commands that have no plan.
	Explain func(*Op, query.Verbosity) (*query.Explanation, error)
	// Run does the work. The reply lacks "ok", which is added unless it is there.
	Run func(*Op) (bson.Doc, error)

	calls calls
}

// table is every command, found by name and alias.
type table map[string]*Command

func newTable(rows ...[]*Command) table {
	t := table{}
	for _, family := range rows {
		t.add(family)
	}
	return t
}

func (t table) add(family []*Command) {
	row := func(name string, c *Command) {
		if t[name] != nil {
			panic("command: two rows for " + name)
		}
		t[name] = c
	}
	for _, c := range family {
		row(c.Name, c)
		for _, a := range c.Aliases {
			row(a, c)
		}
	}
}
