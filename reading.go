package ebb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/handover"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/member"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/peer"
	"github.com/ebbdb/ebb/internal/router"
	"github.com/ebbdb/ebb/internal/server"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// Of several servers over one keyspace, one works on the data. The others answer what reads, and hand on the rest: each has a database of its own, over an
// engine that follows (tikvkv.Follower), and reads from the cluster itself.
//
// Before it answers a read, a server asks the one that works what has come since it asked last, and takes note of that. So the read sees all that anybody was
// acknowledged before, wherever, and what a client does by one server it sees by another. Reads that come while it asks share the next question: one is on its
// way at a time, and the more clients read these moments, the longer the next one waits for others. What is asked for is a few bytes where nothing has happened,
// whatever is read.

const (
	// askTime bounds one question, and idlePause is how long nobody asks at most, so that little is told at once.
	askTime   = 5 * time.Second
	idlePause = 500 * time.Millisecond
	// Each connection that reads these moments has questions be that far apart, up to maxSpacing: what they cost the other server does not grow with the
	// readers. A moment is a readerWindow.
	readerSpacing = 50 * time.Microsecond
	maxSpacing    = 2 * time.Millisecond
	readerWindow  = 100 * time.Millisecond
	// awaitTime is how long the other server waits for something to tell whoever wants to know, and quietWatches how often it is asked to when nobody wants to.
	awaitTime    = time.Second
	quietWatches = 5
	// reopenReads is how long a server waits that could not read beside the other, until it tries again.
	reopenReads = time.Second
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
	for failing := ""; ctx.Err() == nil; {
		err := r.once(ctx, of)
		if ctx.Err() != nil {
			return
		}
		if err.Error() != failing {
			log.Debug("The server does not read itself at the moment, and hands reads on", "error", err.Error())
			failing = err.Error()
		}
		if clock.Wait(ctx, clock.Wall(), reopenReads) != nil {
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
	defer conn.Close()
	t := &told{worker: worker{of: of, conn: conn, address: s.tikvOptions().Address}, clock: s.clock, rounds: rounds{wake: make(chan struct{}, 1)}, changes: make(chan struct{}, 1)}
	begin, err := t.ask(ctx, fromNow)
	if err != nil {
		return err
	}
	engine, err := s.followTiKV(ctx, begin.Told)
	if err != nil {
		return err
	}
	t.engine = engine
	t.note(begin)
	d, err := openDatabase(s, origin{engine: engine, role: member.Role{Kind: member.Beside}, clock: t, told: t}, func() {})
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	if err := d.commands.LoadSettings(ctx); err != nil {
		return errors.Join(err, d.close(), engine.Close())
	}
	r.holder.Put(d)
	running, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { t.watch(running, d, s.peerOptions) })
	err = t.run(ctx, d)
	stop()
	watching.Wait()
	t.rounds.fail(err)
	return errors.Join(err, s.endOf(&r.holder, mongoerr.New(mongoerr.HostUnreachable, "the server that works on the data is another one, or not reached")), engine.Close())
}

// told is what a server knows of the one that works on the data. It is the clock of who reads beside that one: its time is what it was told last.
type told struct {
	worker
	clock     clock.Clock
	engine    *tikvkv.Follower
	rounds    rounds
	readers   readers
	changes   chan struct{} // holds one token where somebody is about to follow changes
	millis    atomic.Int64
	hidesUpTo atomic.Int64
	hidesAll  atomic.Bool
	watched   atomic.Bool // reads are to be handed on
	settings  atomic.Bool // have changed
	settingOf sync.Map    // by the number of a collection, whether it has settings
}

// Now implements clock.Clock.
func (t *told) Now() time.Time { return time.UnixMilli(t.millis.Load()) }

// Read implements clock.Clock.
func (t *told) Read() (wall time.Time, monotonic time.Duration) {
	return t.Now(), clock.Monotonic(t.clock)
}

// NewTimer implements clock.Clock.
func (t *told) NewTimer(d time.Duration) clock.Timer { return t.clock.NewTimer(d) }

// asOptions has a store hide as the other server does.
func (t *told) asOptions(o *storage.Options) {
	o.HideExpired, o.HidesUpTo = t.hidesAll.Load, t.hidesUpTo.Load
	o.OnCommit = func(c *kv.Commit) {
		if m, ok := c.Meaning.(*meaning.Meaning); ok && m != nil {
			for _, change := range m.Changes {
				if _, is := t.settingOf.Load(change.Collection); is {
					t.settings.Store(true)
				}
			}
			if m.DDL != nil {
				t.settings.Store(true) // there may be settings now
			}
		}
	}
}

// note takes note of an answer whose groups were applied. Time does not go back: where it stands still for the other server it is told an earlier one.
func (t *told) note(a answer) {
	if now := a.now; now > t.millis.Load() {
		t.millis.Store(now)
	}
	t.hidesUpTo.Store(a.hidesUpTo)
	t.hidesAll.Store(a.hidesAll)
	t.watched.Store(a.watched)
}

// run asks whenever somebody wants to read, and now and then, until something fails or ctx ends.
func (t *told) run(ctx context.Context, d *database) error {
	t.findSettings(d)
	for asked := time.Duration(0); ; {
		pause := clock.Wall().NewTimer(idlePause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return context.Cause(ctx)
		case <-t.rounds.wake:
		case <-pause.C():
		}
		pause.Stop()
		spacing := min(time.Duration(t.readers.lately())*readerSpacing, maxSpacing)
		if wait := asked + spacing - clock.Monotonic(clock.Wall()); wait > readerSpacing {
			if err := clock.Wait(ctx, clock.Wall(), wait); err != nil {
				return err
			}
		}
		asked = clock.Monotonic(clock.Wall())
		these := t.rounds.begin()
		if err := t.round(ctx, d); err != nil {
			these.end(err)
			return err
		}
		these.end(nil)
	}
}

// round has the database know all that the other server has told anybody before it.
func (t *told) round(ctx context.Context, d *database) error {
	for {
		a, err := t.ask(ctx, int64(t.engine.Place()))
		if err != nil {
			return err
		}
		if err := t.engine.Follow(a.Told, func(c *kv.Commit) error { return d.store.Apply(ctx, c, kv.Synced) }); err != nil {
			return err
		}
		if a.More {
			continue
		}
		t.note(a)
		if err := d.commands.TakeReadParameters(a.parameters); err != nil {
			return err
		}
		if t.settings.Swap(false) {
			t.findSettings(d)
			return d.commands.LoadSettings(ctx)
		}
		return nil
	}
}

// expectChanges tells that somebody is about to follow changes.
func (t *told) expectChanges() {
	select {
	case t.changes <- struct{}{}:
	default:
	}
}

// watch has questions be asked as soon as there is something to be told, as long as change streams are open here, until ctx ends. Without it they would hear
// of it when somebody reads, or when nobody has asked for idlePause.
func (t *told) watch(ctx context.Context, d *database, peers func() peer.Options) {
	for {
		select {
		case <-t.changes:
		case <-ctx.Done():
			return
		}
		if err := t.watchOpen(ctx, d, peers); err != nil && clock.Wait(ctx, clock.Wall(), idlePause) != nil {
			return
		}
	}
}

// watchOpen does so until no change stream is open any more.
func (t *told) watchOpen(ctx context.Context, d *database, peers func() peer.Options) error {
	conn, err := peer.Dial(ctx, t.of.Address, peers())
	if err != nil {
		return err
	}
	defer conn.Close()
	w := worker{of: t.of, conn: conn}
	known := t.engine.Place()
	for quiet := 0; quiet < quietWatches && ctx.Err() == nil; quiet++ {
		place, err := w.await(ctx, max(known, t.engine.Place()))
		if err != nil {
			return err
		}
		if known = max(known, place); known > t.engine.Place() {
			t.rounds.poke()
		}
		if d.store.LogWatches().Open() > 0 {
			quiet = -1
		}
		if clock.Wait(ctx, clock.Wall(), maxSpacing) != nil {
			break
		}
	}
	return nil
}

// findSettings finds which collections have settings.
func (t *told) findSettings(d *database) {
	for _, c := range d.store.Catalog().All() {
		if command.IsSetting(c.NS) {
			t.settingOf.Store(c.ID, true)
		}
	}
}

// rounds has those who want to read wait for the next question.
type rounds struct {
	mu     sync.Mutex // guards next and failed
	next   *round     // of those who came since the last one began; nil: nobody
	failed error
	wake   chan struct{} // holds one token
}

// round is those who wait for one question.
type round struct {
	done chan struct{}
	err  error // set before done is closed
}

// join returns when a question has been answered that was asked after it was called.
func (r *rounds) join(ctx context.Context) error {
	r.mu.Lock()
	if r.failed != nil {
		r.mu.Unlock()
		return r.failed
	}
	if r.next == nil {
		r.next = &round{done: make(chan struct{})}
	}
	mine := r.next
	r.mu.Unlock()
	r.poke()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// poke has a question be asked soon.
func (r *rounds) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// begin is those who wait for the question that is asked now.
func (r *rounds) begin() *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	these := r.next
	r.next = nil
	return these
}

// fail has all who wait, and all who come, be told why nothing is asked any more.
func (r *rounds) fail(err error) {
	r.mu.Lock()
	r.failed = err
	these := r.next
	r.next = nil
	r.mu.Unlock()
	these.end(err)
}

func (r *round) end(err error) {
	if r != nil {
		r.err = err
		close(r.done)
	}
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

// readers counts the connections that read in a window of time.
type readers struct {
	mu        sync.Mutex // guards the rest
	window    int64
	now, last int64
}

// count counts a connection in the window of the moment.
func (r *readers) count(k *reader) {
	window := int64(clock.Monotonic(clock.Wall()) / readerWindow)
	if k.window == window {
		return
	}
	k.window = window
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn(window)
	r.now++
}

// turn goes on to a window. The caller holds mu.
func (r *readers) turn(window int64) {
	switch {
	case r.window == window:
	case r.window == window-1:
		r.window, r.last, r.now = window, r.now, 0
	default:
		r.window, r.last, r.now = window, 0, 0
	}
}

// lately is how many have read in the window of the moment or, if that were more, in the one before.
func (r *readers) lately() int64 {
	window := int64(clock.Monotonic(clock.Wall()) / readerWindow)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn(window)
	return max(r.now, r.last)
}

// forget is for a client who may be somebody else from now on.
func (k *reader) forget() {
	k.part()
	k.knows, k.unknown = false, false
}

// note takes note of what is handed on: who the client says it is, or that it may be another one.
func (k *reader) note(body bson.Doc, hello bool) {
	if client := body.Lookup("client"); hello && client.Type == bson.TypeObject && k.metadata == nil {
		k.metadata = client.Doc().Clone()
	}
	if logsIn(body, hello) || body.FirstKey() == "logout" {
		k.forget()
	}
}

// answer answers a request, if it is one that is answered here.
func (r *reading) answer(ctx context.Context, c *server.Conn, k *caller, req *server.Request) (handed server.Reply, answered bool) {
	forAll := command.IsForAll(req.Body)
	if !forAll && !command.MayAnswer(req.Body) {
		return handed, false
	}
	d := r.holder.TryEnter()
	if d == nil {
		return handed, false
	}
	defer d.Leave()
	if !r.admit(ctx, d, c, k) {
		return handed, false
	}
	if forAll { // the other server does it, too, and answers
		d.commands.Handle(ctx, k.reads.conn, request(req))
		return handed, false
	}
	if command.IsAboutCursors(req.Body) && !d.commands.Answers(req.Body, false) { // the other server has them
		return handed, false
	}
	d.told.readers.count(&k.reads)
	if d.commands.Watches(req.Body) {
		d.told.expectChanges()
		if command.IsAboutCursors(req.Body) { // it tells of what has come, and not of all that has
			r.answered.Add(1)
			return reply(d.commands.Handle(ctx, k.reads.conn, request(req))), true
		}
	}
	if err := d.told.rounds.join(ctx); err != nil || !d.commands.Answers(req.Body, d.told.watched.Load()) {
		return handed, false
	}
	r.answered.Add(1)
	q := request(req)
	q.ExhaustAllowed = false // each of its replies would have to be preceded by a question
	return reply(d.commands.Handle(ctx, k.reads.conn, q)), true
}

// admit has the client be here whom it has logged in as; false where that is not known.
func (r *reading) admit(ctx context.Context, d *database, c *server.Conn, k *caller) bool {
	logsIn := r.server.opts.Authorization || k.loggedIn
	if logsIn && (!k.known || k.reads.unknown) {
		return false
	}
	if k.reads.database != d {
		k.reads.part()
		k.reads.knows = false
		d.meet(c, &k.reads.seat)
		if k.reads.metadata != nil {
			k.reads.conn.SetMetadata(k.reads.metadata, appName(k.reads.metadata))
		}
	}
	if !logsIn || k.reads.knows {
		return true
	}
	name, err := r.whoIs(ctx, c, k)
	if err == nil {
		err = d.commands.BecomeStored(ctx, k.reads.conn, name)
	}
	k.reads.knows, k.reads.unknown = err == nil, err != nil
	return err == nil
}

// whoIs asks the other server as whom a client has logged in.
func (r *reading) whoIs(ctx context.Context, c *server.Conn, k *caller) (name auth.Name, err error) {
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

// worker is the way to the server that works on the data. It is used by one goroutine.
type worker struct {
	of      router.Target
	conn    *peer.Conn
	address string // where that one reaches this one
}

// answer is what that server says.
type answer struct {
	tikvkv.Told
	now, hidesUpTo    int64
	hidesAll, watched bool
	parameters        bson.Doc
}

const (
	followName = "ebbFollow"
	// fromNow asks where who follows begins.
	fromNow = -1
)

// isFollowing says whether a request is another server's that asks what has come.
func isFollowing(body bson.Doc) bool { return body.FirstKey() == followName }

func (a *worker) ask(ctx context.Context, place int64) (got answer, err error) {
	ctx, cancel := clock.WithTimeout(ctx, clock.Wall(), askTime)
	defer cancel()
	d, err := a.conn.Call(ctx, bson.Build().String(followName, a.of.ID).Int64("place", place).String("address", a.address).String("$db", "admin").Doc())
	if err != nil {
		return got, err
	}
	return readAnswer(d)
}

// await returns when there is something behind a place, or after awaitTime, and says up to where.
func (a *worker) await(ctx context.Context, place uint64) (uint64, error) {
	ctx, cancel := clock.WithTimeout(ctx, clock.Wall(), awaitTime+askTime)
	defer cancel()
	d, err := a.conn.Call(ctx, bson.Build().String(followName, a.of.ID).Int64("await", int64(place)).String("$db", "admin").Doc())
	if err != nil {
		return 0, err
	}
	got := d.Lookup("place")
	if got.Type != bson.TypeInt64 {
		return 0, errBrokenAnswer
	}
	return uint64(got.Int64()), nil
}

var errBrokenAnswer = errors.New("another server's answer is broken")

func readAnswer(d bson.Doc) (got answer, err error) {
	number := func(name string) int64 {
		v := d.Lookup(name)
		if v.Type != bson.TypeInt64 && err == nil {
			err = fmt.Errorf("another server's answer has no %s", name)
		}
		if err != nil {
			return 0
		}
		return v.Int64()
	}
	got.Place, got.TS, got.Number, got.Millis = uint64(number("place")), uint64(number("ts")), uint64(number("number")), number("millis")
	got.now, got.hidesUpTo = number("now"), number("hidesUpTo")
	got.More, got.hidesAll, got.watched = d.Lookup("more").Truthy(), d.Lookup("hidesAll").Truthy(), d.Lookup("watched").Truthy()
	groups, parameters := d.Lookup("groups"), d.Lookup("parameters")
	if err != nil || groups.Type != bson.TypeArray || parameters.Type != bson.TypeObject {
		return got, errors.Join(err, errBrokenAnswer)
	}
	got.parameters = parameters.Doc()
	for it := groups.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			return got, errBrokenAnswer
		}
		got.Groups = append(got.Groups, it.Value().Doc())
	}
	return got, nil
}

// followed answers another server that asks what has come.
func (s *Server) followed(ctx context.Context, c *server.Conn, k *caller, req *server.Request) server.Reply {
	body, err := s.tellFollower(ctx, c, k, req.Body)
	if err != nil {
		return server.Reply{Body: mongoerr.Reply(err), Close: req.Unacknowledged()}
	}
	return server.Reply{Body: body}
}

func (s *Server) tellFollower(ctx context.Context, c *server.Conn, k *caller, body bson.Doc) (bson.Doc, error) {
	id, place := body.Lookup(followName), body.Lookup("place")
	if behind := body.Lookup("await"); id.Type == bson.TypeString && behind.Type == bson.TypeInt64 {
		return s.awaitGroup(ctx, c, k, id.Str(), uint64(behind.Int64()))
	}
	if id.Type != bson.TypeString || place.Type != bson.TypeInt64 {
		return nil, mongoerr.New(mongoerr.FailedToParse, "the command %s is for servers among themselves", followName)
	}
	d, engine := s.serving.TryEnter(), s.foundation.tikv.Load()
	if d == nil {
		return nil, errNotHere
	}
	defer d.Leave()
	if s.sharing == nil || engine == nil || engine.Holder().ID != id.Str() {
		return nil, errNotHere
	}
	if err := s.admitMember(ctx, c, k); err != nil {
		return nil, err
	}
	if address := body.Lookup("address"); address.Type == bson.TypeString {
		s.sharing.heard.hear(string([]byte(address.Str())))
	}
	// What the others are to hide by is read before what was committed: it holds behind that.
	hidesAll := d.expiry.HideExpired.Get()
	now, hidesUpTo := d.store.ToldTime()
	watched, parameters := d.commands.WatchesReads(), d.commands.ReadParameters()
	var told tikvkv.Told
	var err error
	if n := place.Int64(); n == fromNow {
		told, err = engine.Latest()
	} else {
		told, err = engine.Since(uint64(n))
	}
	if err != nil {
		return nil, err
	}
	b := bson.Build().Int64("place", int64(told.Place)).Int64("ts", int64(told.TS)).Int64("number", int64(told.Number)).Int64("millis", told.Millis).
		Bool("more", told.More).Int64("now", now).Int64("hidesUpTo", hidesUpTo).Bool("hidesAll", hidesAll).Bool("watched", watched).Array("groups")
	for i, g := range told.Groups {
		b.Document(bson.IndexKey(i), g)
	}
	return b.End().Document("parameters", parameters).Double("ok", 1).Doc(), nil
}

// awaitGroup returns when there is a group behind a place, or after awaitTime. Nothing of the database is held meanwhile.
func (s *Server) awaitGroup(ctx context.Context, c *server.Conn, k *caller, id string, place uint64) (bson.Doc, error) {
	engine := s.foundation.tikv.Load()
	if s.sharing == nil || engine == nil || engine.Holder().ID != id {
		return nil, errNotHere
	}
	if err := s.admitMember(ctx, c, k); err != nil {
		return nil, err
	}
	ctx, cancel := clock.WithTimeout(ctx, clock.Wall(), awaitTime)
	defer cancel()
	engine.Await(ctx, place)
	return bson.Build().Int64("place", int64(engine.Place())).Double("ok", 1).Doc(), nil
}
