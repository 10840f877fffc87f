package command

import (
	"cmp"
	"slices"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// concealed stands where a secret stood.
const concealed = "xxx"

// Conceal is a document of the command, sent to db, as anybody may read it: its Sensitive fields say nothing. That is what currentOp, the
// profiler, the log, the audit log and errors show of a command.
func (c *Command) Conceal(db string, d bson.Doc) bson.Doc { return conceal(d, c.secrets(db, d)) }

// secrets are the fields of such a document that say nothing.
func (c *Command) secrets(db string, d bson.Doc) []string {
	switch {
	case c.writesUsers(db, d):
		return c.Written
	case c.Known != nil:
		return append(c.unknown(d), c.Sensitive...)
	}
	return c.Sensitive
}

func (c *Command) writesUsers(db string, d bson.Doc) bool {
	return len(c.Written) > 0 && writesUsers(db, d)
}

// unknown are the fields that the command does not know.
func (c *Command) unknown(d bson.Doc) (names []string) {
	it := d.Iter()
	for it.Next(); it.Next(); { // the first is the command's own
		if !c.Known(it.Key()) && !isGeneric(it.Key()) {
			names = append(names, it.Key())
		}
	}
	return names
}

// knows is for Command.Known: these alone are known.
func knows(names ...string) func(string) bool {
	return func(name string) bool { return slices.Contains(names, name) }
}

// conceal is a document some of whose fields say nothing.
func conceal(d bson.Doc, fields []string) bson.Doc {
	if !slices.ContainsFunc(fields, func(name string) bool { return !d.Lookup(name).IsMissing() }) {
		return d
	}
	b := bson.Build()
	for it := d.Iter(); it.Next(); {
		if slices.Contains(fields, it.Key()) {
			b.String(it.Key(), concealed)
		} else {
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Doc()
}

// holdsCredentials says whether a collection has what logins are held against: the server's own, and those of dumps and restores.
func holdsCredentials(ns namespace.NS) bool {
	if ns.DB != auth.UsersNS().DB {
		return false
	}
	switch ns.Coll {
	case auth.UsersNS().Coll, "system.backup_users", "system.new_users", "tempusers":
		return true
	}
	return false
}

// writesUsers says whether a write in db goes to such a collection. A bulkWrite whose collections stand beside its document may.
func writesUsers(db string, d bson.Doc) bool {
	switch name := d.FirstKey(); {
	case name == "aggregate":
		return endsInUsers(db, d.Lookup("pipeline"))
	case name == "mapReduce" || name == "mapreduce":
		return reducesToUsers(db, d.Lookup("out"))
	case db != auth.UsersNS().DB:
		return false
	case name != "bulkWrite":
		return holdsCredentials(namespace.NS{DB: db, Coll: nameIn(d.Lookup(name))})
	}
	targets := d.Lookup("nsInfo")
	if targets.Type != bson.TypeArray {
		return true
	}
	for it := targets.Doc().Iter(); it.Next(); {
		if it.Value().Type == bson.TypeObject && namesUsers(it.Value().Doc()) {
			return true
		}
	}
	return false
}

// endsInUsers says whether a stage of a pipeline that is run in db writes to such a collection. It is asked before the pipeline is parsed.
func endsInUsers(db string, pipeline bson.Value) bool {
	if pipeline.Type != bson.TypeArray {
		return false
	}
	for it := pipeline.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			continue
		}
		out, merge := it.Value().Doc().Lookup("$out"), it.Value().Doc().Lookup("$merge")
		if merge.Type == bson.TypeObject {
			merge = merge.Doc().Lookup("into")
		}
		if isOfUsers(db, out) || isOfUsers(db, merge) {
			return true
		}
	}
	return false
}

// reducesToUsers says whether the results of a mapReduce that is run in db go to such a collection. It is asked before out is parsed.
func reducesToUsers(db string, out bson.Value) bool {
	if out.Type != bson.TypeObject {
		return isOfUsers(db, out)
	}
	db = cmp.Or(nameIn(out.Doc().Lookup("db")), db)
	return slices.ContainsFunc([]string{"replace", "merge", "reduce"}, func(mode string) bool { return isOfUsers(db, out.Doc().Lookup(mode)) })
}

// isOfUsers says whether what $out or $merge is to write to, as it is written, is such a collection.
func isOfUsers(db string, target bson.Value) bool {
	if target.Type == bson.TypeObject {
		return holdsCredentials(namespace.NS{DB: cmp.Or(nameIn(target.Doc().Lookup("db")), db), Coll: nameIn(target.Doc().Lookup("coll"))})
	}
	return holdsCredentials(namespace.NS{DB: db, Coll: nameIn(target)})
}

// nameIn is the name that a value may be taken for: a string, or what BSON calls a symbol. It is "" for any other value.
func nameIn(v bson.Value) string {
	if v.Type == bson.TypeString || v.Type == bson.TypeSymbol {
		return v.Str()
	}
	return ""
}

// namesUsers says whether an entry of a bulkWrite's nsInfo, or of an oplog, is about such a collection.
func namesUsers(d bson.Doc) bool { return holdsCredentials(namespace.Split(nameIn(d.Lookup("ns")))) }

// concealed is the operation's command as anybody may read it.
func (op *Op) concealed() bson.Doc {
	d := op.Args.Document()
	switch v := d.Value(); {
	case !op.Command.HoldsCommands:
		return op.Command.Conceal(op.DB, d)
	case op.table.holdsSecrets(v):
		return op.table.concealWithin(v).Doc()
	}
	return d
}

// concealedError is an error of the operation as anybody may read it. What is wrong with a write is told by what was to be written, or by what is
// there: of a write to users neither is shown.
func (op *Op) concealedError(err error) error {
	d := op.Args.Document()
	if err != nil && (op.Command.writesUsers(op.DB, d) || op.Command.HoldsCommands && op.table.holdsSecrets(d.Value())) {
		return withoutWords(err)
	}
	return err
}

// withoutWords is an error of which the code alone is shown.
func withoutWords(err error) error { return mongoerr.New(mongoerr.From(err).Code, concealed) }

// concealedCommand is a command that is over as anybody may read it.
func (s *Server) concealedCommand(d bson.Doc) bson.Doc {
	c := s.table[d.FirstKey()]
	db := d.Lookup("$db")
	if c == nil || db.Type != bson.TypeString {
		return d
	}
	return c.Conceal(db.Str(), d)
}

// The rest is for commands that hold commands, which may hold others in turn: as deep as a message may nest, which is bson.MaxDepth. What
// begins with a command's name is taken for one, and for one in admin, be it sent to another database: it may be none that is run.

// secretsOf are the fields of v that say nothing where v is a command, or an entry of an oplog.
func (t table) secretsOf(v bson.Value) []string {
	if v.Type != bson.TypeObject {
		return nil
	}
	d := v.Doc()
	if namesUsers(d) {
		return []string{"o", "o2"}
	}
	if c := t[d.FirstKey()]; c != nil {
		return c.secrets(auth.UsersNS().DB, d)
	}
	return nil
}

// holdsSecrets says whether v has anything in it that is to say nothing.
func (t table) holdsSecrets(v bson.Value) bool {
	if v.Type != bson.TypeObject && v.Type != bson.TypeArray {
		return false
	}
	secrets := t.secretsOf(v)
	for it := v.Doc().Iter(); it.Next(); {
		if slices.Contains(secrets, it.Key()) || t.holdsSecrets(it.Value()) {
			return true
		}
	}
	return false
}

// concealWithin is v with all that is in it as anybody may read it.
func (t table) concealWithin(v bson.Value) bson.Value {
	if v.Type != bson.TypeObject && v.Type != bson.TypeArray {
		return v
	}
	secrets := t.secretsOf(v)
	b := bson.Build()
	for it := v.Doc().Iter(); it.Next(); {
		if slices.Contains(secrets, it.Key()) {
			b.String(it.Key(), concealed)
		} else {
			b.Value(it.Key(), t.concealWithin(it.Value()))
		}
	}
	return bson.Value{Type: v.Type, Data: b.Doc()}
}
