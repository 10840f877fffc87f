package indexddl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/witness"
)

// majority is the log of a member that leads, whose others confirm some commits and then no more, until they are let.
type majority struct {
	engine     *pebblekv.Engine
	ordered    chan uint64
	confirming sync.WaitGroup
	follows    bool
	mu         struct {
		sync.Mutex
		last    uint64
		allowed int           // how many more are confirmed; less than 0: all
		held    chan struct{} // closed when one is not
		more    chan struct{} // closed when they are let
	}
}

// lead has the fixture's store be that of a member which leads.
func (f *fixture) lead() *majority {
	m := &majority{engine: f.engine.(*pebblekv.Engine), ordered: make(chan uint64, 1<<12)}
	m.mu.last, _ = m.engine.Last()
	m.engine.Lead(m)
	m.letAll()
	m.confirming.Go(m.confirm)
	f.t.Cleanup(m.follow)
	return m
}

// follow has another one lead, if the member does.
func (m *majority) follow() {
	if m.follows {
		return
	}
	m.follows = true
	m.engine.Follow(errors.New("another one leads"))
	m.letAll()
	close(m.ordered)
	m.confirming.Wait()
}

// Append is kv.Log's.
func (m *majority) Append([]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.last++
	m.ordered <- m.mu.last
}

func (m *majority) confirm() {
	for number := range m.ordered {
		m.mu.Lock()
		wait := m.mu.more
		switch m.mu.allowed {
		case 0:
			close(m.mu.held)
		default:
			m.mu.allowed--
			wait = nil
		}
		m.mu.Unlock()
		if wait != nil {
			<-wait
		}
		if err := m.engine.Confirm(number); err != nil && !errors.Is(err, kv.ErrNotLeader) {
			panic(err)
		}
	}
}

// letOnly has n more commits be confirmed, and the one behind them not. held is closed when there is one.
func (m *majority) letOnly(n int) (held <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.allowed, m.mu.held, m.mu.more = n, make(chan struct{}), make(chan struct{})
	return m.mu.held
}

// letAll has all be confirmed from now on.
func (m *majority) letAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.allowed = -1
	if m.mu.more != nil {
		close(m.mu.more)
		m.mu.more = nil
	}
}

// patient is a command that waits for a majority no longer than a second.
type patient struct {
	ctx    context.Context
	p      *kv.Patience
	told   []meaning.Event // by the witness, until the command is over
	over   bool
	cancel context.CancelCauseFunc
}

func (f *fixture) patient() *patient {
	c := &patient{p: &kv.Patience{Timeout: time.Second, Clock: f.clock}}
	ctx, cancel := context.WithCancelCause(context.Background())
	c.cancel = cancel
	c.ctx = kv.WithPatience(witness.With(ctx, func(w witness.Commit) {
		if c.over {
			f.t.Error("the witness of a command that is over is told")
		}
		c.told = append(c.told, w.Events...)
	}), c.p)
	return c
}

// until runs run, and calls f again and again until it has ended.
func until(run func() error, f func()) error {
	ended := make(chan error)
	go func() { ended <- run() }()
	for {
		select {
		case err := <-ended:
			return err
		default:
		}
		f()
		_ = clock.Wait(context.Background(), clock.Wall(), time.Millisecond)
	}
}

// changes are what the tests below do without a majority: each is tried with all of its commits, one after the other, as the first that does not get one.
var changes = []struct {
	name   string
	online bool
	// prepare is done before, run is the change, done says whether it is made.
	prepare []string
	run     func(*fixture, context.Context) error
	done    func(*catalog.Collection) bool
	quiet   bool // nobody is told of it
}{
	{"createIndexes", false, nil, createA, hasA, false},
	{"createIndexes beside writers", true, nil, createA, hasA, false},
	{"a repair that builds indexes anew", false, []string{"{key: {a: 1}, name: 'a_1'}", "{key: {t: 1}, name: 't', expireAfterSeconds: 10, hideExpired: true}"}, func(f *fixture, ctx context.Context) error {
		_, err := f.RebuildIndexes(ctx, testNS)
		return err
	}, func(c *catalog.Collection) bool { return c.IDIndex().ID > 3 }, true},
	{"dropIndexes of a TTL that hides", false, []string{"{key: {a: 1}, name: 'a_1'}", "{key: {t: 1}, name: 't', expireAfterSeconds: 10, hideExpired: true}"}, func(f *fixture, ctx context.Context) error {
		_, err := f.DropIndexes(ctx, testNS, func(c *catalog.Collection) ([]*index.Definition, error) {
			return []*index.Definition{c.Index("a_1"), c.Index("t")}, nil
		})
		return err
	}, func(c *catalog.Collection) bool { return c.Index("a_1") == nil && c.Index("t") == nil }, false},
	{"collMod of a TTL that hides", false, []string{"{key: {t: 1}, name: 't', expireAfterSeconds: 10, hideExpired: true}"}, func(f *fixture, ctx context.Context) error {
		return f.Modify(ctx, testNS, func(c *catalog.Collection) (*catalog.Collection, error) {
			defs, err := f.parse("{key: {t: 1}, name: 't', expireAfterSeconds: 100000, hideExpired: true}")(c)
			if err != nil {
				return nil, err
			}
			next := c.WithIndexes([]*index.Definition{c.IDIndex(), defs[0].WithForm(c.Index("t").Form).WithID(c.Index("t").ID)})
			return next, nil
		})
	}, func(c *catalog.Collection) bool { return c.Index("t").ExpireAfterSeconds == 100000 }, false},
}

func createA(f *fixture, ctx context.Context) error {
	_, err := f.CreateIndexes(ctx, testNS, f.parse("{key: {a: 1}, name: 'a_1'}"))
	return err
}

func hasA(c *catalog.Collection) bool { return c.Index("a_1") != nil }

// TestWithoutMajority: a change that no majority gets is returned from when its patience is over, whichever of its commits waits. Where it is the last,
// the change stands; where it is another, it is undone. Until it is known what becomes of the commit the collection stays locked; then nothing is left of the change but what
// it says.
func TestWithoutMajority(t *testing.T) {
	for _, c := range changes {
		for _, end := range []string{"wtimeout", "maxTimeMS", "the lead is lost"} {
			t.Run(c.name+", "+end, func(t *testing.T) {
				stood, undone := 0, 0
				for commit := 0; ; commit++ {
					switch withoutMajority(t, c.online, c.quiet, c.prepare, c.run, c.done, end, commit) {
					case "stands":
						stood++
						continue
					case "undone":
						undone++
						continue
					}
					break
				}
				t.Logf("%d commits: it stood %d times, and was undone %d times", stood+undone, stood, undone)
				if stood != 1 || undone == 0 && (c.online || len(c.prepare) > 0) {
					t.Errorf("it stood %d times, and was undone %d times", stood, undone)
				}
			})
		}
	}
}

// withoutMajority makes a change of which so many commits get a majority, and the next does not in time. It returns what became of the change, "" where it had no more
// commits.
func withoutMajority(t *testing.T, online, quiet bool, prepare []string, run func(*fixture, context.Context) error, isDone func(*catalog.Collection) bool, end string, commits int) string {
	f := newFixture(t)
	if online {
		f.online()
	}
	var docs []string
	for i := range 20 {
		docs = append(docs, fmt.Sprintf("{_id: %d, a: %d, t: Date(%d)}", i, i, epoch.UnixMilli()))
	}
	f.must(f.insert(docs...))
	if len(prepare) > 0 {
		f.createIndexes(prepare...)
	}
	f.clock.Advance(time.Minute)
	for f.isGarbageNoted() {
		<-f.committed
	}
	m := f.lead()
	held := m.letOnly(commits)
	c := f.patient()
	code := mongoerr.WriteConcernTimeout
	if end == "maxTimeMS" {
		code = mongoerr.MaxTimeMSExpired
	}
	err := until(func() error { return run(f, c.ctx) }, func() {
		select {
		case <-held:
		default:
			return
		}
		if end == "maxTimeMS" {
			c.cancel(mongoerr.New(code, "it is over"))
		} else if f.clock.Waiting() > 0 {
			f.clock.Advance(time.Second)
		}
	})
	if err == nil && c.p.Left == nil { // what is held, if anything, is a commit of the collector's
		m.letAll()
		if !isDone(f.tested().Collection) || len(c.told) == 0 && !quiet {
			t.Errorf("with a majority: the change is there: %v, %d events told", isDone(f.tested().Collection), len(c.told))
		}
		return ""
	}
	c.over = true
	what := "stands"
	switch {
	case c.p.Left == nil || c.p.Settled == nil:
		t.Fatalf("commit %d was not left: %v", commits, err)
	case err != nil:
		what = "undone"
		if !mongoerr.Is(err, code) {
			t.Errorf("commit %d: %v", commits, err)
		}
		if len(c.told) > 0 {
			t.Errorf("commit %d: told of %v", commits, c.told)
		}
	case len(c.told) == 0 && !quiet:
		t.Errorf("commit %d: nobody was told", commits)
	}
	select {
	case <-c.p.Settled:
		t.Errorf("commit %d is settled", commits)
	default:
	}
	if isDone(f.tested().Collection) {
		t.Errorf("commit %d: the change is seen", commits)
	}
	if err := f.Modify(c.ctx, testNS, func(c *catalog.Collection) (*catalog.Collection, error) { return c, nil }); !mongoerr.Is(err, code) {
		t.Errorf("commit %d: what comes next in the same command: %v", commits, err)
	}
	c.cancel(nil) // as whoever runs the command does
	if end == "the lead is lost" {
		m.follow()
		<-c.p.Settled
		if c := f.tested(); isDone(c.Collection) || len(c.Builds()) > 0 {
			t.Errorf("commit %d: of what was never committed there is %v, %d builds", commits, c.Indexes, len(c.Builds()))
		}
		f.lead()
		f.must(f.insert("{_id: 'next'}"))
		return what
	}
	// who writes next waits
	written := make(chan error, 1)
	go func() { written <- f.insert("{_id: 'next'}") }()
	m.letAll()
	<-c.p.Settled
	f.must(<-written)
	if now := f.tested(); isDone(now.Collection) != (what == "stands") || len(now.Builds()) > 0 {
		t.Errorf("commit %d: it %s, and then: %v, %d builds", commits, what, now.Indexes, len(now.Builds()))
	}
	f.nothingLeft()
	f.validate()
	if what == "stands" {
		return what
	}
	if f.must(run(f, context.Background())); !isDone(f.tested().Collection) {
		t.Errorf("commit %d: it is not there when done again", commits)
	}
	return what
}

// TestBehindAnother: a change that waits for its turn behind a commit without a majority waits no longer than for that, and has done nothing then.
func TestBehindAnother(t *testing.T) {
	other := namespace.NS{DB: "db", Coll: "other"}
	for _, online := range []bool{false, true} {
		f := newFixture(t)
		if online {
			f.online()
		}
		f.must(f.insertInto(other, "{_id: 1, a: 1}"))
		f.must(f.insert("{_id: 1}"))
		create := func(ctx context.Context) error {
			_, err := f.CreateIndexes(ctx, other, f.parse("{key: {a: 1}, name: 'a_1'}"))
			return err
		}
		m := f.lead()
		held := m.letOnly(0)
		written := make(chan error, 1)
		go func() { written <- f.insert("{_id: 2}") }()
		<-held
		c := f.patient()
		err := until(func() error { return create(c.ctx) }, func() {
			if f.clock.Waiting() > 0 {
				f.clock.Advance(time.Second)
			}
		})
		if !mongoerr.Is(err, mongoerr.WriteConcernTimeout) || c.p.Left != nil || len(c.told) > 0 {
			t.Errorf("it ends with %v, left %v, told %v", err, c.p.Left, c.told)
		}
		m.letAll()
		f.must(<-written)
		f.nothingLeft()
		if c, _ := f.store.CollectionNamed(other); hasA(c.Collection) || len(c.Builds()) > 0 {
			t.Errorf("there is %v, %d builds", c.Indexes, len(c.Builds()))
		}
		f.must(create(context.Background()))
	}
}

// TestFirstIndexWithoutMajority: an index of a collection that is made for it is not tried before that is there.
func TestFirstIndexWithoutMajority(t *testing.T) {
	f := newFixture(t)
	m := f.lead()
	held := m.letOnly(0)
	c := f.patient()
	err := until(func() error { return createA(f, c.ctx) }, func() {
		if f.clock.Waiting() > 0 {
			f.clock.Advance(time.Second)
		}
	})
	<-held
	if !mongoerr.Is(err, mongoerr.WriteConcernTimeout) || c.p.Left == nil || len(c.told) != 1 || c.told[0].Kind != meaning.CollectionCreated {
		t.Errorf("it ends with %v, left %v, told %v", err, c.p.Left, c.told)
	}
	m.letAll()
	<-c.p.Settled
	f.nothingBuilt()
}

// TestPanicApart: what panics in a change that is run apart does so where the command is, and nothing stays locked.
func TestPanicApart(t *testing.T) {
	f := newFixture(t)
	f.must(f.insert("{_id: 1}"))
	f.lead()
	panicked := func() (with any) {
		defer func() { with = recover() }()
		_ = f.Modify(f.patient().ctx, testNS, func(*catalog.Collection) (*catalog.Collection, error) { panic("broken") })
		return nil
	}()
	if panicked != "broken" {
		t.Errorf("it panicked with %v", panicked)
	}
	f.must(createA(f, f.patient().ctx))
	f.validate()
}
