package cursor

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/memory"
)

const (
	// smallReply is up to which size a reply's buffer grows as it likes.
	smallReply = 64 << 10
	// replyTail is room for what stands behind a batch and around its documents.
	replyTail = 4 << 10
)

// room is the buffer of a batch. It doubles, so that little is copied and thrown away, and what it takes is taken from the
// reply's memory before.
type room struct {
	b     *bson.Builder
	reply *memory.Account
	taken int64
}

// make has room for a document of n bytes. full says that there is no memory for that, where the batch may end here.
func (r *room) make(ctx context.Context, n int, mayEnd bool) (full bool, err error) {
	need := r.b.Len() + n + replyTail
	if need <= smallReply || need <= r.b.Cap() {
		return false, nil
	}
	size := max(need, min(2*r.b.Cap(), MaxBatchBytes+replyTail))
	if !r.reply.Take(int64(size)) {
		if mayEnd {
			return true, nil
		}
		if err := r.reply.Wait(ctx, int64(size)); err != nil {
			return false, err
		}
	}
	r.b.Grow(size)
	r.reply.Give(r.taken)
	r.taken = int64(size)
	return false, nil
}
