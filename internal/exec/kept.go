package exec

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/storage"
)

// kept are records that were found ahead, to be given before others.
type kept struct {
	buf   []byte
	ends  []keptEnd
	given int
}

// keptEnd is where the document and behind it the id and the index key of a record end in the buffer.
type keptEnd struct {
	doc, id  int
	key      int
	modified int64
}

func (k *kept) len() int { return len(k.ends) - k.given }

func (k *kept) add(m *Member) {
	if m.Doc == nil { // keys were all that was asked for
		m.Doc = bson.EmptyDoc
	}
	k.buf = append(k.buf, m.Doc...)
	doc := len(k.buf)
	k.buf = append(k.buf, m.ID...)
	id := len(k.buf)
	k.buf = append(k.buf, m.IndexKey...)
	k.ends = append(k.ends, keptEnd{doc, id, len(k.buf), m.Modified})
}

// take gives the first record and its index key, nil where that was not asked for. Their bytes stay as they are.
func (k *kept) take() (rec storage.Record, key bson.Doc) {
	start := 0
	if k.given > 0 {
		start = k.ends[k.given-1].key
	}
	e := k.ends[k.given]
	k.given++
	rec = storage.Record{ID: k.buf[e.doc:e.id:e.id], Modified: e.modified, Doc: bson.Doc(k.buf[start:e.doc:e.doc])}
	if e.key > e.id {
		key = bson.Doc(k.buf[e.id:e.key:e.key])
	}
	if k.len() == 0 {
		*k = kept{}
	}
	return rec, key
}
