package command

import (
	"slices"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/cursor"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// asker is whoever runs the command, as one who wants to run a pipeline.
func (op *Op) asker() *pipeline.Asker {
	return &pipeline.Asker{May: op.May, Bypass: op.Args.peek("bypassDocumentValidation").Truthy(), Is: func(name, db string) bool {
		u := op.user()
		return u != nil && u.Name.Name == name && u.DB == db
	}}
}

// permits is nil, or the refusal of the command, as the asker may run the pipeline or not.
func (op *Op) permits(asker *pipeline.Asker, ns namespace.NS, stages bson.Value) error {
	if stages.Type != bson.TypeArray {
		stages = bson.EmptyArr
	}
	ok, err := op.stages.Permits(asker, ns, stages)
	if err != nil {
		return err
	}
	return op.permitted(ok)
}

func needsAggregate(op *Op) error {
	ns := namespace.NS{DB: op.DB}
	if _, v := op.Args.first(); v.Type == bson.TypeString {
		ns.Coll = v.Str()
	}
	return op.permits(op.asker(), ns, op.Args.peek("pipeline"))
}

// needsExplain is what the explained command needs.
func needsExplain(op *Op) error {
	v := op.Args.peek(op.Name())
	if v.Type != bson.TypeObject {
		return nil
	}
	inner := *op
	if inner.Command = op.table[v.Doc().FirstKey()]; inner.Command == nil || inner.Command.Explain == nil {
		return nil // and refused later
	}
	inner.Args, inner.Sequences = NewArgs(inner.Command.Name, v.Doc()), nil
	return op.permitted(inner.permit() == nil)
}

func needsFileMD5(op *Op) error {
	root := op.text("root")
	if op.Args.peek("root").IsNullish() {
		root = "fs"
	}
	return op.permitted(op.mayOn(namespace.NS{DB: op.DB, Coll: root + ".chunks"}, privilege.Find))
}

func needsDataSize(op *Op) error {
	return op.permitted(op.mayOn(namespace.Split(op.text(op.Name())), privilege.Find))
}

// needsListCollections lets those who may not list collections list the names of those on which they may do something.
func needsListCollections(op *Op) error {
	if op.May(privilege.Database(op.DB), privilege.ListCollections) {
		return nil
	}
	return op.permitted(op.Args.peek("authorizedCollections").Truthy() && op.Args.peek("nameOnly").Truthy() && op.mayAnything(op.DB))
}

// mayAnything says whether the user may do something in the database.
func (op *Op) mayAnything(db string) bool {
	u := op.user()
	return !op.Authorization || u != nil && u.Grants.AllowsIn(db)
}

// mayAnythingOn says whether the user may do something on the collection.
func (op *Op) mayAnythingOn(ns namespace.NS) bool {
	u := op.user()
	return !op.Authorization || u != nil && u.Grants.AllowsSomething(privilege.Namespace(ns))
}

// needsProfile lets those who may read what was profiled see how it is done.
func needsProfile(op *Op) error {
	if op.May(privilege.Database(op.DB), privilege.EnableProfiler) {
		return nil
	}
	asks := false
	if level, exact := op.Args.peek(op.Name()).AsInt64(); exact && level == -1 {
		asks = op.Args.peek("slowms").IsMissing() && op.Args.peek("sampleRate").IsMissing() && op.Args.peek("filter").IsMissing()
	}
	return op.permitted(asks && op.mayOn(namespace.NS{DB: op.DB, Coll: systemProfile}, privilege.Find))
}

func needsCurrentOperations(op *Op) error {
	return op.permitted(op.Args.peek("$ownOps").Truthy() || op.May(privilege.Cluster(), privilege.Inprog))
}

// needsKillOp lets those who may not stop operations stop their own.
func needsKillOp(op *Op) error {
	if op.May(privilege.Cluster(), privilege.Killop) {
		return nil
	}
	if v := op.Args.peek("op"); v.Type == bson.TypeString && op.Beside != nil {
		return op.permitted(op.ownsBeside(v.Str()))
	}
	id, exact := op.Args.peek("op").AsInt64()
	own := false
	op.Ops.Each(func(o *operation.Operation) { own = own || exact && o.ID == id && op.isOwn(o.Client) })
	return op.permitted(own)
}

// isOwn says whether the client has logged in as the user who runs the command.
func (op *Op) isOwn(c *operation.Client) bool {
	u := op.user()
	return u != nil && c != nil && c.User == u.Name
}

// needsKillCursors lets those who may not end any cursor end their own.
func needsKillCursors(op *Op) error {
	array := op.Args.peek("cursors")
	if array.Type != bson.TypeArray || op.May(privilege.Cluster(), privilege.KillAnyCursor) {
		return nil
	}
	for it := array.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeInt64 {
			continue
		}
		owner, name, found := op.Cursors.Owner(it.Value().Int64())
		if !found || owner == op.user() || owner != nil && op.user() != nil && owner.Name == op.user().Name {
			continue
		}
		on := privilege.Namespace(namespace.Split(name))
		if ns := namespace.Split(name); ns.Coll == "$cmd.listCollections" {
			on = privilege.Database(ns.DB)
		}
		if !op.May(on, privilege.KillAnyCursor) {
			return op.refusal()
		}
	}
	return nil
}

// mayContinue refuses a getMore on the cursor of another, or on one whose command its user may not run any more.
func (op *Op) mayContinue(c *cursor.Cursor) error {
	u := op.user()
	switch {
	case u == c.User:
		return nil
	case u == nil || c.User == nil || u.Name != c.User.Name:
		return mongoerr.New(mongoerr.Unauthorized, "cursor id %d was not created by the authenticated user", c.ID)
	}
	inner := *op
	if inner.Command = op.table[c.Command.FirstKey()]; inner.Command == nil {
		return nil
	}
	inner.Args, inner.Sequences = NewArgs(inner.Command.Name, c.Command), nil
	inner.DB = c.Command.Lookup("$db").Str()
	if inner.permit() != nil {
		return mongoerr.New(mongoerr.Unauthorized, "not authorized for getMore with cursor id %d", c.ID)
	}
	return nil
}

func needsValidateMetadata(op *Op) error {
	on := privilege.AnyNormal()
	if db := op.text("db"); db != "" {
		on = privilege.Database(db)
	}
	return op.permitted(op.May(on, privilege.Validate))
}

// needsExpiry is what ebbTTL needs. Why a document expires tells of the document, and samples are _ids, so that one has to be allowed to find it. A
// forecast as if there were a TTL where there is none tells which dates are in that field.
func needsExpiry(op *Op) error {
	ok := op.mayNamed(privilege.ReadExpiry)
	for _, question := range [...]string{"explain", "explainMany", "never"} {
		if !op.Args.peek(question).IsMissing() {
			ok = ok && op.mayNamed(privilege.Find)
		}
	}
	if v := op.Args.peek("forecast"); v.Type == bson.TypeObject {
		if asIf := v.Doc().Lookup("asIf"); asIf.Type == bson.TypeObject && op.looksAtOtherDates(asIf.Doc()) {
			ok = ok && op.mayNamed(privilege.Find)
		}
	}
	if _, v := op.Args.first(); op.DB == "admin" && v.Type != bson.TypeString && v.Type != bson.TypeSymbol { // which is about all there is
		ok = op.May(privilege.AnyNormal(), privilege.ReadExpiry)
	}
	return op.permitted(ok)
}

// looksAtOtherDates says whether a forecast that supposes a TTL reads dates by which nothing expires.
func (op *Op) looksAtOtherDates(asIf bson.Doc) bool {
	if !asIf.Lookup("key").IsMissing() {
		return true
	}
	name := asIf.Lookup("index")
	if name.Type != bson.TypeString {
		return false
	}
	coll := op.Query.Store.Catalog().Collection(namespace.NS{DB: op.DB, Coll: op.text(op.Name())})
	return coll == nil || !slices.ContainsFunc(coll.Indexes, func(d *index.Definition) bool { return d.TTL && d.Name == name.Str() })
}
