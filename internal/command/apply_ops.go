package command

import (
	"slices"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
	"github.com/ebbdb/ebb/internal/replset"
	"github.com/ebbdb/ebb/internal/storage"
)

// maxNestedApplyOps is how deep applyOps may be one of the operations of an applyOps.
const maxNestedApplyOps = 10

func applyOpsCommands() []*Command {
	return []*Command{{Name: "applyOps", Needs: Needs{OnCluster: actions(privilege.ApplyOps), Also: needsApplyOps}, Doc: "Does again what entries of an oplog tell of.", WriteConcern: true, HoldsCommands: true, Run: applyOps}}
}

// logged is one operation as an oplog tells of it, read.
type logged struct {
	op     string
	ns     namespace.NS
	o, o2  bson.Doc
	upsert bool
	// replayed says that it has a timestamp, as what an oplog holds has.
	replayed bool
	// uuid is that of the collection; nil where the operation does not say.
	uuid *[16]byte
}

// applyOps does operations again, one after the other; changes of documents alone all at once, if that can be done.
func applyOps(op *Op) (bson.Doc, error) {
	a := op.Args
	array := a.Value("applyOps")
	if array.Type != bson.TypeArray {
		return nil, a.wrongType("applyOps", array.Type, []bson.Type{bson.TypeArray})
	}
	if err := checkApplyOps(a); err != nil {
		return nil, err
	}
	if op.Replica != nil && op.Replica.View().State != replset.Primary { // which checkMember does not ask in local
		return nil, mongoerr.New(mongoerr.NotWritablePrimary, "not primary")
	}
	atomic := !a.Has("allowAtomic") || a.Value("allowAtomic").Truthy()
	ops, err := readLogged(array.Doc())
	if err != nil {
		return nil, err
	}
	if atomic && op.txn == nil {
		if reply := op.applyAtOnce(ops); reply != nil {
			return reply, nil
		}
	}
	return op.applyEach(ops)
}

// checkApplyOps refuses what applyOps knows no more. What it never knew it passes over.
func checkApplyOps(a *Args) error {
	switch {
	case a.Has("preCondition"):
		return mongoerr.New(6711600, "applyOps command no longer supports the 'preCondition' option")
	case a.Has("prepare"):
		return mongoerr.New(mongoerr.BadValue, "applyOps command can't have 'prepare' field")
	case a.Has("partialTxn"):
		return mongoerr.New(31056, "applyOps command can't have 'partialTxn' field.")
	}
	if v := a.Value("alwaysUpsert"); !v.IsNullish() {
		if v.Type != bson.TypeBool {
			return a.wrongType("alwaysUpsert", v.Type, []bson.Type{bson.TypeBool})
		}
		if v.Bool() {
			return mongoerr.New(6711601, "applyOps command no longer supports the 'alwaysUpsert' option")
		}
	}
	if v := a.Value("count"); !v.IsMissing() && v.Type != bson.TypeInt64 && v.Type != bson.TypeInt32 {
		return a.wrongType("count", v.Type, []bson.Type{bson.TypeInt64})
	}
	return nil
}

// readLogged reads all operations before the first is done.
func readLogged(array bson.Doc) (ops []logged, err error) {
	for it := array.Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			return nil, mongoerr.New(mongoerr.TypeMismatch, "BSON field 'applyOps.applyOps.%s' is the wrong type '%s', expected type 'object'", it.Key(), it.Value().Type)
		}
		l, err := readOneLogged(it.Value().Doc())
		if err != nil {
			return nil, err
		}
		ops = append(ops, l)
	}
	return ops, nil
}

func readOneLogged(d bson.Doc) (l logged, err error) {
	kind, ns, o, o2 := d.Lookup("op"), d.Lookup("ns"), d.Lookup("o"), d.Lookup("o2")
	switch {
	case kind.IsMissing():
		return l, mongoerr.New(mongoerr.NoSuchKey, "Missing expected field \"op\"")
	case kind.Type != bson.TypeString:
		return l, mongoerr.New(mongoerr.TypeMismatch, "\"op\" had the wrong type. Expected string, found %s", kind.Type)
	case kind.Str() == "":
		return l, mongoerr.New(mongoerr.IllegalOperation, "\"op\" field value cannot be empty")
	case kind.Str() != "n" && (ns.Type != bson.TypeString || ns.Str() == ""):
		return l, mongoerr.New(mongoerr.IllegalOperation, "applyOps: \"ns\" must be a name, and not %s", ns)
	case len(kind.Str()) != 1 || !isLoggedOp(kind.Str()[0]):
		return l, mongoerr.New(mongoerr.BadValue, "bad op type %s", kind)
	case o.IsMissing():
		return l, mongoerr.New(40414, "BSON field 'OplogEntry.o' is missing but a required field")
	case o.Type != bson.TypeObject:
		return l, mongoerr.New(mongoerr.TypeMismatch, "BSON field 'OplogEntry.o' is the wrong type '%s', expected type 'object'", o.Type)
	case kind.Str() == "u" && o2.Type != bson.TypeObject:
		return l, mongoerr.New(mongoerr.NoSuchKey, "Missing expected field \"o2\"")
	}
	l = logged{op: kind.Str(), o: o.Doc(), upsert: isTrue(d, "b"), replayed: d.Lookup("ts").Type == bson.TypeTimestamp}
	if o2.Type == bson.TypeObject {
		l.o2 = o2.Doc()
		if uuid := l.o2.Lookup("ui"); kind.Str() == "c" && isUUID(uuid) {
			if _, data := uuid.Binary(); len(data) != len(l.uuid) {
				return l, errUUIDLength()
			}
		}
	}
	if uuid := d.Lookup("ui"); isUUID(uuid) {
		_, data := uuid.Binary()
		if len(data) != len(l.uuid) {
			return l, errUUIDLength()
		}
		l.uuid = (*[16]byte)(slices.Clone(data))
	} else if !uuid.IsMissing() {
		return l, mongoerr.New(mongoerr.TypeMismatch, "BSON field 'OplogEntry.ui' is the wrong type '%s', expected type 'binData'", uuid.Type)
	}
	if l.op != "n" {
		l.ns = namespace.Split(string([]byte(ns.Str())))
	}
	return l, nil
}

func errUUIDLength() error {
	return mongoerr.New(mongoerr.InvalidUUID, "uuid must be a 16-byte binary field with UUID (4) subtype")
}

func isLoggedOp(kind byte) bool {
	return kind == 'i' || kind == 'u' || kind == 'd' || kind == 'c' || kind == 'n'
}

// applyAtOnce does changes of documents in one transaction. The reply is nil where that cannot be done, and then nothing is.
func (op *Op) applyAtOnce(ops []logged) bson.Doc {
	for _, l := range ops {
		if l.op == "c" || l.ns.DB == "local" {
			return nil
		}
	}
	txn, err := op.Query.Store.BeginTransaction(op.Ctx, storage.TransactionOptions{Now: op.Now, LockTimeout: -1})
	if err != nil {
		return nil
	}
	ended := false
	defer func() {
		if !ended {
			txn.Rollback()
		}
	}()
	call := op.changeAgain()
	call.Txn = txn
	applied := 0
	for _, l := range ops {
		if l.op == "n" {
			continue
		}
		if found, err := op.applyChange(l, call); err != nil || !found {
			return nil
		}
		applied++
	}
	ended = true
	if err := txn.CommitWithin(op.Ctx, call.Durability, call.Patience, func(error) {}); err != nil {
		return nil
	}
	if n := txn.Number(); n > 0 && op.leftCommit() == nil {
		op.committed = max(op.committed, n)
	}
	return appliedReply(bson.Build(), applied, nil).Doc()
}

// changeAgain is the call of one change. Validators stand above what was logged, unless the command bypasses them, or the one that it is part of does.
func (op *Op) changeAgain() *query.Call {
	call := op.change()
	call.Bypass = op.bypasses()
	return call
}

func (op *Op) bypasses() bool {
	return op.Conn.bypassing || op.Args.SafeBool("bypassDocumentValidation", false)
}

func (op *Op) applyChange(l logged, call *query.Call) (found bool, err error) {
	if err := writable(l.ns); err != nil {
		return false, err
	}
	if err := op.checkBlocked(l.ns.DB); err != nil {
		return false, err
	}
	if err := op.checkLoggedUUID(l.ns, l.uuid); err != nil {
		return false, err
	}
	return op.Query.ApplyChange(op.Ctx, query.LoggedChange{Op: l.op[0], NS: l.ns, Object: l.o, Object2: l.o2, Upsert: l.upsert, Replayed: l.replayed}, call)
}

// checkLoggedUUID wants the collection to be the one that the oplog tells of, if the oplog says which. A time series has the UUID of its
// buckets, which nobody sees and no dump keeps.
func (op *Op) checkLoggedUUID(ns namespace.NS, uuid *[16]byte) error {
	if uuid == nil {
		return nil
	}
	if c := op.Query.Store.Catalog().Collection(ns); c != nil && (c.UUID == *uuid || c.IsTimeSeries()) {
		return nil
	}
	return mongoerr.New(3318200, "Namespace '%s' and UUID '%s' point to different collections", ns, catalog.UUIDText(*uuid))
}

// appliedReply appends how many operations were tried, and which failed; those that results does not have did not.
func appliedReply(b *bson.Builder, applied int, results []bool) *bson.Builder {
	b.Number("applied", int64(applied))
	b.Array("results")
	for i := range applied {
		b.Bool(bson.IndexKey(i), i >= len(results) || results[i])
	}
	return b.End()
}

// applyEach does operations one after the other. One that finds nothing to change does not keep the others from being done; any other
// error does.
func (op *Op) applyEach(ops []logged) (bson.Doc, error) {
	var results []bool
	failed := func(err error) (bson.Doc, error) {
		e := *mongoerr.From(err)
		e.Extra = appliedReply(bson.BuildOn(nil).Fields(e.Extra), len(results), results).Doc()
		return nil, &e
	}
	good := true
	for _, l := range ops {
		found := true
		var err error
		switch l.op {
		case "n":
			continue
		case "c":
			err = op.applyCommand(l)
		default:
			found, err = op.applyChange(l, op.changeAgain())
		}
		results = append(results, found && err == nil)
		if err != nil {
			return failed(err)
		}
		good = good && found
	}
	if !good {
		return failed(mongoerr.New(mongoerr.UnknownError, "applyOps had one or more errors applying ops"))
	}
	return appliedReply(bson.Build(), len(results), results).Doc(), nil
}

// loggedCommands are the commands that an oplog tells of, and that may be done again.
var loggedCommands = map[string]bool{"create": true, "drop": true, "dropDatabase": true, "createIndexes": true, "commitIndexBuild": true,
	"dropIndexes": true, "deleteIndexes": true, "collMod": true, "convertToCapped": true, "renameCollection": true, "applyOps": true}

// applies says whether the command is done again out of an oplog. What was done there stands: servers of other modes and with other
// parameters, which would refuse it to a client, do it as well.
func (op *Op) applies() bool { return op.Conn.applying > 0 }

// applyCommand does a command again. What is as it would make it is no error.
func (op *Op) applyCommand(l logged) error {
	name := l.o.FirstKey()
	switch {
	case l.ns.Coll != "$cmd":
		return mongoerr.New(mongoerr.InvalidNamespace, "invalid namespace for a command: %s", l.ns)
	case name == "startIndexBuild" || name == "abortIndexBuild":
		return nil // commitIndexBuild builds it
	case !loggedCommands[name]:
		return mongoerr.New(mongoerr.BadValue, "applyOps: an oplog does not tell of the command '%s'", name)
	}
	if err := op.checkBlocked(l.ns.DB); err != nil {
		return err
	}
	depth := 1 + op.Conn.applying
	if depth > maxNestedApplyOps {
		return mongoerr.New(mongoerr.Overflow, "applyOps is nested more than %d deep", maxNestedApplyOps)
	}
	conn := NewConn(op.Conn.ID, op.Conn.Remote, op.Conn.Local)
	conn.applying, conn.uuid, conn.patience = depth, op.Conn.uuid, op.commitPatience()
	conn.bypassing = op.bypasses()
	conn.become(op.Conn.user.Load())
	switch done, err := op.byUUID(&l); {
	case err != nil || done:
		return err
	case name == "create":
		conn.appliedUUID = l.uuid
	case name == "renameCollection":
		conn.appliedUUID = l.renamedUUID()
	}
	reply := op.Handle(op.Ctx, conn, Request{Body: loggedCommand(l).Clone()}).Body
	if reply.Lookup("ok").Truthy() {
		return nil
	}
	code := reply.Lookup("code")
	if code.Type != bson.TypeInt32 {
		return mongoerr.New(mongoerr.CommandFailed, "applyOps: %s", reply)
	}
	switch c := mongoerr.Code(code.Int32()); {
	case name == "create" && c == mongoerr.NamespaceExists, c == mongoerr.NamespaceNotFound && name != "createIndexes" && name != "commitIndexBuild",
		c == mongoerr.IndexNotFound, c == mongoerr.IndexAlreadyExists:
		return nil
	default:
		return mongoerr.New(c, "%s", reply.Lookup("errmsg").Str())
	}
}

// renamedUUID is the UUID that a collection has got in another database, nil where the entry does not say.
func (l *logged) renamedUUID() *[16]byte {
	if l.o2 == nil || !isUUID(l.o2.Lookup("ui")) {
		return nil
	}
	_, data := l.o2.Lookup("ui").Binary()
	return (*[16]byte)(slices.Clone(data))
}

// ofRequests are fields that say who asks, and how: an oplog does not tell of them.
var ofRequests = map[string]bool{"$db": true, "lsid": true, "txnNumber": true, "autocommit": true, "startTransaction": true, "stmtId": true, "stmtIds": true,
	"writeConcern": true, "readConcern": true, "maxTimeMS": true}

// loggedCommand is the command that an operation stands for.
func loggedCommand(l logged) bson.Doc {
	b := bson.Build()
	name := l.o.FirstKey()
	switch {
	case name == "createIndexes" && l.o.Lookup("indexes").IsMissing(): // {createIndexes, v, key, name, ...}
		it := l.o.Iter()
		it.Next()
		b.Value(name, it.Value()).Array("indexes").Object("0")
		for it.Next() {
			b.Value(it.Key(), it.Value())
		}
		b.End().End()
	case name == "commitIndexBuild":
		b.Value("createIndexes", l.o.Lookup(name)).Value("indexes", l.o.Lookup("indexes"))
	case name == "dropIndexes" || name == "deleteIndexes":
		b.Value("dropIndexes", l.o.Lookup(name)).Value("index", l.o.Lookup("index"))
		if kept := l.o.Lookup("keepExpired"); !kept.IsMissing() {
			b.Value("keepExpired", kept)
		}
	default:
		for it := l.o.Iter(); it.Next(); {
			if key := it.Key(); key == name || !ofRequests[key] {
				b.Value(key, it.Value())
			}
		}
	}
	db := l.ns.DB
	if name == "renameCollection" {
		db = "admin"
	}
	return b.String("$db", db).Doc()
}
