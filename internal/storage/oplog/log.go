package oplog

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/namespace"
)

// Form is how an update is written.
type Form uint8

const (
	// Delta: what has changed.
	Delta Form = iota
	// Shorter: what has changed, or the whole document where that is shorter.
	Shorter
	// Whole: the whole document, which was put in the place of another.
	Whole
)

// Log collects what one transaction does, in its order. The zero Log is empty.
type Log struct {
	// ops are documents {op, ns, ui, o, o2}, one behind the other, each under its number: as the elements of an array.
	ops   []byte
	kept  *[]byte // where ops lie while nobody uses them; nil where they are new
	ends  []int
	build bson.Builder
	// series is the time series that the next operation is about; nil where it is about none.
	series *catalog.TimeSeries
	// statement is one more than the number of the statement of a retryable write that what follows is of, 0 for none.
	statement int32
	image     Image
}

// Image is which form of a changed document is kept for a client that sends its findAndModify again.
type Image string

// The forms of a document.
const (
	NoImage   Image = ""
	PreImage  Image = "preImage"
	PostImage Image = "postImage"
)

// Statement says which statement of a retryable write what follows is of, and which image of it is kept.
func (l *Log) Statement(number int32, image Image) { l.statement, l.image = number+1, image }

// Image is what Statement said.
func (l *Log) Image() Image { return l.image }

// Len is how many operations there are.
func (l *Log) Len() int { return len(l.ends) }

// Size is how many bytes they take.
func (l *Log) Size() int { return len(l.ops) }

// buffers are for the operations of transactions to come: most have few, and a load has many in each.
var buffers sync.Pool

const (
	// opOverhead is about what an operation takes beside its document.
	opOverhead = 192
	// maxBuffer is how large a buffer may be that is kept.
	maxBuffer = 4 << 20
)

// Release ends the use of what was collected.
func (l *Log) Release() {
	if c := cap(l.ops); c > 0 && c <= maxBuffer {
		if l.kept == nil {
			l.kept = new([]byte)
		}
		*l.kept = l.ops[:0]
		buffers.Put(l.kept)
	}
	l.ops, l.kept, l.ends = nil, nil, nil
}

// room makes room for an operation with so many bytes of documents.
func (l *Log) room(n int) {
	if l.ops == nil {
		if b, ok := buffers.Get().(*[]byte); ok {
			l.ops, l.kept = *b, b
		}
	}
	l.ops = slices.Grow(l.ops, n+opOverhead)
}

// Series says which time series the operations that follow are about; nil: none.
func (l *Log) Series(series *catalog.TimeSeries) { l.series = series }

// begin starts an operation on a collection.
func (l *Log) begin(op string, ns string, uuid *[16]byte) *bson.Builder {
	number := bson.IndexKey(len(l.ends))
	l.ops = append(append(append(l.ops, byte(bson.TypeObject)), number...), 0)
	b := &l.build
	b.Reset(l.ops)
	b.String("op", op).String("ns", ns)
	if uuid != nil {
		b.Binary("ui", 4, uuid[:])
	}
	if l.series != nil {
		b.Bool("isTimeseries", true)
	}
	return b
}

func (l *Log) end(b *bson.Builder) {
	l.ops = b.Bytes()
	b.Replace(nil)
	l.ends = append(l.ends, len(l.ops))
}

// Insert is a new document.
func (l *Log) Insert(ns namespace.NS, uuid [16]byte, doc bson.Doc) {
	l.room(len(doc))
	l.endStatement(l.begin("i", ns.String(), &uuid).Document("o", doc).Object("o2").Value("_id", doc.Lookup("_id")).End())
}

// Telling is how an update is told of.
type Telling struct {
	Form Form
	// Aim is what the update aimed at; nil where that is not known.
	Aim *fieldpath.Aim
}

// Update is doc in the place of old.
func (l *Log) Update(ns namespace.NS, uuid [16]byte, old, doc bson.Doc, how Telling) {
	form := how.Form
	l.room(len(doc))
	b := l.begin("u", ns.String(), &uuid)
	if form != Whole {
		at := len(b.Buffer())
		b.Object("o").Int32("$v", 2).Object("diff")
		appendDiff(b, old, doc, how.Aim)
		b.End().End()
		if form == Shorter && len(b.Buffer())-at > len(doc) {
			form = Whole
			b.Replace(b.Buffer()[:at])
		}
	}
	if form == Whole {
		b.Document("o", doc)
	}
	if l.series != nil { // whose meta value may be another one now
		doc = old
	}
	l.endImage(l.key(b.Object("o2"), doc).End())
}

// Delete is the end of a document.
func (l *Log) Delete(ns namespace.NS, uuid [16]byte, doc bson.Doc) {
	l.room(0)
	l.endImage(l.key(l.begin("d", ns.String(), &uuid).Object("o"), doc).End())
}

// key appends by what a document is found again: its _id. Measurements may share one, and no index has it, so their time and meta value
// stand beside it.
func (l *Log) key(b *bson.Builder, doc bson.Doc) *bson.Builder {
	b.Value("_id", doc.Lookup("_id"))
	if t := l.series; t != nil {
		b.Value(t.TimeField, doc.Lookup(t.TimeField))
		if t.HasOwnMeta() {
			b.Value(t.MetaField, doc.Lookup(t.MetaField))
		}
	}
	return b
}

// endStatement is end for what a statement wants.
func (l *Log) endStatement(b *bson.Builder) {
	if l.statement > 0 {
		b.Int32("stmtId", l.statement-1)
	}
	l.end(b)
}

// endImage is endStatement for what an image is kept of.
func (l *Log) endImage(b *bson.Builder) {
	if l.image != NoImage {
		b.String("needsRetryImage", string(l.image))
	}
	l.endStatement(b)
}

// Expiration is by what the time of a document was over.
type Expiration struct {
	// Index is the name of the TTL index, "" for a collection's own TTL.
	Index, Field string
	// Deadline is in milliseconds since the epoch.
	Deadline int64
	Rule     string
}

// Expire is the end of a document because its time was over.
func (l *Log) Expire(ns namespace.NS, uuid [16]byte, doc bson.Doc, by Expiration) {
	l.room(len(by.Index) + len(by.Field) + len(by.Rule))
	b := l.key(l.begin("d", ns.String(), &uuid).Object("o"), doc).End().Object("expiration")
	if by.Index != "" {
		b.String("index", by.Index)
	}
	l.end(b.String("field", by.Field).Date("deadline", by.Deadline).String("rule", by.Rule).End())
}

// Command is a change of the catalogue, or of all of a database's documents; uuid and o2 are nil where there is none.
func (l *Log) Command(db string, uuid *[16]byte, o, o2 bson.Doc) {
	l.room(len(o) + len(o2))
	b := l.begin("c", db+".$cmd", uuid).Document("o", o)
	if o2 != nil {
		b.Document("o2", o2)
	}
	l.end(b)
}

// NoteOf is something that happened to a collection, and to no document of which the oplog tells.
func (l *Log) NoteOf(ns namespace.NS, uuid [16]byte, o bson.Doc) {
	l.room(len(o))
	l.end(l.begin("n", ns.String(), &uuid).Document("o", o))
}

// Note is something that happened to no document.
func (l *Log) Note(o bson.Doc) {
	l.room(len(o))
	l.end(l.begin("n", "", nil).Document("o", o))
}

// start is where operation i begins, with its number.
func (l *Log) start(i int) int {
	if i == 0 {
		return 0
	}
	return l.ends[i-1]
}

func (l *Log) op(i int) bson.Doc {
	return bson.Doc(l.ops[l.start(i)+1+len(bson.IndexKey(i))+1 : l.ends[i]])
}

// Circumstances are what all entries of a transaction have in common.
type Circumstances struct {
	Term int64
	Wall int64 // in milliseconds since the epoch
	// Session and TxnNumber are those of a retryable write or a transaction; nil where there is none.
	Session   bson.Doc
	TxnNumber int64
	// Transaction says that it is a transaction of several statements, and not a write.
	Transaction bool
	// Apart has each operation be an entry of its own: changes of the catalogue are.
	Apart bool
}

// Entry is an entry without its timestamps: they are Fill's.
type Entry struct {
	// Stored is the entry behind what was asked for before it.
	Stored []byte
	// ts and previous are where in Stored the entry's own timestamp and that of the one before it in the same transaction begin;
	// previous is 0 where there is none before it.
	ts, previous int
	// Operations is how many operations it has.
	Operations int
}

// maxEntryBytes is how many bytes of operations one entry holds; one that has more by itself has an entry of its own.
const maxEntryBytes = 16 << 20

// Entries appends the entries of what was collected, each behind head. A single operation is an entry; several are one, applyOps, or a
// chain of them where they are too much for one. They share nothing with the Log.
func (l *Log) Entries(all []Entry, c Circumstances, head []byte) []Entry {
	switch {
	case l.Len() == 1 && !c.Transaction, c.Apart:
		for i := range l.Len() {
			all = append(all, l.entry(&c, head, i))
		}
		return all
	}
	for from := 0; from < l.Len(); {
		to := from + 1
		for to < l.Len() && l.ends[to]-l.start(from) <= maxEntryBytes {
			to++
		}
		all = append(all, l.applyOps(&c, head, from, to))
		from = to
	}
	return all
}

// entry is the one of operation i alone.
func (l *Log) entry(c *Circumstances, head []byte, i int) Entry {
	op := l.op(i)
	b := c.begin(&l.build, head, len(op))
	return c.end(b.Fields(op), 1, false)
}

// applyOps is the one of the operations from one up to another.
func (l *Log) applyOps(c *Circumstances, head []byte, from, to int) Entry {
	ops := l.ops[l.start(from):l.ends[to-1]]
	b := c.begin(&l.build, head, len(ops)).String("op", "c").String("ns", "admin.$cmd").Object("o").Array("applyOps")
	if from == 0 { // they have the right numbers
		b.Replace(append(b.Buffer(), ops...))
	} else {
		for i := from; i < to; i++ {
			b.Document(bson.IndexKey(i-from), l.op(i))
		}
	}
	b.End()
	switch {
	case to < l.Len():
		b.Bool("partialTxn", true)
	case from > 0:
		b.Int64("count", int64(l.Len()))
	}
	b.End()
	if l.statement > 0 { // several statements, and not a transaction
		b.Int32("multiOpType", 1)
	}
	return c.end(b, to-from, from > 0 || to < l.Len() || c.Transaction)
}

// begin starts an entry with operations of so many bytes.
func (c *Circumstances) begin(b *bson.Builder, head []byte, bytes int) *bson.Builder {
	b.Reset(append(make([]byte, 0, len(head)+bytes+len(c.Session)+opOverhead), head...))
	if c.Session != nil {
		b.Document("lsid", c.Session).Int64("txnNumber", c.TxnNumber)
	}
	return b
}

// end ends it.
func (c *Circumstances) end(b *bson.Builder, operations int, chained bool) Entry {
	b.Timestamp("ts", 0, 0)
	e := Entry{ts: len(b.Buffer()) - 8, Operations: operations}
	b.Int64("t", c.Term).Int64("v", 2).Date("wall", c.Wall)
	if chained || c.Session != nil {
		b.Object("prevOpTime").Timestamp("ts", 0, 0)
		e.previous = len(b.Buffer()) - 8
		b.Int64("t", -1).End()
	}
	e.Stored = b.Bytes()
	b.Replace(nil) // the entry keeps them
	return e
}

// Fill writes the timestamp of an entry into stored, which is like its Stored, and the place of the entry before it in the same
// transaction or session, unless there is none.
func (e *Entry) Fill(stored []byte, own Timestamp, previous OpTime) {
	binary.LittleEndian.PutUint64(stored[e.ts:], uint64(own))
	if e.previous != 0 && previous.Timestamp != 0 {
		binary.LittleEndian.PutUint64(stored[e.previous:], uint64(previous.Timestamp))
		binary.LittleEndian.PutUint64(stored[e.previous+8+3:], uint64(previous.Term))
	}
}

// Reference is a place in another stored document of a Commit that one of its timestamps goes into.
type Reference struct {
	// Stamped is which of the Commit's stamped writes, and At where in its value. Key is where in its key, 0 for nowhere.
	Stamped, At, Key int
	// Entry is which entry's timestamp it is, from 1 on; 0 for the last one's.
	Entry int
}

// Fill writes the timestamp.
func (r Reference) Fill(key, value []byte, t Timestamp) {
	binary.LittleEndian.PutUint64(value[r.At:], uint64(t))
	if r.Key > 0 {
		binary.BigEndian.PutUint64(key[r.Key:], uint64(t))
	}
}
