package command

import (
	"context"
	"strings"
	"testing"
)

// TestLargeRepliesAreNotKept looks at what a connection keeps when a command with a large batch has ended, or failed.
func TestLargeRepliesAreNotKept(t *testing.T) {
	conn := NewConn(1, "a", "b")
	for _, fails := range []bool{false, true} {
		s := &Server{}
		op := &conn.op
		op.Server, op.Conn = s, conn
		b := op.build()
		for b.Len() < 4*maxSpareBytes {
			b.String("pad", strings.Repeat("x", 1000))
		}
		op.body = b.Doc()
		if fails {
			op.err = context.Canceled
		}
		if reply := op.end(Reply{Body: op.body}, nil); len(reply.Body) < maxSpareBytes {
			t.Errorf("a reply of %d bytes", len(reply.Body))
		}
		if n := conn.reply.Cap() + cap(conn.spare); n > maxSpareBytes {
			t.Errorf("failed %v: %d bytes are kept", fails, n)
		}
	}
}
