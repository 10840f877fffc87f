package server

import (
	"context"
	"net"
	"slices"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/certificate"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/wire"
)

// Conn is one client's connection. A handler uses it from the goroutine that called Handle, but for ID and the
// addresses, which never change.
type Conn struct {
	id int64
	// socket is the client's, whatever is spoken on it; for deadlines it is the one to ask. secure is what lies over it, nil for nothing.
	socket net.Conn
	secure *secure
	// greeting is since when the client has been waited for to say what it speaks, where that has a limit; 0 it is not.
	greeting atomic.Int64
	ctx      context.Context
	cancel   context.CancelCauseFunc

	reader *wire.Reader
	writer *wire.Writer
	req    Request
	// lastReply is the id of the last message sent.
	lastReply int32

	enabled    []wire.CompressorID
	negotiated []wire.CompressorID
	state      any

	watch    watch
	transfer transfer
	// memory is what the reply under way takes.
	memory memory.Account
}

// ID is the connection's number, 1 for the first one since the server started.
func (c *Conn) ID() int64 { return c.id }

// anonymous is what MongoDB calls a client that has come by a Unix domain socket.
const anonymous = "anonymous unix socket:27017"

// Remote is the client's address.
func (c *Conn) Remote() string { return remote(c.socket) }

func remote(socket net.Conn) string {
	if socket.RemoteAddr().Network() == "unix" {
		return anonymous
	}
	return socket.RemoteAddr().String()
}

// Local is the address the client connected to, the path of a Unix domain socket.
func (c *Conn) Local() string { return c.socket.LocalAddr().String() }

// Peer is who the client is by its certificate, nil where none says so. It is there from the first Handle on.
func (c *Conn) Peer() *certificate.Peer {
	if c.secure == nil {
		return nil
	}
	return c.secure.peer
}

// AskedFor is the name of the server by which the client has asked for it in its TLS handshake, "" where it has not. It is there from the first Handle on.
func (c *Conn) AskedFor() string {
	if c.secure == nil {
		return ""
	}
	return c.secure.asked
}

// IsSecure says whether the connection is one over TLS. It is there from the first Handle on.
func (c *Conn) IsSecure() bool { return c.secure != nil }

// State is what the handler keeps for this connection (metadata, authentication); nil before SetState.
func (c *Conn) State() any { return c.state }

// SetState keeps v for as long as the connection lives.
func (c *Conn) SetState(v any) { c.state = v }

// NegotiateCompression settles which compressors replies may use: those the client named in hello that the server has
// too. It returns them in the client's order, for the reply. Doing it again replaces what was settled.
func (c *Conn) NegotiateCompression(names []string) []string {
	c.negotiated = nil
	for _, name := range names {
		id, known := wire.CompressorNamed(name)
		if known && slices.Contains(c.enabled, id) && !slices.Contains(c.negotiated, id) {
			c.negotiated = append(c.negotiated, id)
		}
	}
	return c.Compression()
}

// Compression is what was settled, none at first.
func (c *Conn) Compression() []string {
	var names []string
	for _, id := range c.negotiated {
		names = append(names, id.String())
	}
	return names
}

// replyCompressor is what the reply to m is compressed with: the compressor m came in, once it is settled. Commands
// that open or authenticate a connection travel in the open both ways.
func (c *Conn) replyCompressor(m *wire.Message) wire.CompressorID {
	if !slices.Contains(c.negotiated, m.Compressor) {
		return wire.Uncompressed
	}
	switch m.Body.FirstKey() {
	case "hello", "isMaster", "ismaster", "saslStart", "saslContinue", "getnonce", "authenticate",
		"createUser", "updateUser", "copydbsaslstart", "copydbgetnonce", "copydb":
		return wire.Uncompressed
	}
	return m.Compressor
}
