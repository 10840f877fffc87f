// Package peer is the side of a server that calls others: connections to the other members of a replica set, or to the server that clients' requests are
// handed on to, over the same protocol and the same port as any client's. It knows nothing of what is said on them.
package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/xdg-go/scram"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/wire"
)

// Options are how members are called.
type Options struct {
	// TLS, unless nil, is how a connection to a host is encrypted.
	TLS func(host string) *tls.Config
	// Keys are what members know of one another, of which they show the first, and the next where that is not taken: while keys change nobody
	// knows which ones the other has. X509 has them show their certificates instead.
	Keys []string
	X509 bool
	// Dial, unless nil, is called in the place of TCP.
	Dial func(ctx context.Context, host string) (net.Conn, error)
	// Codec is for messages as they are; the caller's, for all connections.
	Codec *wire.Codec
}

func (o Options) dial() func(ctx context.Context, host string) (net.Conn, error) {
	if o.Dial != nil {
		return o.Dial
	}
	return func(ctx context.Context, host string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", host)
	}
}

// Times, all of real time, for sockets live in it.
const (
	dialTime  = 3 * time.Second
	writeTime = 5 * time.Second
)

// Conn is a connection to another member, for one goroutine, and another that awaits replies.
type Conn struct {
	socket net.Conn
	reader *wire.Reader
	writer *wire.Writer
	next   int32
	reply  *wire.Message // what Exchange has returned last; nil for nothing
}

// Dial connects to a member, and logs in where members have something to show. It ends with ctx.
func Dial(ctx context.Context, host string, o Options) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	socket, err := o.dial()(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("peer: connect: %w", err)
	}
	if o.TLS != nil {
		name, _, err := net.SplitHostPort(host)
		if err != nil {
			name = host
		}
		secure := tls.Client(socket, o.TLS(name))
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("peer: %s: %w", host, err), socket.Close())
		}
		socket = secure
	}
	c := &Conn{socket: socket, reader: o.Codec.NewReader(socket), writer: o.Codec.NewWriter(socket)}
	if err := c.logIn(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("peer: log in at %s: %w", host, err), socket.Close())
	}
	return c, nil
}

// Refuses says whether nobody listens at a host, as its machine says. What does not answer may only be slow, or far.
func Refuses(ctx context.Context, host string, o Options) bool {
	socket, err := o.dial()(ctx, host)
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	_ = socket.Close() // nothing was said on it
	return false
}

// Close hangs up.
func (c *Conn) Close() error {
	c.release()
	return c.socket.Close()
}

func (c *Conn) logIn(ctx context.Context, o Options) error {
	switch {
	case o.X509:
		_, err := c.Call(ctx, bson.Build().Int32("authenticate", 1).String("mechanism", "MONGODB-X509").String("apiVersion", "1").String("$db", "$external").Doc())
		return err
	}
	var err error
	for _, key := range o.Keys {
		if err = c.showKey(ctx, key); !mongoerr.Is(err, mongoerr.AuthenticationFailed) {
			return err
		}
	}
	return err
}

// maxSteps bounds a conversation of SCRAM.
const maxSteps = 4

// showKey logs in as what members are to one another.
func (c *Conn) showKey(ctx context.Context, key string) error {
	name := auth.Internal().Name
	client, err := scram.SHA256.NewClient(name.Name, key, "")
	if err != nil {
		return err
	}
	talk := client.NewConversation()
	said := ""
	var id bson.Value
	for step := range maxSteps {
		text, err := talk.Step(said)
		if err != nil {
			return err
		}
		b := bson.Build()
		if step == 0 {
			b.Int32("saslStart", 1).String("mechanism", "SCRAM-SHA-256").Binary("payload", 0, []byte(text)).
				Object("options").Bool("skipEmptyExchange", true).End()
		} else {
			b.Int32("saslContinue", 1).Value("conversationId", id).Binary("payload", 0, []byte(text))
		}
		reply, err := c.Call(ctx, b.String("apiVersion", "1").String("$db", name.DB).Doc())
		if err != nil {
			return err
		}
		id = reply.Lookup("conversationId")
		payload := reply.Lookup("payload")
		if payload.Type != bson.TypeBinary {
			return errors.New("the reply has no payload")
		}
		_, data := payload.Binary()
		said = string(data)
		if reply.Lookup("done").Truthy() {
			_, err := talk.Step(said) // which checks that the other side knows the key, too
			return err
		}
	}
	return errors.New("the conversation has no end")
}

// Send sends a command that has no reply.
func (c *Conn) Send(body bson.Doc) error { return c.post(body, wire.FlagMoreToCome) }

// Ask sends a command whose reply AwaitReply returns for.
func (c *Conn) Ask(body bson.Doc) error { return c.post(body, 0) }

func (c *Conn) post(body bson.Doc, flags wire.Flags) error {
	if err := c.socket.SetWriteDeadline(clock.Wall().Now().Add(writeTime)); err != nil {
		return err
	}
	return c.write(body, flags)
}

// AwaitReply returns when a reply has come, whatever it says, for as long as that takes: who cannot wait closes the connection. It may be called beside who
// sends.
func (c *Conn) AwaitReply() error {
	m, err := c.reader.ReadMessage()
	if m != nil {
		m.Release()
	}
	return err
}

// Call sends a command and returns its reply, which is the caller's. An error that the other side has replied is a *mongoerr.Error.
func (c *Conn) Call(ctx context.Context, body bson.Doc) (bson.Doc, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.socket.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := c.socket.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := c.write(body, 0); err != nil {
		return nil, err
	}
	m, err := c.reader.ReadMessage()
	if m == nil {
		return nil, errors.Join(context.Cause(ctx), err)
	}
	defer m.Release()
	if err != nil {
		return nil, err
	}
	reply := m.Body.Clone()
	if !reply.Lookup("ok").Truthy() {
		code, text := mongoerr.UnknownError, "the other member has failed"
		if v := reply.Lookup("code"); v.IsNumber() {
			code = mongoerr.Code(v.TruncInt64())
		}
		if v := reply.Lookup("errmsg"); v.Type == bson.TypeString {
			text = v.Str()
		}
		return nil, mongoerr.New(code, "%s", text)
	}
	return reply, nil
}

func (c *Conn) write(body bson.Doc, flags wire.Flags) error {
	return c.send(Request{Body: body}, flags)
}

func (c *Conn) send(q Request, flags wire.Flags) error {
	c.next++
	_, err := c.writer.WriteMessage(wire.Outgoing{RequestID: c.next, OpCode: wire.OpMsg, Flags: flags, Compressor: wire.Uncompressed,
		Body: q.Body, Sequences: q.Sequences})
	return err
}

// Request is a client's, as it came.
type Request struct {
	Body      bson.Doc
	Sequences []wire.Sequence
	// NoReply: nobody waits for an answer.
	NoReply bool
	// Memory is what a large reply takes its memory from; the reply lies there, and may be used as long as that is taken. nil: nobody counts it.
	Memory *memory.Account
}

// copyAbove is the size from which a reply is copied into its Memory.
const copyAbove = 64 << 10

// Exchange sends a request and returns its reply, whatever that says, or nil where nobody waits for one. The reply is valid until the next call. After an
// error it is not known what has become of the request, and the connection is of no use any more.
func (c *Conn) Exchange(ctx context.Context, q Request) (bson.Doc, error) {
	c.release()
	defer context.AfterFunc(ctx, c.Interrupt)()
	flags := wire.Flags(0)
	if q.NoReply {
		flags = wire.FlagMoreToCome
	}
	if err := c.send(q, flags); err != nil || q.NoReply {
		return nil, err
	}
	c.reader.Admit = nil
	if q.Memory != nil {
		c.reader.Admit = func(size, _ int) error { return q.Memory.Wait(ctx, int64(size)) }
	}
	m, err := c.reader.ReadMessage()
	switch {
	case m == nil:
		return nil, errors.Join(context.Cause(ctx), err)
	case err != nil:
		m.Release()
		return nil, err
	case q.Memory == nil || len(m.Body) <= copyAbove:
		c.reply = m
		return m.Body, nil
	}
	defer m.Release()
	lent, err := q.Memory.EnlargeWaiting(ctx, nil, len(m.Body))
	if err != nil {
		return nil, err
	}
	return append(lent[:0], m.Body...), nil
}

func (c *Conn) release() {
	if c.reply != nil {
		c.reply.Release()
		c.reply = nil
	}
}

// Interrupt ends what is under way on the connection, and all that comes. It may be called by any goroutine.
func (c *Conn) Interrupt() { _ = c.socket.SetDeadline(time.Unix(1, 0)) }
