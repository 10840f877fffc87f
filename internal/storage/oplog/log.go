package oplog

import (
	"encoding/binary"

	"github.com/ebbdb/ebb/internal/bson"
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
	ops  []byte // documents {op, ns, ui, o, o2}, one behind the other
	ends []int
	// series says that the next operation is about a time series.
	series bool
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

// Series says whether the operations that follow are about a time series.
func (l *Log) Series(is bool) { l.series = is }

// begin starts an operation on a collection.
func (l *Log) begin(op string, ns string, uuid *[16]byte) *bson.Builder {
	b := bson.BuildOn(l.ops).String("op", op).String("ns", ns)
	if uuid != nil {
		b.Binary("ui", 4, uuid[:])
	}
	if l.series {
		b.Bool("isTimeseries", true)
	}
	return b
}

func (l *Log) end(b *bson.Builder) {
	l.ops = b.Bytes()
	l.ends = append(l.ends, len(l.ops))
}

// Insert is a new document.
func (l *Log) Insert(ns namespace.NS, uuid [16]byte, doc bson.Doc) {
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
	l.endImage(b.Object("o2").Value("_id", doc.Lookup("_id")).End())
}

// Delete is the end of a document.
func (l *Log) Delete(ns namespace.NS, uuid [16]byte, doc bson.Doc) {
	l.endImage(l.begin("d", ns.String(), &uuid).Object("o").Value("_id", doc.Lookup("_id")).End())
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

// Expire is the end of a document because its time was over; expiration says by what.
func (l *Log) Expire(ns namespace.NS, uuid [16]byte, doc, expiration bson.Doc) {
	l.end(l.begin("d", ns.String(), &uuid).Object("o").Value("_id", doc.Lookup("_id")).End().Document("expiration", expiration))
}

// Command is a change of the catalogue, or of all of a database's documents; uuid and o2 are nil where there is none.
func (l *Log) Command(db string, uuid *[16]byte, o, o2 bson.Doc) {
	b := l.begin("c", db+".$cmd", uuid).Document("o", o)
	if o2 != nil {
		b.Document("o2", o2)
	}
	l.end(b)
}

// NoteOf is something that happened to a collection, and to no document of which the oplog tells.
func (l *Log) NoteOf(ns namespace.NS, uuid [16]byte, o bson.Doc) {
	l.end(l.begin("n", ns.String(), &uuid).Document("o", o))
}

// Note is something that happened to no document.
func (l *Log) Note(o bson.Doc) { l.end(l.begin("n", "", nil).Document("o", o)) }

func (l *Log) op(i int) bson.Doc {
	start := 0
	if i > 0 {
		start = l.ends[i-1]
	}
	return bson.Doc(l.ops[start:l.ends[i]])
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

// Entry is an entry as it is stored, without its timestamps: they are Fill's.
type Entry struct {
	Doc bson.Doc
	// ts and previous are where the entry's own timestamp and that of the one before it in the same transaction begin; previous is
	// 0 where there is none before it.
	ts, previous int
	// Operations is how many operations it has.
	Operations int
}

// maxEntryBytes is how many bytes of operations one entry holds; one that has more by itself has an entry of its own.
const maxEntryBytes = 16 << 20

// Entries are the entries of what was collected. A single operation is an entry; several are one, applyOps, or a chain of them
// where they are too much for one.
func (l *Log) Entries(c Circumstances) []Entry {
	if l.Len() == 0 {
		return nil
	}
	if l.Len() == 1 && !c.Transaction {
		return []Entry{c.entry(l.op(0), 1, false)}
	}
	var all []Entry
	if c.Apart {
		for i := range l.Len() {
			all = append(all, c.entry(l.op(i), 1, false))
		}
		return all
	}
	for from := 0; from < l.Len(); {
		to, size := from, 0
		for to < l.Len() && (to == from || size+len(l.op(to)) <= maxEntryBytes) {
			size += len(l.op(to))
			to++
		}
		all = append(all, c.entry(l.applyOps(from, to, size), to-from, len(all) > 0 || to < l.Len() || c.Transaction))
		from = to
	}
	return all
}

// applyOps is one operation of those from one up to another.
func (l *Log) applyOps(from, to, size int) bson.Doc {
	b := bson.BuildOn(make([]byte, 0, size+8*(to-from)+128)).String("op", "c").String("ns", "admin.$cmd").Object("o").Array("applyOps")
	for i := from; i < to; i++ {
		b.Document(bson.IndexKey(i-from), l.op(i))
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
	return b.Doc()
}

// entry is op with what stands before and behind it.
func (c *Circumstances) entry(op bson.Doc, operations int, chained bool) Entry {
	b := bson.BuildOn(make([]byte, 0, len(op)+len(c.Session)+160))
	if c.Session != nil {
		b.Document("lsid", c.Session).Int64("txnNumber", c.TxnNumber)
	}
	b.Fields(op)
	b.Timestamp("ts", 0, 0)
	e := Entry{ts: b.Len() - 8, Operations: operations}
	b.Int64("t", c.Term).Int64("v", 2).Date("wall", c.Wall)
	if chained || c.Session != nil {
		b.Object("prevOpTime").Timestamp("ts", 0, 0)
		e.previous = b.Len() - 8
		b.Int64("t", -1).End()
	}
	e.Doc = b.Doc()
	return e
}

// Fill writes the timestamp of an entry into stored, which holds it from at on, and the place of the entry before it in the same
// transaction or session, unless there is none.
func (e *Entry) Fill(stored []byte, at int, own Timestamp, previous OpTime) {
	binary.LittleEndian.PutUint64(stored[at+e.ts:], uint64(own))
	if e.previous != 0 && previous.Timestamp != 0 {
		binary.LittleEndian.PutUint64(stored[at+e.previous:], uint64(previous.Timestamp))
		binary.LittleEndian.PutUint64(stored[at+e.previous+8+3:], uint64(previous.Term))
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
