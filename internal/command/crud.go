package command

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/query"
	"github.com/ebbdb/ebb/internal/storage/indexwrite"
)

// brings is what op brings to any query.
func (op *Op) brings() query.Call {
	return query.Call{Now: op.Now, Txn: op.txn, Past: op.snapshot, Snapshot: op.isSnapshot, ClusterTime: op.knownTime(), UserRoles: op.userRoles(), Stable: op.APIStrict, Durability: op.Durability(), AllowDiskUse: op.spills(), Server: op.serverStages(),
		Told: &op.Running.Stats, Conflicts: &op.Running.Stats.WriteConflicts}
}

// call is what op brings to a query that may write.
func (op *Op) call() *query.Call {
	c := op.brings()
	c.Retry = op.retry
	return &c
}

// change is call for a write whose commits become durable together, at the command's end; see awaitDurable.
func (op *Op) change() *query.Call {
	c := op.call()
	if c.Durability == kv.Synced {
		c.Durability, c.Committed = kv.Unsynced, &op.committed
	}
	if op.txn == nil {
		c.Patience = op.commitPatience()
	}
	return c
}

// pipe is call for a pipeline, which may write what it gives.
func (op *Op) pipe() *query.Call {
	c := op.call()
	if op.txn == nil && op.grouped() && op.writesItsResult() {
		c.Patience = op.commitPatience()
	}
	return c
}

// collate reads an optional collation into c.
func collate(a *Args, doc bson.Doc, c *query.Call) {
	if doc.IsEmpty() { // an empty one says as little as none
		return
	}
	parsed, err := collation.Parse(doc)
	if err != nil {
		a.Fail(err)
		return
	}
	c.Collation, c.Collated = parsed, true
}

// collateStatement is collate for a statement of a command that has several: what is wrong with the collation's fields is the statement's error,
// and the others are carried out.
func collateStatement(a *Args, key string, c *query.Call) (refused error) {
	doc := a.Doc(key)
	if doc.IsEmpty() {
		return nil
	}
	if c.Collation, refused = collation.Parse(doc); refused == nil {
		c.Collated = true
	}
	return refused
}

// hint reads an optional hint: an index's name or key pattern.
func hint(a *Args) bson.Value {
	v := a.Value("hint")
	switch {
	case v.IsMissing(), v.Type == bson.TypeString:
	case v.Type == bson.TypeObject:
		if v.Doc().IsEmpty() {
			return bson.Missing
		}
		if err := checkNaturalHint(v.Doc()); err != nil {
			a.Fail(err)
		}
	default:
		a.Fail(mongoerr.New(mongoerr.FailedToParse, "Hint must be a string or an object").Unparsed())
	}
	return v
}

func checkNaturalHint(d bson.Doc) error {
	v := d.Lookup("$natural")
	if v.IsMissing() {
		return nil
	}
	if d.Count() != 1 || !v.IsNumber() || v.AsDouble() != 1 && v.AsDouble() != -1 {
		return mongoerr.New(mongoerr.BadValue, "$natural hint may only be 1 or -1 and must stand alone: %s", d)
	}
	return nil
}

// examined takes over what a query looked at.
func (op *Op) examined(c *query.Call) { note(&op.Running.Stats, c) }

// examinedAlso adds what one statement of several looked at and wrote.
func (op *Op) examinedAlso(c *query.Call) {
	st := &op.Running.Stats
	st.KeysExamined.Add(c.Seen.Keys)
	st.DocsExamined.Add(c.Seen.Docs)
	st.KeysInserted.Add(c.Keys.Inserted)
	st.KeysDeleted.Add(c.Keys.Deleted)
	if c.PlanSummary != "" {
		st.SetPlanSummary(c.PlanSummary)
	}
}

// note has st say what a query looked at and wrote.
func note(st *operation.Stats, c *query.Call) {
	st.KeysExamined.Store(c.Seen.Keys)
	st.DocsExamined.Store(c.Seen.Docs)
	if c.Keys != (indexwrite.KeyCount{}) {
		st.KeysInserted.Store(c.Keys.Inserted)
		st.KeysDeleted.Store(c.Keys.Deleted)
	}
	if c.PlanSummary != "" {
		st.SetPlanSummary(c.PlanSummary)
	}
}

// readable refuses namespaces that cannot be.
func readable(ns namespace.NS) error {
	if ns.Coll == "" {
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid namespace specified '%s'", ns.DB+".")
	}
	return ns.Check()
}

// writable refuses namespaces that no client writes.
func writable(ns namespace.NS) error {
	if err := readable(ns); err != nil {
		return err
	}
	if ns.IsSystem() && ns.Coll != "system.js" && ns.Coll != "system.users" && ns.DB != "admin" && ns.DB != "local" && ns.DB != "config" {
		return mongoerr.New(mongoerr.InvalidNamespace, "cannot write to %s", ns)
	}
	return nil
}
