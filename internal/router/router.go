package router

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/peer"
)

const (
	// patience is how long a request waits that has not been handed on, until there is a server that takes it.
	patience = 20 * time.Second
	// retryPause is between two tries to reach that server.
	retryPause = 200 * time.Millisecond
)

var (
	// ErrHere says that this server works on the data itself.
	ErrHere = errors.New("router: this server has the data")
	// ErrNobody says that no server was reached that has the data, and nothing was handed on.
	ErrNobody = errors.New("router: no server is reached that has the data")
	// ErrMoved says that the server behind a client's connection has the data no more: nothing was handed on, and what it kept of the client is lost.
	ErrMoved = errors.New("router: another server has the data by now")
	// ErrGone says that a request was handed on and no reply came. What the server behind the connection kept of the client is lost.
	ErrGone = errors.New("router: the server that has the data is not reached any more")
)

// Target is a server that works on the data.
type Target struct {
	Address string // host:port
	ID      string // of what it has them by: it says it of nothing else, before or after
}

// Options of a Router. All are required.
type Options struct {
	// Peers is how other servers are called.
	Peers func() peer.Options
	// Wall is the clock of the network.
	Wall clock.Clock
	// Failed is told why a server was not reached.
	Failed func(Target, error)
}

// Router knows which server works on the data.
type Router struct {
	o       Options
	now     atomic.Pointer[place]
	moving  sync.Mutex // one changes now at a time
	handed  atomic.Int64
	clients atomic.Int64
}

// place is where the data is worked on for some time. It is a server's, this one's, or nobody's that is known.
type place struct {
	Target
	here bool
	ctx  context.Context // ends when it is another
	end  context.CancelFunc
}

// New is a Router that knows of no server.
func New(o Options) *Router {
	r := &Router{o: o}
	r.now.Store(newPlace(Target{}, false))
	return r
}

func newPlace(t Target, here bool) *place {
	ctx, end := context.WithCancel(context.Background())
	return &place{t, here, ctx, end}
}

// Follow has requests be handed on to a server. It may be told the same again.
func (r *Router) Follow(t Target) { r.move(t, false) }

// Here has requests be answered by this server.
func (r *Router) Here() { r.move(Target{}, true) }

// Nowhere has requests wait.
func (r *Router) Nowhere() { r.move(Target{}, false) }

func (r *Router) move(t Target, here bool) {
	r.moving.Lock()
	defer r.moving.Unlock()
	before := r.now.Load()
	if before.Target == t && before.here == here {
		return
	}
	r.now.Store(newPlace(t, here))
	before.end()
}

// IsHere says whether requests are answered by this server.
func (r *Router) IsHere() bool { return r.now.Load().here }

// Stats is what a Router tells of itself.
type Stats struct {
	// Target is the server that requests are handed on to; "" for none.
	Target string
	// Here says that this server answers them.
	Here bool
	// Handed counts the requests that were handed on, and Clients is how many connections have one of their own behind them.
	Handed, Clients int64
}

// Stats is kept as long as the Router is.
func (r *Router) Stats() Stats {
	p := r.now.Load()
	return Stats{p.Address, p.here, r.handed.Load(), r.clients.Load()}
}

// Client is what a Router keeps of a client's connection. It is used by one goroutine.
type Client struct {
	conn  *peer.Conn // nil before the first request
	place *place
}

// Begun says whether the client has a connection behind its own.
func (k *Client) Begun() bool { return k.conn != nil }

// Forget ends the connection behind a client's.
func (r *Router) Forget(k *Client) {
	if k.conn == nil {
		return
	}
	_ = k.conn.Close() // of what nobody waits for
	r.clients.Add(-1)
	k.conn, k.place = nil, nil
}

// Handle hands a request on, and returns its reply, nil for one that wants none. It waits until some server is there if the client has not begun. ErrHere
// means that this server is to answer it. After ErrMoved and ErrGone the client has not begun. A reply is valid until the next call.
func (r *Router) Handle(ctx context.Context, k *Client, remote string, q peer.Request) (bson.Doc, error) {
	if err := refuse(q.Body); err != nil {
		return nil, err
	}
	if k.conn == nil {
		if err := r.begin(ctx, k, remote); err != nil {
			return nil, err
		}
	}
	if k.place.ctx.Err() != nil {
		r.Forget(k)
		return nil, ErrMoved
	}
	r.handed.Add(1)
	unlink := context.AfterFunc(k.place.ctx, k.conn.Interrupt)
	reply, err := k.conn.Exchange(ctx, q)
	unlink()
	if err != nil {
		r.Forget(k)
		return nil, errors.Join(ErrGone, err)
	}
	return reply, nil
}

// refuse refuses what is about the server that the client has connected to, and not about the data.
func refuse(body bson.Doc) error {
	if body.FirstKey() == "shutdown" {
		return mongoerr.New(mongoerr.IllegalOperation, "this server hands commands on to the one that works on the data, and shutdown is not handed on: end its process, or ask the other one")
	}
	return nil
}

// begin connects to the server that has the data, as soon as there is one.
func (r *Router) begin(ctx context.Context, k *Client, remote string) error {
	ctx, cancel := clock.WithTimeout(ctx, r.o.Wall, patience)
	defer cancel()
	for {
		p := r.now.Load()
		if p.here {
			return ErrHere
		}
		if p.Address != "" {
			conn, err := r.connect(ctx, p, remote)
			if err == nil {
				k.conn, k.place = conn, p
				r.clients.Add(1)
				return nil
			}
			if ctx.Err() == nil {
				r.o.Failed(p.Target, err)
			}
		}
		pause := r.o.Wall.NewTimer(retryPause)
		select {
		case <-p.ctx.Done():
		case <-pause.C():
		case <-ctx.Done():
		}
		pause.Stop()
		if ctx.Err() != nil {
			return errors.Join(ErrNobody, context.Cause(ctx))
		}
	}
}

// connect connects to a server, shows that this one is of the same cluster, and says for whom the connection is.
func (r *Router) connect(ctx context.Context, p *place, remote string) (*peer.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	conn, err := peer.Dial(ctx, p.Address, r.o.Peers())
	if err != nil {
		return nil, err
	}
	if _, err := conn.Call(ctx, Introduction{ID: p.ID, Remote: remote}.Doc()); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Introduction is how a server says to another one that a connection is a client's, whose requests it hands on.
type Introduction struct {
	// ID is that of the Target that it takes the other one for.
	ID string
	// Remote is the client's address.
	Remote string
}

const (
	introductionName = "ebbRoute"
	maxRemoteBytes   = 256
)

// IsIntroduction says whether a command is one.
func IsIntroduction(body bson.Doc) bool { return body.FirstKey() == introductionName }

// Doc is the command.
func (i Introduction) Doc() bson.Doc {
	return bson.Build().String(introductionName, i.ID).String("remote", i.Remote).String("$db", "admin").Doc()
}

// ReadIntroduction is the inverse of Doc.
func ReadIntroduction(body bson.Doc) (Introduction, error) {
	id, remote := body.Lookup(introductionName), body.Lookup("remote")
	if id.Type != bson.TypeString || remote.Type != bson.TypeString || len(remote.Str()) > maxRemoteBytes {
		return Introduction{}, mongoerr.New(mongoerr.FailedToParse, "the command %s is for servers among themselves", introductionName)
	}
	return Introduction{ID: string([]byte(id.Str())), Remote: string([]byte(remote.Str()))}, nil
}
