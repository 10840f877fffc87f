package changestream

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
)

// expired is the operation of a note that tells in sum what has expired, and the type of its event.
const expired = "ebbExpired"

// ofNote reads something that happened to no document: what expired, told in sum, to who asks for expanded events.
func (e *Event) ofNote(ns string) bool {
	o := e.op.o
	if !e.spec.Expanded || o.Type != bson.TypeObject || o.Doc().FirstKey() != expired || o.Doc().Index(0).Type != bson.TypeObject {
		return false
	}
	told := o.Doc().Index(0).Doc()
	if name := told.Lookup("ns"); ns == "" && name.Type == bson.TypeString {
		ns = name.Str()
	}
	if !e.spec.hasText(ns) {
		return false
	}
	e.Type, e.NS, e.description = expired, namespace.Split(string([]byte(ns))), told.Value()
	return true
}

// Document is the event as clients get it. id is its token. full is the document that an update has left, and before the one that there was before the
// change; both missing where nobody asked.
func (e *Event) Document(b *bson.Builder, id bson.Doc, full, before bson.Value) bson.Doc {
	e.appendTransaction(b)
	if !e.to.IsMissing() {
		b.Value("to", e.to)
	}
	ts := e.entry.Time
	b.Document("_id", id).String("operationType", e.Type).Timestamp("clusterTime", uint32(ts>>32), uint32(ts))
	if e.spec.Expanded && !e.op.uuid.IsMissing() {
		b.Value("collectionUUID", e.op.uuid)
	}
	b.Value("wallTime", e.entry.Wall)
	if full.IsMissing() {
		full = e.full
	}
	if !full.IsMissing() {
		b.Value("fullDocument", full)
	}
	b.Object("ns").String("db", e.NS.DB)
	if e.NS.Coll != "" {
		b.String("coll", e.NS.Coll)
	}
	b.End()
	if !e.Key.IsMissing() {
		b.Value("documentKey", e.Key)
	}
	if e.spec.Expanded && !e.description.IsMissing() {
		b.Value("operationDescription", e.description)
	}
	if e.diff != nil {
		e.appendUpdate(b)
	}
	if !e.before.IsMissing() {
		b.Value("stateBeforeChange", e.before)
	}
	if e.nsType != "" {
		b.String("nsType", e.nsType)
	}
	if e.Type == Delete && !e.op.expiration.IsMissing() {
		b.Value("expiration", e.op.expiration)
	}
	if !before.IsMissing() {
		b.Value("fullDocumentBeforeChange", before)
	}
	return b.Doc()
}

func (e *Event) appendTransaction(b *bson.Builder) {
	if !e.entry.Transaction {
		return
	}
	if v := e.entry.TxnNumber; !v.IsMissing() {
		b.Value("txnNumber", v)
	}
	if v := e.entry.Session; !v.IsMissing() {
		b.Value("lsid", v)
	}
}

// Invalidate is the event that ends the stream behind e.
func (e *Event) Invalidate(b *bson.Builder) bson.Doc {
	ts := e.entry.Time
	return b.Document("_id", e.Token.Invalidate().Doc()).String("operationType", invalidate).
		Timestamp("clusterTime", uint32(ts>>32), uint32(ts)).Value("wallTime", e.entry.Wall).Doc()
}

// Told is the event in short, for errors.
func (e *Event) Told() bson.Doc {
	ts := e.entry.Time
	b := bson.Build().String("operationType", e.Type).Object("ns").String("db", e.NS.DB).String("coll", e.NS.Coll).End().
		Timestamp("clusterTime", uint32(ts>>32), uint32(ts))
	if v := e.entry.TxnNumber; !v.IsMissing() {
		b.Value("txnNumber", v)
	}
	return b.Doc()
}

// UUID is that of the collection that the event is about; ok is false where it is about none.
func (e *Event) UUID() (uuid [16]byte, ok bool) {
	if u := e.collection(); u != nil {
		return *u, true
	}
	return uuid, false
}

// Delta is what an update has changed, as the oplog has it.
func (e *Event) Delta() bson.Doc { return e.diff }
