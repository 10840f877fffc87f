package command

import (
	"math"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// Generic is what any command may carry.
type Generic struct {
	// LSID is the session's document ({id: UUID}), or nil; SessionID is what the session is found by: see session.OwnedID.
	LSID      bson.Doc
	SessionID string
	TxnNumber int64
	// multi says that the command is part of a transaction of several statements, and starts that it is its first.
	multi, starts bool
	// retryable says that it is a retryable write, whose first statement has the number statementID, or each one of statementIDs.
	retryable    bool
	statementID  int32
	statementIDs []int32
	// secondaryOK says that a secondary may answer.
	secondaryOK bool
	// after is the cluster time that a read has to come after, 0 for none.
	after oplog.Timestamp
	// toldTime is the time by which what the client has seen was hidden, in milliseconds since the epoch; 0 where it does not say.
	toldTime int64
	// knows is the cluster time that the client has sent; 0 where it has sent none.
	knows oplog.Timestamp
	// at is the cluster time that it has to be as of, 0 for none; past says that it reads outside of transactions what was committed up to a cluster time.
	at      oplog.Timestamp
	past    bool
	MaxTime time.Duration
	Comment bson.Value
	// help says that the command is to be described, and not done.
	help bool

	ReadConcern  ReadConcern
	WriteConcern WriteConcern
}

// ReadConcern is the level a read asked for.
type ReadConcern struct {
	Level string
	Given bool
}

// genericFields may stand in any command; those not read below have no meaning on a standalone.
var genericFields = []string{"$db", "$clusterTime", "$readPreference", "$audit", "$client", "$configServerState", "$configTime",
	"$topologyTime", "allowImplicitCollectionCreation", "shardVersion", "databaseVersion", "mayBypassWriteBlocking",
	"clientOperationKey", "$queryOptions", "maxTimeMSOpOnly", "$eventualConsistencyTime", "versionContext"}

// readGeneric reads the fields that any command may have.
func (op *Op) readGeneric() error {
	a := op.Args
	if a.everyday {
		a.Value("$db")
		op.readMember(a)
		if a.Value("txnNumber").IsMissing() {
			op.readLSID(a)
		} else {
			op.readSession(a)
		}
		op.MaxTime = op.cluster.maxTime(op.Command)
		if op.Replica != nil && op.defaults.Load() != nil {
			op.readWriteConcern(a)
		}
		return a.Err()
	}
	op.readMember(a)
	a.Ignore(genericFields...)
	op.readSession(a)
	op.readRawData(a)
	op.Comment, op.help = a.Value("comment"), a.truthy("help")
	ms, err := maxTimeMS(a.Value("maxTimeMS"))
	if err != nil {
		a.Fail(err)
	}
	if op.Command.Name != "getMore" { // where it is how long to wait for new documents
		op.MaxTime = ms
	}
	if !a.Has("maxTimeMS") {
		op.MaxTime = op.cluster.maxTime(op.Command)
	}
	op.readAPIVersion(a)
	op.readReadConcern(a)
	op.readWriteConcern(a)
	return a.Err()
}

// readRawData reads whether the command is about what a time series is kept as.
func (op *Op) readRawData(a *Args) {
	switch raw := a.Bool("rawData", false); {
	case !raw:
	case !op.Command.RawData:
		a.Fail(mongoerr.New(mongoerr.InvalidOptions, "Command does not support the rawData option"))
	default:
		a.kept = func(ns namespace.NS) namespace.NS {
			if c := op.Query.Store.Catalog().Collection(ns); c != nil && c.IsTimeSeries() {
				return catalog.BucketsName(ns)
			}
			return ns
		}
	}
}

// readMember reads what clients send with each command to a member of a replica set.
func (op *Op) readMember(a *Args) {
	preference, at := a.Value("$readPreference"), a.Value("$clusterTime")
	if err := a.checkPreference(preference); err != nil {
		a.Fail(err)
		return
	}
	if op.Replica == nil {
		return
	}
	op.secondaryOK = readsSecondaries(preference)
	if err := a.checkClusterTime(at); err != nil {
		a.Fail(err)
		return
	}
	if err := op.hearClusterTime(at); err != nil {
		a.Fail(err)
	}
}

func (op *Op) readLSID(a *Args) (ok bool) {
	if lsid := a.Doc("lsid"); lsid != nil {
		if err := op.readSessionID(lsid); err != nil {
			a.Fail(err)
			return false
		}
	}
	return true
}

func (op *Op) readSession(a *Args) {
	if !op.readLSID(a) {
		return
	}
	if op.Replica != nil {
		op.readTransaction(a)
		return
	}
	txn := a.Value("txnNumber")
	a.Ignore("stmtId", "stmtIds")
	auto, start := a.Value("autocommit"), a.Value("startTransaction")
	if txn.IsNullish() {
		if !auto.IsNullish() || !start.IsNullish() {
			a.Fail(mongoerr.New(mongoerr.InvalidOptions, "'autocommit' and 'startTransaction' need a transaction number"))
		}
		return
	}
	switch {
	case txn.Type != bson.TypeInt64:
		a.Fail(a.wrongType("txnNumber", txn.Type, []bson.Type{bson.TypeInt64}))
	case op.LSID == nil:
		a.Fail(mongoerr.New(mongoerr.InvalidOptions, "Transaction number requires a session ID to also be specified"))
	case !op.Command.takesTxn():
		a.Fail(mongoerr.New(mongoerr.NotARetryableWriteCommand, "It is illegal to run command %s with a txnNumber", op.Name()))
	default:
		a.Fail(mongoerr.New(mongoerr.IllegalOperation, "Transaction numbers are only allowed on a replica set member or mongos"))
	}
}

// readTransaction reads what says that the command is part of a transaction, or a write that may be sent again.
func (op *Op) readTransaction(a *Args) {
	op.readStatementIDs(a)
	txn, numbered := a.typed("txnNumber", bson.TypeInt64)
	auto, hasAuto := a.typed("autocommit", bson.TypeBool)
	start, hasStart := a.typed("startTransaction", bson.TypeBool)
	invalid := func(format string, args ...any) { a.Fail(mongoerr.New(mongoerr.InvalidOptions, format, args...)) }
	switch {
	case a.Err() != nil:
	case hasAuto && !numbered:
		invalid("'autocommit' field requires a transaction number to also be specified")
	case hasStart && !hasAuto:
		invalid("'startTransaction' field requires 'autocommit' field to also be specified")
	case numbered && op.LSID == nil:
		invalid("Transaction number requires a session ID to also be specified")
	case hasAuto && auto.Bool():
		invalid("Specifying autocommit=true is not allowed.")
	case hasStart && !start.Bool():
		invalid("Specifying startTransaction=false is not allowed.")
	case numbered && txn.Int64() < 0:
		invalid("Transaction number cannot be negative")
	case numbered && !hasAuto && !op.Command.isRetryable():
		a.Fail(mongoerr.New(mongoerr.NotARetryableWriteCommand, "txnNumber may only be provided for multi-document transactions and retryable write commands. autocommit:false was not provided, and %s is not a retryable write command.", op.Name()))
	case numbered:
		op.TxnNumber, op.multi, op.starts, op.retryable = txn.Int64(), hasAuto, hasStart, !hasAuto
	}
}

func (op *Op) readSessionID(lsid bson.Doc) (err error) {
	op.LSID = lsid
	if uuid := plainSessionID(lsid); uuid != nil {
		var room [16 + session.UIDBytes]byte
		op.SessionID = op.Conn.sessions.ofBytes(append(append(room[:0], uuid...), op.ownUID()...))
		return nil
	}
	if op.SessionID, err = op.sessionID("OperationSessionInfo.lsid", lsid); err == nil && !lsid.Lookup("txnUUID").IsNullish() {
		err = op.refuseInternal()
	}
	return err
}

// refuseInternal refuses a session within a session. Sharded clusters have them for transactions of their own, which there are none of here.
func (op *Op) refuseInternal() error {
	if auto := op.Args.Value("autocommit"); !op.Authorization && (auto.Type != bson.TypeBool || auto.Bool()) {
		return mongoerr.New(mongoerr.InvalidOptions, "Internal sessions are not supported outside of transactions")
	}
	return mongoerr.New(mongoerr.InvalidOptions, "Internal sessions are only allowed for internal clients")
}

// ownUID is what the ids of sessions of whoever runs the command have behind their UUIDs.
func (op *Op) ownUID() string {
	if !op.Authorization {
		return ""
	}
	return op.Conn.uid
}

// sessionID is the id of a session that somebody names: one of his own, but where he may act for others.
func (op *Op) sessionID(path string, lsid bson.Doc) (string, error) {
	uuid, err := sessionUUID(path, lsid)
	if err != nil {
		return "", err
	}
	own := uuid + op.ownUID()
	uid := lsid.Lookup("uid")
	if uid.Type != bson.TypeBinary || !op.Authorization {
		return own, nil
	}
	_, digest := uid.Binary()
	id := session.OwnedID(uuid, digest)
	if id != own && !op.May(privilege.Cluster(), privilege.Impersonate) {
		return "", mongoerr.New(mongoerr.Unauthorized, "Unauthorized to set user digest in LogicalSessionId")
	}
	return id, nil
}

// digest reads an optional digest of a user; nil when absent.
func (a *Args) digest(key string) []byte {
	v, ok := a.typed(key, bson.TypeBinary)
	if !ok {
		return nil
	}
	subtype, data := v.Binary()
	switch {
	case subtype != 0:
		a.Fail(mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s.%s' is the wrong binData type '%s', expected type 'general'", a.path, key, subtypeName(subtype)))
	case len(data) != session.UIDBytes:
		a.Fail(mongoerr.New(mongoerr.UnsupportedFormat, "Unsupported SHA256Block hash length: %d", len(data)))
	}
	return data
}

// takesTxn says whether a replica set would take a txnNumber on the command.
func (c *Command) takesTxn() bool {
	switch c.Name {
	case "insert", "update", "delete", "findAndModify", "find", "aggregate", "count", "distinct", "getMore", "bulkWrite",
		"commitTransaction", "abortTransaction", "killCursors", "create", "createIndexes":
		return true
	}
	return false
}

// sessionUUID takes the UUID out of {id: UUID(…)}; path is what errors call the document.
func sessionUUID(path string, lsid bson.Doc) (string, error) {
	if id := plainSessionID(lsid); id != nil {
		return string(id), nil
	}
	a := NewArgs(path, lsid)
	id := a.Value("id")
	a.typed("txnNumber", bson.TypeInt64)
	a.typed("txnUUID", bson.TypeBinary)
	a.digest("uid")
	if err := a.Done(); err != nil {
		return "", err
	}
	if id.IsNullish() {
		return "", mongoerr.New(40414, "BSON field '%s.id' is missing but a required field", path)
	}
	if id.Type != bson.TypeBinary {
		return "", a.wrongType("id", id.Type, []bson.Type{bson.TypeBinary})
	}
	subtype, data := id.Binary()
	if subtype != 4 {
		return "", mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s.id' is the wrong binData type '%s', expected type 'UUID'", path, subtypeName(subtype))
	}
	if len(data) != 16 {
		return "", mongoerr.New(mongoerr.InvalidUUID, "uuid must be a 16-byte binary field with UUID (4) subtype")
	}
	if a.Has("txnNumber") && !a.Has("txnUUID") {
		return "", mongoerr.New(mongoerr.InvalidOptions, "Cannot specify txnNumber in lsid without specifying txnUUID")
	}
	return string(data), nil
}

// plainSessionID is the id's bytes in what nearly all clients send, nothing but a good id; nil otherwise.
func plainSessionID(lsid bson.Doc) []byte {
	it := lsid.Iter()
	if !it.Next() || it.Key() != "id" || it.Value().Type != bson.TypeBinary {
		return nil
	}
	subtype, data := it.Value().Binary()
	if subtype != 4 || len(data) != 16 || it.Next() {
		return nil
	}
	return data
}

// subtypeName is what MongoDB calls a kind of binary data.
func subtypeName(subtype byte) string {
	names := []string{"general", "function", "byte", "old UUID", "UUID", "MD5", "encrypt", "column", "sensitive", "vector"}
	if int(subtype) < len(names) {
		return names[subtype]
	}
	return "Custom"
}

// maxTimeMS reads a time limit: a whole number of milliseconds that fits an int.
func maxTimeMS(v bson.Value) (time.Duration, error) {
	if v.IsNullish() {
		return 0, nil
	}
	if !v.IsNumber() {
		return 0, mongoerr.New(mongoerr.TypeMismatch, "maxTimeMS must be a number, but got %s", v.Type)
	}
	n, exact := v.AsInt64()
	switch {
	case !exact:
		return 0, mongoerr.New(mongoerr.FailedToParse, "maxTimeMS: Expected an integer, but found a number that is not one: %s", v)
	case n < 0 || n > math.MaxInt32:
		return 0, mongoerr.New(mongoerr.BadValue, "%s value for maxTimeMS is out of range [0, %d]", v, math.MaxInt32)
	}
	return time.Duration(n) * time.Millisecond, nil
}

func (op *Op) readReadConcern(a *Args) {
	v := a.Value("readConcern")
	if v.IsNullish() {
		return
	}
	if v.Type != bson.TypeObject {
		a.Fail(a.wrongType("readConcern", v.Type, []bson.Type{bson.TypeObject}))
		return
	}
	r := NewArgs("readConcern", v.Doc())
	level, given := r.String("level")
	r.provenance()
	after, at := r.Value("afterClusterTime"), r.Value("atClusterTime")
	r.Ignore("$_waitLastStableRecoveryTimestamp", "afterOpTime")
	if err := r.Done(); err != nil {
		a.Fail(err)
		return
	}
	op.ReadConcern = ReadConcern{Level: strings.Clone(level), Given: given}
	if err := checkClusterTimes(r, after, at); err != nil {
		a.Fail(err)
		return
	}
	switch {
	case given && !knownLevel(level):
		a.Fail(mongoerr.New(mongoerr.BadValue, "Enumeration value '%s' for field 'readConcern.level' is not a valid value.", level))
	case op.multi: // checkStatement looks at it
		op.readClusterTimes(a, level, after, at)
	case !op.Command.takesLevel(level):
		shown := v.Doc()
		if shown.Lookup("provenance").IsMissing() {
			shown = bson.Build().Fields(shown).String("provenance", "clientSupplied").Doc()
		}
		a.Fail(mongoerr.New(mongoerr.InvalidOptions, "Command %s does not support { readConcern: %s } :: caused by :: read concern not supported", op.Command.Name, shown))
	case op.Replica != nil:
		op.readClusterTimes(a, level, after, at)
		op.past = level == "snapshot" && op.Command.readsPast()
	case (level == "snapshot" || level == "linearizable") && op.Command.Name != "aggregate": // where the pipeline is looked at first
		a.Fail(query.NeedsReplicaSet(level))
	case !at.IsMissing() && level != "snapshot":
		a.Fail(mongoerr.New(mongoerr.InvalidOptions, "atClusterTime field can be set only if level is equal to snapshot"))
	case !after.IsMissing():
		a.Fail(mongoerr.New(mongoerr.IllegalOperation, "Cannot specify afterClusterTime readConcern without replication enabled"))
	}
}

// checkClusterTimes refuses cluster times that are none.
func checkClusterTimes(r *Args, after, at bson.Value) error {
	for _, t := range []struct {
		name string
		v    bson.Value
	}{{"afterClusterTime", after}, {"atClusterTime", at}} {
		if t.v.IsMissing() {
			continue
		}
		if t.v.Type != bson.TypeTimestamp {
			return r.wrongType(t.name, t.v.Type, []bson.Type{bson.TypeTimestamp})
		}
		if seconds, counter := t.v.Timestamp(); seconds == 0 && (counter == 0 || t.name == "atClusterTime") {
			return mongoerr.New(mongoerr.InvalidOptions, "%s cannot be a null timestamp", t.name)
		}
	}
	return nil
}

// readsPast says whether the command has the level "snapshot" outside of transactions, too.
func (c *Command) readsPast() bool {
	switch c.Name {
	case "aggregate", "dbHash", "distinct", "explain", "find":
		return true
	}
	return false
}

// takesLevel says whether the command takes the level outside of transactions. To getMore drivers send their session's; the cursor has its own.
func (c *Command) takesLevel(level string) bool {
	switch {
	case level == "" || level == "local":
		return true
	case c.Name == "mapReduce":
		return level == "available"
	case level == "snapshot":
		return c.readsPast() || c.Name == "getMore"
	}
	return c.ReadConcern
}

func knownLevel(level string) bool {
	switch level {
	case "local", "majority", "linearizable", "available", "snapshot":
		return true
	}
	return false
}

// provenance reads where a concern comes from, which changes nothing here.
func (a *Args) provenance() {
	a.enum("provenance", "clientSupplied", "implicitDefault", "customDefault", "getLastErrorDefaults", "internalWriteDefault")
}
