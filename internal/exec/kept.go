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

// keptEnd is where the document and behind it the id of a record end in the buffer.
type keptEnd struct {
	doc, id  int
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
	k.ends = append(k.ends, keptEnd{doc, len(k.buf), m.Modified})
}

// take gives the first record. Its bytes stay as they are.
func (k *kept) take() storage.Record {
	start := 0
	if k.given > 0 {
		start = k.ends[k.given-1].id
	}
	e := k.ends[k.given]
	k.given++
	rec := storage.Record{ID: k.buf[e.doc:e.id:e.id], Modified: e.modified, Doc: bson.Doc(k.buf[start:e.doc:e.doc])}
	if k.len() == 0 {
		*k = kept{}
	}
	return rec
}
