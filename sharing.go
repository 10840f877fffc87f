package ebb

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/metrics"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/peer"
	"github.com/ebbdb/ebb/internal/router"
	"github.com/ebbdb/ebb/internal/server"
)

// Servers over one keyspace of a TiKV cluster: the one that has the keyspace's lease has a database, works on the data and lets it expire; the others have
// none, hand requests on to it (router), and wait for the lease. Who loses it ends its database and waits with them. Clients see routers of one cluster.
//
// That database is a replica set of one, for the sake of sessions, transactions, retryable writes and change streams. Nobody sees of it but that.

// sharedSet is the name of that set, and sharedHost the address of its member, wherever that is at the moment.
const (
	sharedSet  = "ebb"
	sharedHost = "keyspace.ebb:27017"
)

// reopenPause is how long a server waits that could not open the keyspace, until it tries again.
const reopenPause = time.Second

// sharing is a server's part in a keyspace that it shares.
type sharing struct {
	server *Server
	router *router.Router
	reads  reading
	heard  followers
	stop   context.CancelFunc
	ended  chan struct{}
	began  chan error // gets how it began, once
	tells  bool       // it has got that; of run's goroutine
}

// sharesKeyspace says whether other servers may be on the keyspace as well.
func (o *Options) sharesKeyspace() bool { return o.shares }

// share has the server take part. It returns when that has the data, or knows who has.
func (s *Server) share() (err error) {
	if s.foundation.temp, err = spillDir(s); err != nil {
		return err
	}
	if s.opts.Authorization && !s.transport.clusterAuth.IsAsked() {
		s.log.Startup().Warn("Clients log in, and servers have nothing by which they know one another (--keyFile or --clusterAuthMode x509): other servers on the keyspace cannot hand clients on to this one, nor this one to them")
	}
	ctx, stop := context.WithCancel(context.Background())
	s.sharing = &sharing{server: s, stop: stop, ended: make(chan struct{}), began: make(chan error, 1)}
	s.sharing.router = router.New(router.Options{Peers: s.peerOptions, Wall: clock.Wall(), Failed: func(t router.Target, err error) {
		s.log.For("NETWORK").Debug("The server that has the keyspace is not reached", "address", t.Address, "error", err.Error())
	}})
	s.sharing.reads.server, s.sharing.heard.server = s, s
	go s.sharing.run(ctx)
	return <-s.sharing.began
}

// close ends the part. What the server has of the data stays, for Close.
func (h *sharing) close() {
	h.stop()
	<-h.ended
	h.reads.end()
}

func (h *sharing) tell(err error) {
	if !h.tells {
		h.tells = true
		h.began <- err
	}
}

// run has the server have the data whenever nobody else has, until ctx ends.
func (h *sharing) run(ctx context.Context) {
	defer close(h.ended)
	for {
		err := h.once(ctx)
		h.router.Nowhere()
		if ctx.Err() != nil {
			h.tell(errors.Join(err, context.Cause(ctx)))
			return
		}
		if !h.tells { // what keeps it from the start is told who starts it
			h.tell(err)
			return
		}
		h.server.log.For("STORAGE").Warn("The server does not work on the keyspace any more, and tries to get it again", "error", err)
		if clock.Wait(ctx, clock.Wall(), reopenPause) != nil {
			return
		}
	}
}

// once waits for the keyspace, and works on it until it is lost or ctx ends. Then the server has the database still.
func (h *sharing) once(ctx context.Context) error {
	s := h.server
	lost := make(chan error, 1)
	engine, err := s.openTiKV(ctx, func(err error) { lost <- err }, h.follow)
	h.router.Nowhere() // whoever waits for the one before, reading too, ends
	h.reads.end()
	if err != nil {
		return err
	}
	s.foundation.tikv.Store(engine)
	d, err := openDatabase(s, origin{engine: engine, clock: s.clusterTime(engine)}, func() {})
	if err != nil {
		return errors.Join(fmt.Errorf("open the keyspace: %w", err), h.leave(engine))
	}
	s.serving.Put(d)
	h.router.Here()
	s.log.For("STORAGE").Info("The server works on the keyspace", "keyspace", s.opts.Cluster.Keyspace)
	h.tell(nil)
	select {
	case err = <-lost:
	case <-ctx.Done():
		return nil
	}
	h.router.Nowhere()
	// No error of a member that is not the primary any more: by one of those, too, drivers take a server for gone (see route).
	return errors.Join(err, s.endDatabase(mongoerr.New(mongoerr.HostUnreachable, "another server works on the data now")), h.leave(engine))
}

func (h *sharing) leave(engine *tikvkv.Engine) error {
	h.server.foundation.tikv.Store(nil)
	return engine.Close()
}

// follow has requests be handed on to who has the keyspace.
func (h *sharing) follow(who tikvkv.Holder) {
	t := router.Target{Address: who.Address, ID: who.ID}
	if h.router.Stats().Target != t.Address {
		h.server.log.For("STORAGE").Info("Another server works on the keyspace: requests are handed on to it", "holder", who.Name, "address", who.Address)
	}
	h.router.Follow(t)
	h.reads.follow(t)
	h.tell(nil)
}

// route hands a request on, unless this server is the one to answer it.
//
// Drivers take a server for gone when it closes a connection on which they wait for something, and at a take-over all servers but the one that
// hangs would be: whatever is tried again goes there, and hangs as well. So a client keeps its connection when the server behind it is another
// one, and gets an error that says what drivers may do about it. Where it has logged in there its connection ends after that.
func (h *sharing) route(ctx context.Context, c *server.Conn, k *caller, req *server.Request) (reply server.Reply, handed bool) {
	if k.reads.database != nil && k.reads.database != h.reads.holder.Current() {
		k.reads.forgetPlace()
	}
	if k.database != nil {
		here := k.database == h.server.serving.Current() && (k.stands || h.router.IsHere())
		switch {
		case here:
			return reply, false
		case k.stands, k.conn.HasLoggedIn():
			return lastReply(req), true
		}
		k.part()
	}
	if reply, answered := h.reads.answer(ctx, c, k, req); answered {
		return reply, true
	}
	hello := isHello(req.Body)
	k.loggedIn = k.loggedIn || logsIn(req.Body, hello)
	k.reads.note(req.Body, hello)
	q := handedOn(req, hello)
	body, err := h.router.Handle(ctx, &k.behind, c.Remote(), q)
	if !k.loggedIn && (errors.Is(err, router.ErrMoved) || hello && errors.Is(err, router.ErrGone) && ctx.Err() == nil) { // nothing has happened
		body, err = h.router.Handle(ctx, &k.behind, c.Remote(), q)
	}
	switch {
	case errors.Is(err, router.ErrHere):
		return reply, false
	case errors.Is(err, router.ErrMoved), errors.Is(err, router.ErrGone), errors.Is(err, router.ErrNobody):
		if k.loggedIn || hello {
			return lastReply(req), true
		}
		return goneReply(req), true
	case err != nil:
		return server.Reply{Body: mongoerr.Reply(err)}, true
	}
	k.unanswered = q.NoReply // what comes behind it on the connection is done behind it
	k.known = k.known || logsIn(req.Body, hello) && isLogin(body)
	if hello {
		body = ownHello(body, req.Body, c)
	}
	return server.Reply{Body: body}, true
}

// logsIn says whether a request is a part of a login.
func logsIn(body bson.Doc, hello bool) bool {
	switch body.FirstKey() {
	case "saslStart", "saslContinue", "authenticate":
		return true
	}
	return hello && !body.Lookup("speculativeAuthenticate").IsMissing()
}

// isLogin says whether a reply is that to the end of a login.
func isLogin(reply bson.Doc) bool {
	if said := reply.Lookup("speculativeAuthenticate"); said.Type == bson.TypeObject {
		return isLogin(said.Doc())
	}
	return reply.Lookup("done").Truthy() || reply.Lookup("dbname").Type == bson.TypeString
}

// goneReply answers a request of which it is not known whether it was carried out, since who had the data is gone. Its labels say what a driver may
// do, as a router's do: a write with a number, and the end of a transaction, may be sent again, and the whole of a transaction that has not come to it; a
// change stream goes on by another.
func goneReply(req *server.Request) server.Reply {
	return goneAs(mongoerr.HostUnreachable, req)
}

func goneAs(code mongoerr.Code, req *server.Request) server.Reply {
	if req.Unacknowledged() {
		return server.Reply{Close: true}
	}
	e := mongoerr.New(code, "the server that works on the data is not reached any more, or has ended: another one takes over")
	switch name := req.Body.FirstKey(); {
	case req.Body.Lookup("txnNumber").IsMissing():
		if followsChanges(req.Body) {
			e.Labels = []string{"ResumableChangeStreamError"}
		}
	case name != "commitTransaction" && name != "abortTransaction" && !req.Body.Lookup("autocommit").IsMissing():
		e.Labels = []string{"TransientTransactionError"}
	default:
		e.Labels = []string{"RetryableWriteError"}
	}
	return server.Reply{Body: mongoerr.Reply(e)}
}

// followsChanges says whether a request opens a change stream, or may read on in one: what a cursor is of only the server knew that is gone, and a driver
// asks for a change stream's alone.
func followsChanges(body bson.Doc) bool {
	switch body.FirstKey() {
	case "getMore":
		return true
	case "aggregate":
		stages := body.Lookup("pipeline")
		return stages.Type == bson.TypeArray && stages.Doc().Lookup("0").Type == bson.TypeObject && stages.Doc().Lookup("0").Doc().FirstKey() == "$changeStream"
	}
	return false
}

// lastReply is goneReply for a client whose connection is of no use to it any more. By its code drivers let go of their connections to this server, so that they
// do not try again by one that is closed by then.
func lastReply(req *server.Request) server.Reply {
	reply := goneAs(mongoerr.ShutdownInProgress, req)
	if reply.Close = true; isHello(req.Body) { // to which an error says as much as no answer
		reply.Body = nil
	}
	return reply
}

func isHello(body bson.Doc) bool {
	switch body.FirstKey() {
	case "hello", "isMaster", "ismaster":
		return true
	}
	return false
}

// handedOn is a request as the other server gets it: with nothing to agree about between it and the client.
func handedOn(req *server.Request, hello bool) peer.Request {
	q := peer.Request{Body: req.Body, Sequences: req.Sequences, NoReply: req.Unacknowledged(), Memory: req.Memory}
	if hello {
		b := bson.Build()
		for it := req.Body.Iter(); it.Next(); {
			if it.Key() != "compression" {
				b.Value(it.Key(), it.Value())
			}
		}
		q.Body = b.Doc()
	}
	return q
}

// ownHello is the other server's hello with what this one agrees about with the client.
func ownHello(body, asked bson.Doc, c *server.Conn) bson.Doc {
	if v := asked.Lookup("compression"); v.Type == bson.TypeArray {
		var names []string
		for it := v.Doc().Iter(); it.Next(); {
			if it.Value().Type == bson.TypeString {
				names = append(names, string([]byte(it.Value().Str())))
			}
		}
		c.NegotiateCompression(names)
	}
	names := c.Compression()
	if len(names) == 0 {
		return body
	}
	return bson.Build().Fields(body).Strings("compression", names).Doc()
}

// introduced hears another server say that a connection is a client's of its.
func (s *Server) introduced(ctx context.Context, c *server.Conn, k *caller, req *server.Request) server.Reply {
	if err := s.introduce(ctx, c, k, req.Body); err != nil {
		return server.Reply{Body: mongoerr.Reply(err), Close: true}
	}
	return server.Reply{Body: bson.Build().Double("ok", 1).Doc()}
}

func (s *Server) introduce(ctx context.Context, c *server.Conn, k *caller, body bson.Doc) error {
	said, err := router.ReadIntroduction(body)
	if err != nil {
		return err
	}
	if !s.isHolder(said.ID) {
		return errNotHere
	}
	if err := s.admitMember(ctx, c, k); err != nil { // which may wait, and so comes before
		return err
	}
	d := s.serving.TryEnter()
	if d == nil {
		return errNotHere
	}
	defer d.Leave()
	if !s.isHolder(said.ID) {
		return errNotHere
	}
	d.meet(c, &k.seat)
	k.stands = true
	k.conn.StandFor(said.Remote)
	return nil
}

var errNotHere = mongoerr.New(mongoerr.NotWritablePrimary, "this server does not work on the data")

// figures tells whether a server is ready that hands requests on, and how many.
func (h *sharing) figures(w http.ResponseWriter, r *http.Request) {
	stats := h.router.Stats()
	metrics.ServeRouter(w, r, metrics.Router{Target: stats.Target, Handed: stats.Handed, Clients: stats.Clients, Reads: h.reads.answered.Load(), Version: Version, MongoVersion: MongoVersion})
}
