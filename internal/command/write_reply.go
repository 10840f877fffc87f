package command

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/query"
)

// What a reply has of all its errors together: messages, and what else they tell, such as the keys that were taken. Later
// errors come without, so that the reply does not become larger than a client takes.
const (
	maxErrorTextBytes   = 1 << 20
	maxErrorDetailBytes = 8 << 20
)

// errorRoom is what a reply has room for yet.
type errorRoom struct{ text, details int }

// writeReply appends n and the write errors of a batch. To those who wait for no write they are not told.
func (op *Op) writeReply(b *bson.Builder, n int64, refused []query.WriteError) {
	if op.WriteConcern.Unacknowledged {
		b.Int32("n", 0)
		return
	}
	b.Number("n", n)
	writeErrors(b, refused)
}

func writeErrors(b *bson.Builder, refused []query.WriteError) {
	if len(refused) == 0 {
		return
	}
	room := errorRoom{maxErrorTextBytes, maxErrorDetailBytes}
	b.Array("writeErrors")
	for i, r := range refused {
		b.Object(bson.IndexKey(i))
		writeError(b, r, &room)
		b.End()
	}
	b.End()
}

func writeError(b *bson.Builder, r query.WriteError, room *errorRoom) {
	e := mongoerr.From(r.Err)
	b.Int32("index", int32(r.Index)).Int32("code", int32(e.Code))
	if n := len(e.Extra) + len(e.Info); n <= room.details || room.details == maxErrorDetailBytes { // the first always has it
		room.details -= n
		b.Fields(e.Extra)
		if e.Info != nil {
			b.Document("errInfo", e.Info)
		}
	}
	text := e.Message
	if room.text -= len(text); room.text < 0 {
		text = ""
	}
	b.String("errmsg", text)
}

// checkBatch holds the number of statements of a write to the limits.
func (op *Op) checkBatch(n int) error {
	if n == 0 || n > maxWriteBatchSize {
		return mongoerr.New(mongoerr.InvalidLength, "Write batch sizes must be between 1 and %d. Got %d operations.", maxWriteBatchSize, n).Unparsed()
	}
	return op.checkStatementIDs(n)
}
