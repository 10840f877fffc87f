package ebb

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/handover"
	"github.com/ebbdb/ebb/internal/member"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/peer"
	"github.com/ebbdb/ebb/internal/router"
	"github.com/ebbdb/ebb/internal/server"
)

// Of several servers over one keyspace, one works on the data. The others answer what reads, and hand on the rest: each has a database of its own, over an
// engine that follows (tikvkv.Follower), and reads from the cluster itself.
//
// Before it answers a read, a server asks the one that works what has come since it asked last, and takes note of that. So the read sees all that anybody was
// acknowledged before, wherever, and what a client does by one server it sees by another. Reads that come while it asks share the next question: one is on its
// way at a time, and the more clients read these moments, the longer the next one waits for others. What is asked for is a few bytes where nothing has happened,
// whatever is read.

const (
	// reopenReads is how long a server waits that could not read beside the other, until it tries again: each time longer, up to maxReopenReads, unless it
	// went well for longRead.
	reopenReads    = time.Second
	maxReopenReads = 16 * time.Second
	longRead       = time.Minute
)

// reading is a server's part in reading what another server works on.
type reading struct {
	server *Server
	// holder has the database that answers, if there is one.
	holder   handover.Holder[*database]
	answered atomic.Int64
	mu       struct {
		sync.Mutex // guards the rest
		of         router.Target
		stop       context.CancelFunc // nil: nobody was followed yet
		ended      chan struct{}      // closed when nothing is left of that
	}
}

// follow has the server read beside another one. It may be told the same again.
func (r *reading) follow(of router.Target) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	before, changed := r.turn(of, stop, ended)
	if !changed {
		stop()
		return
	}
	go func() {
		defer close(ended)
		if before != nil {
			<-before
		}
		if of.Address != "" {
			r.run(ctx, of)
		}
	}()
}

// turn has it turn to another server. What it returns is closed when nothing is left of the one before; nil: there was none.
func (r *reading) turn(of router.Target, stop context.CancelFunc, ended chan struct{}) (before chan struct{}, changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.of == of {
		return nil, false
	}
	if r.mu.of = of; r.mu.stop != nil {
		r.mu.stop()
	}
	before = r.mu.ended
	r.mu.stop, r.mu.ended = stop, ended
	return before, true
}

// end has it read beside nobody. It returns when nothing is left of the database.
func (r *reading) end() {
	r.follow(router.Target{})
	r.mu.Lock()
	ended := r.mu.ended
	r.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

func (r *reading) run(ctx context.Context, of router.Target) {
	log := r.server.log.For("STORAGE")
	failing, pause := "", reopenReads
	for ctx.Err() == nil {
		began := clock.Monotonic(clock.Wall())
		err := r.once(ctx, of)
		if ctx.Err() != nil {
			return
		}
		if pause *= 2; clock.Monotonic(clock.Wall())-began > longRead {
			pause = reopenReads
		}
		pause = min(pause, maxReopenReads)
		if err.Error() != failing {
			log.Debug("The server does not read itself at the moment, and hands reads on", "error", err.Error())
			failing = err.Error()
		}
		if clock.Wait(ctx, clock.Wall(), pause) != nil {
			return
		}
	}
}

// once reads beside another server until something fails or ctx ends.
func (r *reading) once(ctx context.Context, of router.Target) error {
	s := r.server
	conn, err := peer.Dial(ctx, of.Address, s.peerOptions())
	if err != nil {
		return err
	}
	t := &told{worker: worker{of: of, conn: conn, address: s.tikvOptions().Address}, clock: s.clock, rounds: rounds{wake: make(chan struct{}, 1)}, changes: make(chan struct{}, 1)}
	defer func() { _ = t.conn.Close() }() // whichever it is by then
	begin, err := t.ask(ctx, fromNow)
	if err != nil {
		return err
	}
	engine, err := s.followTiKV(ctx, begin.Told)
	if err != nil {
		return err
	}
	t.engine = engine
	opening := context.AfterFunc(ctx, engine.Interrupt) // somebody may wait to take the keyspace over
	defer opening()
	t.note(begin)
	d, err := openDatabase(s, origin{engine: engine, role: member.Role{Kind: member.Beside}, clock: t, told: t}, func() {})
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	if err := d.commands.LoadSettings(ctx); err != nil {
		return errors.Join(err, d.close(), engine.Close())
	}
	if !opening() {
		return errors.Join(context.Cause(ctx), d.close(), engine.Close())
	}
	r.holder.Put(d)
	running, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { t.watch(running, d, s.peerOptions) })
	err = t.run(ctx, d, s.peerOptions)
	stop()
	watching.Wait()
	t.rounds.fail(err)
	return errors.Join(err, s.endOf(&r.holder, mongoerr.New(mongoerr.HostUnreachable, "the server that works on the data is another one, or not reached")), engine.Close())
}

// reader is what is kept of a client's connection whose reads are answered here.
type reader struct {
	seat
	// metadata is what the client says of itself in its first hello.
	metadata bson.Doc
	// knows says that the connection here is as whom the client has logged in at the other server, and unknown that this cannot be.
	knows, unknown bool
	// window is that in which it has read last.
	window int64
}

// forgetPlace is for one whose database has ended.
func (k *reader) forgetPlace() {
	k.part()
	k.knows = false
}

// maxMetadata bounds what is kept of what a client says of itself; the other server refuses what is longer than it takes.
const maxMetadata = 4 << 10

// forget is for a client who may be somebody else from now on.
func (k *reader) forget() {
	k.part()
	k.knows, k.unknown = false, false
}

// note takes note of what is handed on: who the client says it is, or that it may be another one.
func (k *reader) note(body bson.Doc, hello bool) {
	if client := body.Lookup("client"); hello && client.Type == bson.TypeObject && len(client.Doc()) <= maxMetadata && k.metadata == nil {
		k.metadata = client.Doc().Clone()
	}
	if logsIn(body, hello) || body.FirstKey() == "logout" {
		k.forget()
	}
}

// answer answers a request, if it is one that is answered here.
func (r *reading) answer(ctx context.Context, c *server.Conn, k *caller, req *server.Request) (handed server.Reply, answered bool) {
	forAll := command.IsForAll(req.Body)
	if k.unanswered || !forAll && !command.MayAnswer(req.Body) {
		return handed, false
	}
	d := r.holder.TryEnter()
	if d == nil {
		return handed, false
	}
	defer d.Leave()
	switch admitted, err := r.admit(ctx, d, c, k); {
	case errors.Is(err, router.ErrMoved), errors.Is(err, router.ErrGone): // and so is the login
		return lastReply(req), true
	case !admitted:
		return handed, false
	}
	if forAll { // the other server does it, too, and answers
		d.commands.Handle(ctx, k.reads.conn, request(req))
		return handed, false
	}
	if command.IsAboutCursors(req.Body) && !d.commands.Answers(req.Body, false) { // the other server has them
		return handed, false
	}
	if d.commands.Watches(req.Body) {
		d.told.expectChanges()
		if command.IsAboutCursors(req.Body) { // it tells of what has come, and not of all that has
			r.answered.Add(1)
			return reply(d.commands.Handle(ctx, k.reads.conn, request(req))), true
		}
	}
	d.told.readers.count(&k.reads)
	switch err := r.join(ctx, d, req); {
	case err != nil && command.IsAboutCursors(req.Body): // which the other server does not have
		return goneReply(req), true
	case err != nil:
		return handed, false
	}
	if !d.commands.Answers(req.Body, d.told.watched.Load()) {
		return handed, false
	}
	r.answered.Add(1)
	q := request(req)
	q.ExhaustAllowed = false // each of its replies would have to be preceded by a question
	return reply(d.commands.Handle(ctx, k.reads.conn, q)), true
}

// join returns when the server knows all that anybody was acknowledged before. A cursor that is here nobody else has, so it is tried again for as long as there
// is hope.
func (r *reading) join(ctx context.Context, d *database, req *server.Request) error {
	for try := 0; ; try++ {
		err := d.told.rounds.join(ctx)
		if err == nil || !command.IsAboutCursors(req.Body) || try >= maxMissed || ctx.Err() != nil || d.told.rounds.isOver() {
			return err
		}
	}
}

// admit has the client be here whom it has logged in as; false where that is not known. The error is why the other server was not asked.
func (r *reading) admit(ctx context.Context, d *database, c *server.Conn, k *caller) (bool, error) {
	logsIn := r.server.opts.Authorization || k.loggedIn
	if logsIn && (!k.known || k.reads.unknown) {
		return false, nil
	}
	if k.reads.database != d {
		k.reads.forgetPlace()
		d.meet(c, &k.reads.seat)
		if k.reads.metadata != nil {
			k.reads.conn.SetMetadata(k.reads.metadata, appName(k.reads.metadata))
		}
	}
	if !logsIn || k.reads.knows {
		return true, nil
	}
	name, err := r.whoIs(ctx, c, k)
	if err == nil {
		err = d.commands.BecomeStored(ctx, k.reads.conn, name)
	}
	k.reads.knows, k.reads.unknown = err == nil, err != nil
	return err == nil, err
}

// whoIs asks the other server as whom a client has logged in.
func (r *reading) whoIs(ctx context.Context, c *server.Conn, k *caller) (name auth.Name, err error) {
	ctx, cancel := clock.WithTimeout(ctx, clock.Wall(), askTime)
	defer cancel()
	q := peer.Request{Body: bson.Build().Int32("connectionStatus", 1).String("$db", "admin").Doc()}
	said, err := r.server.sharing.router.Handle(ctx, &k.behind, c.Remote(), q)
	if err != nil {
		return name, err
	}
	users := said.Lookup("authInfo")
	if users.Type != bson.TypeObject {
		return name, errors.New("nobody is known")
	}
	list := users.Doc().Lookup("authenticatedUsers")
	if list.Type != bson.TypeArray || list.Doc().Lookup("0").Type != bson.TypeObject {
		return name, errors.New("nobody has logged in")
	}
	user, db := list.Doc().Lookup("0").Doc().Lookup("user"), list.Doc().Lookup("0").Doc().Lookup("db")
	if user.Type != bson.TypeString || db.Type != bson.TypeString {
		return name, errors.New("nobody is known")
	}
	return auth.Name{Name: string([]byte(user.Str())), DB: string([]byte(db.Str()))}, nil
}

// appName is what a client calls itself.
func appName(metadata bson.Doc) string {
	if a := metadata.Lookup("application"); a.Type == bson.TypeObject {
		if name := a.Doc().Lookup("name"); name.Type == bson.TypeString {
			return string([]byte(name.Str()))
		}
	}
	return ""
}
