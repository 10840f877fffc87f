package server

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/wire"
)

// Handler answers requests. It is never called twice at once for the same connection.
//
// ctx ends when the client hangs up or the server stops waiting for running operations; context.Cause is then a
// *mongoerr.Error, ClientDisconnect or InterruptedAtShutdown. The context is the connection's, not the request's:
// whatever the handler starts for one request must end with Handle. A request that wants no reply outlives its client, and so does
// what the handler does with Request.Lasting.
//
// A panic ends the operation, not the server: the client gets an error reply.
type Handler interface {
	Handle(ctx context.Context, conn *Conn, req *Request) Reply
	// Connected is called before a connection's first Handle, and Disconnected after its last.
	Connected(conn *Conn)
	Disconnected(conn *Conn)
}

// Request is one message from a client. It, Body and Sequences are reused: they are valid until Handle returns, and
// what must outlive it is copied. All documents are well-formed BSON.
type Request struct {
	RequestID int32
	// OpCode is wire.OpMsg, or wire.OpQuery for a command of an old client.
	OpCode wire.OpCode
	// Flags are OP_MSG's; 0 for OP_QUERY.
	Flags wire.Flags
	// Body is the command's document.
	Body bson.Doc
	// Sequences are the command's document sequences, each name at most once and never a field of Body.
	Sequences []wire.Sequence
	// Lasting is Handle's ctx but for the client: it goes on when that hangs up.
	Lasting context.Context
	// Memory is what the reply takes its memory from while it is put together. The server gives it back when it is written.
	Memory *memory.Account
}

// ExhaustAllowed tells whether the client lets one request have many replies.
func (r *Request) ExhaustAllowed() bool { return r.Flags.Has(wire.FlagExhaustAllowed) }

// Unacknowledged tells whether the client waits for no reply.
func (r *Request) Unacknowledged() bool { return r.Flags.Has(wire.FlagMoreToCome) }

// Reply answers a request.
type Reply struct {
	// Body is the reply's document; nil ends the connection without one. The server is done with it when it calls Handle again for the same connection.
	Body bson.Doc
	// MoreToCome asks to be called again at once for a further reply to the same request, without the client asking.
	// It counts only where Request.ExhaustAllowed.
	MoreToCome bool
	// Next is the body of that further call (an awaited hello moves its topologyVersion on); nil means the same again.
	Next bson.Doc
	// Close ends the connection once the reply is written.
	Close bool
}
