package cursor

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/memory"
)

const (
	// smallReply is up to which size a reply's buffer grows without asking. It gets no larger by that, so that a connection can keep
	// it for the next one.
	smallReply = 64 << 10
	// replyTail is room for what stands behind a batch and around its documents.
	replyTail = 4 << 10
)

// room is the buffer of a batch. It doubles, so that little is copied, and what it takes is lent by the reply's memory.
type room struct {
	b     *bson.Builder
	reply *memory.Account
}

// make has room for a document of n bytes. full says that there is no memory for that, where the batch may end here.
func (r *room) make(ctx context.Context, n int, mayEnd bool) (full bool, err error) {
	need := r.b.Len() + n + replyTail
	if need <= r.b.Cap() {
		return false, nil
	}
	if need <= smallReply {
		r.b.Replace(append(make([]byte, 0, max(need, min(2*r.b.Cap(), smallReply))), r.b.Buffer()...))
		return false, nil
	}
	size := max(need, min(2*r.b.Cap(), MaxBatchBytes+replyTail))
	larger := r.reply.Enlarge(r.b.Buffer(), size)
	if larger == nil && mayEnd {
		return true, nil
	}
	if larger == nil {
		if larger, err = r.reply.EnlargeWaiting(ctx, r.b.Buffer(), size); err != nil {
			return false, err
		}
	}
	r.b.Replace(larger)
	return false, nil
}
