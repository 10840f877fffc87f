package indexddl

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/build"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
	"github.com/ebbdb/ebb/internal/testseed"
)

// beside builds indexes beside writers; during runs when the build is published and before it has read anything.
func (f *fixture) beside(during func(*build.Underway), specs ...string) (Created, error) {
	return f.besideOf(context.Background(), during, specs...)
}

func (f *fixture) besideOf(ctx context.Context, during func(*build.Underway), specs ...string) (Created, error) {
	f.online()
	return f.CreateIndexesSeen(ctx, testNS, ttlchange.OnHidden{}, f.parse(specs...), during)
}

var builtIndexes = []string{
	`{key: {a: 1}, name: "a"}`,
	`{key: {a: -1, "b.c": 1}, name: "ab", sparse: true}`,
	`{key: {b: 1}, name: "b", partialFilterExpression: {a: {$gt: 3}}}`,
	`{key: {s: 1}, name: "s", collation: {locale: "en", strength: 2}}`,
	`{key: {s: "hashed"}, name: "hash"}`,
	`{key: {s: "text"}, name: "text"}`,
	`{key: {"$**": 1}, name: "wild"}`,
	`{key: {u: 1}, name: "u", unique: true, sparse: true}`,
	`{key: {_ts: 1}, name: "ts", expireAfterSeconds: 500}`,
	`{key: {d: 1}, name: "d", expireAfterSeconds: 5, hideExpired: true}`,
}

// TestBuildBesideWriters builds indexes while documents come, change, expire and go, at each moment at which the builder
// looks at the store: the indexes are what the documents say, or the build fails for a reason that is in the documents.
func TestBuildBesideWriters(t *testing.T) {
	seed := testseed.Of(t)
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	failed, round := 0, 0
	for ; round < rounds || (failed == 0 || failed == round) && round < 20*rounds; round++ { // until some end either way
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		if !buildBesideWriters(t, r) {
			failed++
		}
	}
	if failed == 0 || failed == round {
		t.Errorf("%d builds of %d failed", failed, round)
	}
}

func buildBesideWriters(t *testing.T, rng *rand.Rand) (good bool) {
	f := newFixture(t)
	h := &hooked{Engine: f.engine}
	f.engine = h
	f.reopen()
	clustered := rng.IntN(3) == 0
	options := bson.EmptyDoc
	if clustered {
		options = bson.MustDoc(`{clusteredIndex: {key: {_id: 1}, unique: true}}`)
	}
	_, err := f.store.CreateCollection(context.Background(), testNS, options)
	f.must(err)
	f.createIndexes(`{key: {x: 1}, name: "x", expireAfterSeconds: 3, hideExpired: true}`)
	values := 4 + rng.IntN(60) // with few, unique keys meet
	for range 60 {
		f.disturb(rng, values)
	}
	var specs []string
	for _, spec := range builtIndexes {
		if rng.IntN(3) == 0 {
			specs = append(specs, spec)
		}
	}
	var disturb func()
	disturb = func() {
		if len(f.tested().Builds()) == 0 {
			return // it is the collector who looks
		}
		if f.mayWrite() { // otherwise the builder holds the lock
			for range rng.IntN(4) {
				f.disturb(rng, values)
			}
		}
		h.arm(disturb)
	}
	_, err = f.beside(func(*build.Underway) { disturb() }, specs...)
	h.arm(nil)
	f.validate()
	f.nothingLeft()
	if err == nil {
		return true
	}
	if !mongoerr.Is(err, mongoerr.DuplicateKey) && !mongoerr.Is(err, mongoerr.CannotIndexParallelArrays) {
		t.Errorf("build of %v: %v", specs, err)
	}
	return false
}

// disturb does one thing to some document, and now and then lets some expire or sweeps.
func (f *fixture) disturb(rng *rand.Rand, values int) {
	f.t.Helper()
	id := int32(rng.IntN(80))
	value := func() string {
		switch rng.IntN(6) {
		case 0:
			return fmt.Sprintf("[%d, %d]", rng.IntN(values), rng.IntN(9))
		case 1:
			return fmt.Sprintf("{c: %d}", rng.IntN(5))
		case 2:
			return fmt.Sprintf("%d.0", rng.IntN(values))
		}
		return fmt.Sprint(rng.IntN(values))
	}
	doc := fmt.Sprintf(`{_id: %d, a: %s, s: "Word%d other"`, id, value(), rng.IntN(9))
	if rng.IntN(9) > 0 { // otherwise arrays in a and in b may meet
		doc += fmt.Sprintf(", b: %d", rng.IntN(5))
	} else if rng.IntN(5) == 0 {
		doc += ", a: [1], b: [{c: 1}, {c: 2}]"
	}
	if rng.IntN(3) == 0 {
		doc += fmt.Sprintf(", u: %d", rng.IntN(3*values))
	}
	for _, name := range []string{"d", "x"} {
		if rng.IntN(4) == 0 {
			doc += fmt.Sprintf(", %s: new Date(%d)", name, f.store.Now()-int64(rng.IntN(6000)))
		}
	}
	doc += "}"
	var err error
	switch rng.IntN(12) {
	case 0, 1, 2, 3:
		if err = f.insert(doc); mongoerr.Is(err, mongoerr.DuplicateKey) {
			err = nil
		}
	case 4, 5:
		f.change(id, "")
	case 6:
		f.clock.Advance(time.Duration(rng.IntN(400)) * time.Millisecond)
	case 7:
		f.expire()
	default:
		f.change(id, doc)
	}
	f.must(err)
}

// TestUniqueBuild: what has one key at the end of the build, and only that, is in its way.
func TestUniqueBuild(t *testing.T) {
	const u = `{key: {u: 1}, name: "u", unique: true}`
	gone := func(f *fixture, id int32) { f.change(id, "") }
	for name, c := range map[string]struct {
		docs   []string
		during func(*fixture)
		fails  bool
	}{
		"two stay":           {[]string{`{_id: 1, u: 1}`, `{_id: 2, u: 1}`}, func(*fixture) {}, true},
		"the second goes":    {[]string{`{_id: 1, u: 1}`, `{_id: 2, u: 1}`}, func(f *fixture) { gone(f, 2) }, false},
		"the first goes":     {[]string{`{_id: 1, u: 1}`, `{_id: 2, u: 1}`, `{_id: 3, u: 0}`}, func(f *fixture) { gone(f, 1) }, false},
		"one of three goes":  {[]string{`{_id: 1, u: 1}`, `{_id: 2, u: 1}`, `{_id: 3, u: 1}`}, func(f *fixture) { gone(f, 1) }, true},
		"one comes":          {[]string{`{_id: 1, u: 1}`}, func(f *fixture) { f.must(f.insert(`{_id: 2, u: 1}`)) }, true},
		"one comes and goes": {[]string{`{_id: 1, u: 1}`}, func(f *fixture) { f.must(f.insert(`{_id: 2, u: 1}`)); gone(f, 2) }, false},
		"one takes a key that is given up": {[]string{`{_id: 1, u: 1}`}, func(f *fixture) {
			f.change(1, `{_id: 1, u: 2}`)
			f.must(f.insert(`{_id: 2, u: 1}`))
		}, false},
		"one expires": {[]string{`{_id: 1, u: 1, x: new Date(1000000000000)}`, `{_id: 2, u: 1}`}, func(f *fixture) { f.clock.Advance(time.Hour) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createIndexes(`{key: {x: 1}, name: "x", expireAfterSeconds: 3, hideExpired: true}`)
			f.must(f.insert(c.docs...))
			_, err := f.beside(func(*build.Underway) { c.during(f) }, u)
			if got := mongoerr.Is(err, mongoerr.DuplicateKey); got != c.fails || !got && err != nil {
				t.Errorf("got %v", err)
			}
			f.validate()
			f.nothingLeft()
		})
	}
}

// TestBuildOfUnindexable: a document without keys that is written beside a build is the build's worry, if it stays.
func TestBuildOfUnindexable(t *testing.T) {
	const parallel = `{_id: 1, a: [1, 2], b: [1, 2]}`
	for _, stays := range []bool{false, true} {
		f := newFixture(t)
		f.must(f.insert(`{_id: 0, a: 1}`, `{_id: 1, a: 1}`))
		_, err := f.beside(func(*build.Underway) {
			f.change(1, parallel)
			f.must(f.insert(strings.Replace(parallel, "1", "2", 1)))
			if !stays {
				f.change(1, `{_id: 1, a: [3]}`)
				f.change(2, "")
			}
		}, `{key: {a: 1, b: 1}, name: "ab"}`)
		if !stays {
			f.must(err)
			f.validate()
			continue
		}
		if !mongoerr.Is(err, mongoerr.CannotIndexParallelArrays) {
			t.Errorf("got %v", err)
		}
		f.nothingBuilt()
	}
}

// TestBuildAgainstChanges: what ends a build and what has to wait for it.
func TestBuildAgainstChanges(t *testing.T) {
	ctx := context.Background()
	specs := []string{`{key: {a: 1}, name: "a"}`, `{key: {b: 1}, name: "b"}`}
	other := namespace.NS{DB: "db", Coll: "other"}
	modify := func(f *fixture) error {
		return f.Modify(ctx, testNS, func(c *catalog.Collection) (*catalog.Collection, error) { return c, nil })
	}
	drop := func(names ...string) func(*fixture) error {
		return func(f *fixture) error {
			_, err := f.DropIndexes(ctx, testNS, func(c *catalog.Collection) (defs []*index.Definition, err error) {
				for _, name := range names {
					defs = append(defs, c.Index(name))
				}
				return defs, nil
			})
			return err
		}
	}
	for name, c := range map[string]struct {
		do      func(*fixture) error
		refused bool
		gone    bool // the collection
	}{
		"collMod": {modify, true, false},
		"reIndex": {func(f *fixture) error { _, err := f.RebuildIndexes(ctx, testNS); return err }, true, false},
		"rename":  {func(f *fixture) error { return f.store.Rename(ctx, testNS, other, false) }, true, false},
		"rename to": {func(f *fixture) error {
			f.must(f.insertInto(other, `{_id: 1}`))
			return f.store.Rename(ctx, other, testNS, true)
		}, true, false},
		"drop a part": {drop("a"), true, false},
		"drop both":   {drop("a", "b"), false, false},
		"drop":        {func(f *fixture) error { _, err := f.store.DropCollection(ctx, testNS); return err }, false, true},
		"drop all":    {func(f *fixture) error { _, err := f.store.DropDatabase(ctx, "db"); return err }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.must(f.insert(`{_id: 1, a: 1}`))
			var did error
			_, err := f.beside(func(*build.Underway) { did = c.do(f) }, specs...)
			switch {
			case c.refused:
				if err != nil || !mongoerr.Is(did, mongoerr.BackgroundOperationInProgressForNamespace) {
					t.Errorf("the change: %v, the build: %v", did, err)
				}
				f.validate()
				return
			case did != nil || !mongoerr.Is(err, mongoerr.IndexBuildAborted):
				t.Errorf("the change: %v, the build: %v", did, err)
			}
			if !c.gone {
				f.nothingBuilt()
			}
			f.nothingLeft()
		})
	}
}

// TestKilledBuild: one who is told to stop leaves nothing, and says why it stopped.
func TestKilledBuild(t *testing.T) {
	f := newFixture(t)
	f.must(f.insert(`{_id: 1, a: 1}`))
	ctx, kill := context.WithCancelCause(context.Background())
	why := mongoerr.New(mongoerr.Interrupted, "operation was interrupted")
	_, err := f.besideOf(ctx, func(*build.Underway) { kill(why) }, `{key: {a: 1}, name: "a"}`)
	if !mongoerr.Is(err, mongoerr.Interrupted) {
		t.Errorf("got %v", err)
	}
	f.nothingBuilt()
}

// ticking is a clock that goes on by a millisecond whenever somebody looks at it.
type ticking struct{ *clock.Fake }

func (c ticking) Now() time.Time {
	c.Advance(time.Millisecond)
	return c.Fake.Now()
}

// TestRetimedBesideNew: what expires while new indexes are built, and is deleted because the same command loosens the TTL on
// _ts, is in none of them.
func TestRetimedBesideNew(t *testing.T) {
	for _, beside := range []bool{false, true} {
		f := newFixture(t)
		f.createIndexes(`{key: {_ts: 1}, name: "ts", expireAfterSeconds: 1}`)
		for i := range 500 { // one a millisecond
			f.clock.Advance(time.Millisecond)
			f.must(f.insert(fmt.Sprintf("{_id: %d, a: %d}", i, i)))
		}
		f.clock.Advance(700 * time.Millisecond)
		f.options.Clock = ticking{f.clock}
		f.reopen()
		if beside {
			f.online()
		}
		f.createIndexes(`{key: {_ts: 1}, name: "ts", expireAfterSeconds: 10}`, `{key: {a: 1}, name: "a"}`)
		f.validate()
	}
}

// TestTwoBuilds: who wants the same index waits for it and finds it there; another one is built at the same time; ready
// ones may be dropped.
func TestTwoBuilds(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(`{key: {z: 1}, name: "z"}`)
	f.must(f.insert(`{_id: 1, a: 1}`))
	second := make(chan Created)
	made, err := f.beside(func(b *build.Underway) {
		go func() {
			made, err := f.CreateIndexes(context.Background(), testNS, f.parse(`{key: {a: 1}, name: "a"}`))
			if err != nil {
				t.Error(err)
			}
			second <- made
		}()
		_, err := f.CreateIndexes(context.Background(), testNS, f.parse(`{key: {a: 1}, name: "a", sparse: true}`))
		if !mongoerr.Is(err, mongoerr.IndexKeySpecsConflict) {
			t.Errorf("another one of that name: %v", err)
		}
		between, err := f.CreateIndexes(context.Background(), testNS, f.parse(`{key: {c: 1}, name: "c"}`))
		if err != nil || between.Before != 2 || between.After != 3 {
			t.Errorf("another index at the same time: %+v, %v", between, err)
		}
		_, err = f.DropIndexes(context.Background(), testNS, func(c *catalog.Collection) ([]*index.Definition, error) {
			return []*index.Definition{c.Index("z")}, nil
		})
		f.must(err)
		f.must(f.insert(`{_id: 2, a: [1, 2]}`))
		if builds := f.Builds(b.Collection); len(builds) != 1 || builds[0] != b || b.Phase() != build.PhaseBegin {
			t.Errorf("builds %v", builds)
		}
	}, `{key: {a: 1}, name: "a"}`, `{key: {b: 1}, name: "b"}`)
	f.must(err)
	if made.Before != 2 || made.After != 4 || len(made.Indexes) != 2 {
		t.Errorf("made %+v", made)
	}
	if made := <-second; made.Before != 4 || made.After != 4 || made.Indexes != nil {
		t.Errorf("the second made %+v", made)
	}
	f.validate()
}

// TestLoadFails: what the engine refuses ends the build and leaves nothing.
func TestLoadFails(t *testing.T) {
	f := newFixture(t)
	full := errors.New("the disk is full")
	f.engine = unloading{f.engine, full}
	f.reopen()
	f.must(f.insert(`{_id: 1, a: 1}`))
	if _, err := f.beside(func(*build.Underway) {}, `{key: {a: 1}, name: "a"}`); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	f.nothingBuilt()
}

type unloading struct {
	kv.Engine
	err error
}

func (u unloading) Load(context.Context, func() (key, value []byte, ok bool, err error)) error {
	return u.err
}
