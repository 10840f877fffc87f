package command

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
)

// concealed stands where a secret stood.
const concealed = "xxx"

// Conceal is a document of the command as anybody may read it: its Sensitive fields say nothing. That is what currentOp, the profiler,
// the log, the audit log and errors show of a command.
func (c *Command) Conceal(d bson.Doc) bson.Doc {
	if len(c.Sensitive) == 0 || !slices.ContainsFunc(c.Sensitive, func(name string) bool { return !d.Lookup(name).IsMissing() }) {
		return d
	}
	b := bson.Build()
	for it := d.Iter(); it.Next(); {
		if slices.Contains(c.Sensitive, it.Key()) {
			b.String(it.Key(), concealed)
		} else {
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Doc()
}

// concealed is the operation's command as anybody may read it. An explain has one within it, which may be no command that can be explained.
func (op *Op) concealed() bson.Doc {
	d := op.Args.Document()
	if op.Command.Name != "explain" {
		return op.Command.Conceal(d)
	}
	name := d.FirstKey()
	inner := d.Lookup(name)
	if inner.Type != bson.TypeObject {
		return d
	}
	c := op.table[inner.Doc().FirstKey()]
	if c == nil || len(c.Sensitive) == 0 {
		return d
	}
	return with(d, field{name, c.Conceal(inner.Doc()).Value()})
}
