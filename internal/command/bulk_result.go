package command

import (
	"context"
	"encoding/binary"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// maxBulkResultBytes is about how large the results of a bulkWrite may be together: no op runs once they are as large.
const maxBulkResultBytes = 20 << 20

// bulkResult is what became of one op.
type bulkResult struct {
	index       int
	kind        bulkKind
	n, modified int64
	upserted    bson.Value
	err         *mongoerr.Error
}

// append appends the fields that clients see.
func (r *bulkResult) append(b *bson.Builder) {
	if r.err == nil {
		b.Double("ok", 1).Int32("idx", int32(r.index))
	} else {
		b.Double("ok", 0).Int32("idx", int32(r.index)).Int32("code", int32(r.err.Code)).String("errmsg", r.err.Message).Fields(r.err.Extra)
		if r.err.Info != nil {
			b.Document("errInfo", r.err.Info)
		}
	}
	b.Number("n", r.n)
	if r.kind == bulkUpdate {
		b.Number("nModified", r.modified)
		if !r.upserted.IsMissing() {
			b.Object("upserted").Value("_id", r.upserted).End()
		}
	}
}

// bulkResults are what became of the ops, and a cursor's source of that.
type bulkResults struct {
	docs   []byte // the documents, one behind the other
	next   bson.Builder
	count  int64
	memory memory.Account
}

func newBulkResults(g *memory.Governor) *bulkResults {
	s := &bulkResults{}
	s.memory.OpenExact(g, memory.Cursors)
	return s
}

// add adds a result. It takes memory whether that is there or not: the op has run.
func (s *bulkResults) add(r bulkResult) {
	had := cap(s.docs)
	s.next.Reset(s.docs)
	r.append(&s.next)
	s.docs = s.next.Bytes()
	s.count++
	if more := cap(s.docs) - had; more > 0 {
		s.memory.Charge(int64(more))
	}
}

func (s *bulkResults) full() bool { return len(s.docs) >= maxBulkResultBytes }

// Next implements cursor.Source.
func (s *bulkResults) Next(context.Context) (bson.Doc, error) {
	if len(s.docs) == 0 {
		return nil, nil
	}
	n := binary.LittleEndian.Uint32(s.docs)
	d := bson.Doc(s.docs[:n])
	s.docs = s.docs[n:]
	return d, nil
}

// Park implements cursor.Source.
func (s *bulkResults) Park() {}

// Held implements cursor.Source.
func (s *bulkResults) Held() int64 { return s.memory.Used() }

// Shrink implements cursor.Source.
func (s *bulkResults) Shrink() error { return nil }

// Close implements cursor.Source.
func (s *bulkResults) Close() error {
	s.docs, s.next = nil, bson.Builder{}
	s.memory.Close()
	return nil
}
