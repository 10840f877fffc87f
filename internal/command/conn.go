package command

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/oidc"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/certificate"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/session"
)

// Conn is what the server keeps of one connection.
type Conn struct {
	ID     int64
	Remote string
	Local  string
	// Compress settles the compressors that hello asks for and returns those agreed on; nil where there are none.
	Compress func(names []string) []string
	// Peer is who the client is by its certificate, nil where none says so; it is nil itself where there are none.
	Peer func() *certificate.Peer
	// AskedFor is the name of the server by which the client has asked for it in its TLS handshake, "" where it has not; it is nil itself where there are
	// no handshakes.
	AskedFor func() string
	// Compression is what was agreed on.
	Compression func() []string

	uuid [16]byte
	// user is who has logged in; nil for nobody.
	user   atomic.Pointer[auth.User]
	client atomic.Pointer[operation.Client]
	// uid is what sessions of the user who has logged in have in their ids; "" for nobody's.
	uid string
	// voucher is the token by which the user is here, nil where there is none; expired is a user whose token is not good any more, who alone may
	// log in then. It is without a Name where there is none.
	voucher *oidc.Voucher
	expired auth.Name
	// login is its conversation that is under way; nil for none.
	login *login
	// viewer is the last who looked at the server; see Op.viewer.
	viewer   *viewer
	metadata bson.Doc
	appName  string

	// What each command needs and none keeps: itself, its arguments, and its reply, which is written before the next one comes.
	op       Op
	args     Args
	reply    bson.Builder
	spare    []byte
	names    internedNames
	sessions internedNames
	latest   *Command
	applying int // how deep the command is within applyOps
	// bypassing says that an applyOps around it bypasses document validation.
	bypassing bool
	// patience is that of the applyOps; nil elsewhere.
	patience *kv.Patience
	// appliedUUID is what the oplog says that a collection which is made has; nil where it says nothing.
	appliedUUID *[16]byte
	// routed says that another server hands a client's requests on by the connection.
	routed bool
	// own says that it is the server's console or its metrics that ask, in somebody's name.
	own bool
	// hasWritten says that a write on a member of a replica set has ended on the connection.
	hasWritten bool
	// running is an operation that has ended and that nobody has any more, for the next one; nil for none.
	running *operation.Operation
}

// command is the one called name, nil where there is none. Most are what the one before was.
func (c *Conn) command(t table, name string) *Command {
	if c.latest == nil || c.latest.Name != name {
		c.latest = t[name]
	}
	return c.latest
}

// operation is one that has not begun.
func (c *Conn) operation() *operation.Operation {
	if o := c.running; o != nil {
		c.running = nil
		return o
	}
	return &operation.Operation{}
}

// askedFor is the name by which the client has asked for the server; "" for none.
func (c *Conn) askedFor() string {
	if c.AskedFor == nil {
		return ""
	}
	return c.AskedFor()
}

// maxSpareBytes is how large a reply's buffer may be to be kept for the next one.
const maxSpareBytes = 64 << 10

// Client is how the connection shows up in currentOp.
func (c *Conn) Client() *operation.Client { return c.client.Load() }

// NewConn describes a connection that was just accepted.
func NewConn(id int64, remote, local string) *Conn {
	c := &Conn{ID: id, Remote: remote, Local: local, uuid: session.NewID()}
	c.client.Store(&operation.Client{ConnectionID: id, Desc: "conn" + itoa(id), Remote: remote})
	return c
}

// SetMetadata keeps the client document of the first hello; later ones must not change it.
func (c *Conn) SetMetadata(doc bson.Doc, app string) {
	c.metadata, c.appName = doc.Clone(), app
	client := *c.client.Load()
	client.Metadata, client.AppName = c.metadata, app
	c.client.Store(&client)
}

// become takes note of who has logged in; nil for nobody any more.
func (c *Conn) become(user *auth.User) {
	c.user.Store(user)
	if user == nil {
		c.voucher = nil
	} else {
		c.expired = auth.Name{}
	}
	client := *c.client.Load()
	client.User, c.uid = auth.Name{}, ""
	if user != nil {
		client.User = user.Name
		uid := session.UID(user.String())
		c.uid = string(uid[:])
	}
	c.client.Store(&client)
}

// StandFor has a connection on which another server hands a client's requests on be one of that client's: nobody has logged in on it, it comes from
// where the client is, and what the other server has shown of itself is not the client's.
func (c *Conn) StandFor(remote string) {
	c.become(nil)
	c.Remote, c.Peer, c.AskedFor, c.routed = remote, nil, nil, true
	client := *c.client.Load()
	client.Remote = remote
	c.client.Store(&client)
}

// ActAs has the connection be that of whom other has logged in as.
func (c *Conn) ActAs(other *Conn) { c.become(other.user.Load()) }

// connections are those that are open.
type connections struct {
	mu struct {
		sync.Mutex
		open map[int64]*Conn
	}
}

// ConnectOwn is Connect for the server's console and its metrics, of which less is asked than of clients.
func (s *Server) ConnectOwn(id int64, remote, local string) *Conn {
	c := s.Connect(id, remote, local)
	c.own = true
	return c
}

// Connect begins a connection, which counts until Disconnect.
func (s *Server) Connect(id int64, remote, local string) *Conn {
	c := NewConn(id, remote, local)
	s.open.mu.Lock()
	defer s.open.mu.Unlock()
	if s.open.mu.open == nil {
		s.open.mu.open = map[int64]*Conn{}
	}
	s.open.mu.open[id] = c
	return c
}

// Disconnect ends a connection.
func (s *Server) Disconnect(c *Conn) {
	s.tellGone(c)
	s.open.mu.Lock()
	defer s.open.mu.Unlock()
	delete(s.open.mu.open, c.ID)
}

// idle are the connections, in their order, that are not among the busy ones.
func (o *connections) idle(busy map[int64]bool) []*operation.Client {
	o.mu.Lock()
	defer o.mu.Unlock()
	var idle []*operation.Client
	for _, id := range slices.Sorted(maps.Keys(o.mu.open)) {
		if !busy[id] {
			idle = append(idle, o.mu.open[id].Client())
		}
	}
	return idle
}
