package changestream

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/resumetoken"
)

// Entry is what of an entry of the oplog counts for all of its operations.
type Entry struct {
	Time uint64
	Wall bson.Value
	// Transaction says that the operations are those of a transaction, or written together; Session and TxnNumber are missing where it had
	// none.
	Transaction        bool
	Session, TxnNumber bson.Value
}

// Head is the kind of an entry and what it is about: the first that is read of it.
func Head(entry bson.Doc) (op, ns string) {
	for it := entry.Iter(); it.Next(); {
		switch it.Key() {
		case "op":
			op = it.Value().Str()
		case "ns":
			return op, it.Value().Str()
		}
	}
	return op, ns
}

// ApplyOps are the operations of an entry that has several.
func ApplyOps(entry bson.Doc) (ops bson.Doc, last bool, ok bool) {
	o := entry.Lookup("o")
	if o.Type != bson.TypeObject || o.Doc().FirstKey() != "applyOps" {
		return nil, false, false
	}
	return o.Doc().Index(0).Doc(), !o.Doc().Lookup("partialTxn").Truthy(), true
}

// EntryOf reads what all operations of an entry have in common.
func EntryOf(entry bson.Doc, transaction bool) Entry {
	e := Entry{Wall: entry.Lookup("wall"), Transaction: transaction}
	seconds, counter := entry.Lookup("ts").Timestamp()
	e.Time = uint64(seconds)<<32 | uint64(counter)
	if transaction {
		e.Session, e.TxnNumber = entry.Lookup("lsid"), entry.Lookup("txnNumber")
	}
	return e
}

// Event is an operation that a stream is about.
type Event struct {
	Token resumetoken.Token
	// Type is the operationType, and NS what it happened to.
	Type string
	NS   namespace.NS
	// Key is the documentKey, missing for what happens to no document.
	Key bson.Value
	// Invalidates says that the stream ends with the event.
	Invalidates bool

	spec        *Spec
	entry       *Entry
	op          operation
	full        bson.Value // the document that the entry has itself
	to          bson.Value
	diff        bson.Doc // of an update
	description bson.Value
	before      bson.Value // the state before a change of a definition
	nsType      string
}

// The types of events.
const (
	Insert       = "insert"
	Update       = "update"
	Replace      = "replace"
	Delete       = "delete"
	drop         = "drop"
	rename       = "rename"
	dropDatabase = "dropDatabase"
	invalidate   = "invalidate"
	create       = "create"
	createIndex  = "createIndexes"
	dropIndex    = "dropIndexes"
	modify       = "modify"
)

// operation is one of an entry: what of it events are made of.
type operation struct {
	uuid, o, o2, expiration bson.Value
	// series says that it is about a time series.
	series bool
}

// Read makes e the event of one operation of an entry, the index-th of it, in the memory that e has. It is not ok where the stream is not
// about it.
func (e *Event) Read(s *Spec, entry *Entry, op bson.Doc, index int) (ok bool) {
	token := e.Token
	*e = Event{spec: s, entry: entry, Token: token}
	if !e.read(op) {
		return false
	}
	e.Token.SetEvent(entry.Time, index, e.collection(), e.identifier())
	return true
}

// read reads an operation in one go: there are many of them.
func (e *Event) read(op bson.Doc) bool {
	var kind, ns string
	for it := op.Iter(); it.Next(); {
		switch it.Key() {
		case "op":
			kind = it.Value().Str()
		case "ns":
			ns = it.Value().Str()
			if isOfDocument(kind) && !e.spec.hasText(ns) {
				return false
			}
		case "ui":
			e.op.uuid = it.Value()
		case "o":
			e.op.o = it.Value()
		case "o2":
			e.op.o2 = it.Value()
		case "expiration":
			e.op.expiration = it.Value()
		case "isTimeseries":
			e.op.series = true
		}
	}
	switch {
	case isOfDocument(kind):
		if e.op.series || !e.spec.hasText(ns) { // nobody is told of measurements
			return false
		}
		e.NS = namespace.Split(ns)
		e.ofDocument(kind)
		return true
	case kind == "c":
		db, found := strings.CutSuffix(ns, ".$cmd")
		return found && e.ofCommand(db, e.op.o.Doc())
	}
	return kind == "n" && e.ofNote(ns)
}

func isOfDocument(kind string) bool { return kind == "i" || kind == "u" || kind == "d" }

// collection is the UUID of the collection that the event is about, nil where it is about none.
func (e *Event) collection() *[16]byte {
	if e.op.uuid.Type != bson.TypeBinary {
		return nil
	}
	_, data := e.op.uuid.Binary()
	if len(data) != 16 {
		return nil
	}
	return (*[16]byte)(data)
}

// identifier tells the event apart from others of its time.
func (e *Event) identifier() resumetoken.Identifier {
	if !e.Key.IsMissing() {
		return resumetoken.Identifier{Type: e.Type, Name: "documentKey", Of: e.Key}
	}
	return resumetoken.Identifier{Type: e.Type, Name: "operationDescription", Of: e.description}
}

func (e *Event) ofDocument(kind string) {
	o := e.op.o
	switch kind {
	case "i":
		e.Type, e.full, e.Key = Insert, o, e.op.o2
	case "d":
		e.Type, e.Key = Delete, o
	default:
		e.Type, e.full, e.Key = Replace, o, e.op.o2
		if diff := o.Doc().Lookup("diff"); o.Doc().FirstKey() == "$v" && diff.Type == bson.TypeObject {
			e.Type, e.full, e.diff = Update, bson.Missing, diff.Doc()
		}
	}
}

// ofCommand reads a change of definitions.
func (e *Event) ofCommand(db string, o bson.Doc) bool {
	name := o.FirstKey()
	if name == "renameCollection" { // which may lead from one database to another
		return e.ofRename(o)
	}
	if !e.spec.inDB(db) {
		return false
	}
	target := o.Index(0)
	e.NS = namespace.NS{DB: db}
	if target.Type == bson.TypeString {
		e.NS.Coll = strings.Clone(target.Str())
	}
	s := e.spec
	if e.op.series {
		return s.Expanded && !s.Single() && s.hasColl(e.NS.Coll) && e.ofSeries(name, o)
	}
	if e.op.uuid.IsMissing() && (name == "create" || name == "drop" || name == "collMod") {
		return s.Expanded && !s.Single() && s.hasColl(e.NS.Coll) && e.ofView(name, o)
	}
	switch name {
	case "drop":
		e.Type, e.Invalidates = drop, s.Single()
	case "dropDatabase":
		e.Type, e.Invalidates = dropDatabase, s.NS.DB != ""
		return !s.Single()
	default:
		if !s.Expanded || !e.ofDefinition(name, o) {
			return false
		}
	}
	return s.hasColl(e.NS.Coll)
}

func (e *Event) ofRename(o bson.Doc) bool {
	from, to := namespace.Split(strings.Clone(o.Index(0).Str())), namespace.Split(strings.Clone(o.Lookup("to").Str()))
	if !e.spec.hasNS(from) && !e.spec.hasNS(to) {
		return false
	}
	e.Type, e.NS, e.Invalidates = rename, from, e.spec.Single()
	e.to = bson.Build().String("db", to.DB).String("coll", to.Coll).Doc().Value()
	b := bson.Build().Value("to", e.to)
	for it := o.Iter(); it.Next(); {
		switch it.Key() {
		case "renameCollection", "stayTemp", "to":
		default:
			b.Value(it.Key(), it.Value())
		}
	}
	e.description = b.Doc().Value()
	return true
}

// ofDefinition reads what only those hear of who ask for expanded events.
func (e *Event) ofDefinition(name string, o bson.Doc) bool {
	o2 := e.op.o2
	switch name {
	case "create":
		e.Type, e.description, e.nsType = create, behindFirst(o), "collection"
	case "createIndexes":
		e.Type, e.description = createIndex, indexes(behindFirst(o))
	case "dropIndexes":
		e.Type, e.description = dropIndex, indexes(o2)
	case "collMod", "convertToCapped":
		e.Type, e.description = modify, behindFirst(o)
		if name == "convertToCapped" { // told as what it changes
			e.description = bson.Build().Bool("capped", true).Value("cappedSize", o.Lookup("size")).Doc().Value()
		}
		b := bson.Build()
		if o2.Type == bson.TypeObject {
			if was := o2.Doc().Lookup("collectionOptions_old"); !was.IsMissing() {
				b.Value("collectionOptions", was)
			}
			if was := o2.Doc().Lookup("indexOptions_old"); !was.IsMissing() {
				b.Value("indexOptions", was)
			}
		}
		e.before = b.Doc().Value()
	default:
		return false
	}
	return true
}

// ofSeries reads what happens to a time series, which is told as a view is: it is one in the eyes of MongoDB's clients.
func (e *Event) ofSeries(name string, o bson.Doc) bool {
	if name == "drop" {
		e.Type = drop
		return true
	}
	if !e.ofDefinition(name, o) {
		return false
	}
	if name == "create" {
		e.nsType = "timeseries"
	}
	return true
}

func (e *Event) ofView(name string, o bson.Doc) bool {
	switch name {
	case "create":
		e.Type, e.description, e.nsType = create, behindFirst(o), "view"
	case "collMod":
		e.Type, e.description = modify, e.wholeView(o)
	default:
		e.Type = drop
	}
	return true
}

// wholeView is a view as a collMod leaves it. The entry does not tell of a collation, which stays.
func (e *Event) wholeView(o bson.Doc) bson.Value {
	b := bson.BuildOn(nil).Fields(behindFirst(o).Doc())
	if o2 := e.op.o2; o2.Type == bson.TypeObject {
		if was := o2.Doc().Lookup("collectionOptions_old"); was.Type == bson.TypeObject && !was.Doc().Lookup("collation").IsMissing() {
			b.Value("collation", was.Doc().Lookup("collation"))
		}
	}
	return b.Doc().Value()
}

// behindFirst is a document without its first field.
func behindFirst(d bson.Doc) bson.Value {
	b, first := bson.Build(), true
	for it := d.Iter(); it.Next(); first = false {
		if !first {
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Doc().Value()
}

func indexes(spec bson.Value) bson.Value {
	if spec.IsMissing() {
		return bson.Build().Array("indexes").End().Doc().Value()
	}
	return bson.Build().Array("indexes").Value("0", spec).End().Doc().Value()
}
