package command

import (
	"cmp"
	"slices"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
)

// concealed stands where a secret stood.
const concealed = "xxx"

// Conceal is a document of the command, sent to db, as anybody may read it: its Sensitive fields say nothing. That is what currentOp, the
// profiler, the log, the audit log and errors show of a command.
func (c *Command) Conceal(db string, d bson.Doc) bson.Doc { return conceal(d, c.secrets(db, d)) }

// secrets are the fields of such a document that say nothing.
func (c *Command) secrets(db string, d bson.Doc) []string {
	if len(c.Written) > 0 && writesUsers(db, d) {
		return c.Written
	}
	return c.Sensitive
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
		return holdsCredentials(namespace.NS{DB: db, Coll: text(d, name)})
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
	db = cmp.Or(text(out.Doc(), "db"), db)
	return slices.ContainsFunc([]string{"replace", "merge", "reduce"}, func(mode string) bool { return isOfUsers(db, out.Doc().Lookup(mode)) })
}

// isOfUsers says whether what $out or $merge is to write to, as it is written, is such a collection.
func isOfUsers(db string, target bson.Value) bool {
	switch target.Type {
	case bson.TypeString:
		return holdsCredentials(namespace.NS{DB: db, Coll: target.Str()})
	case bson.TypeObject:
		return holdsCredentials(namespace.NS{DB: cmp.Or(text(target.Doc(), "db"), db), Coll: text(target.Doc(), "coll")})
	}
	return false
}

// namesUsers says whether an entry of a bulkWrite's nsInfo, or of an oplog, is about such a collection.
func namesUsers(d bson.Doc) bool {
	ns := d.Lookup("ns")
	return ns.Type == bson.TypeString && holdsCredentials(namespace.Split(ns.Str()))
}

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
