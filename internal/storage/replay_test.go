package storage

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/history"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

var replayFor = flag.Duration("replay-for", 0, "how long TestReplay goes on; 0 is a few hundred steps")

// replayRounds is how many rounds of replaySteps TestReplay takes when it is not told how long.
const (
	replayRounds = 12
	replaySteps  = 40
)

// TestReplay does at random what can be done to a store, and gives its Commits, as bytes, to a second one. After each round both
// have the same keys and the same state in memory; after both are opened anew they still have; and what the second one has
// is a store that works when it writes itself.
func TestReplay(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("go test ./internal/storage -run TestReplay -seed %d -replay-for %v", seed, *replayFor)
	r := newReplay(t, seed)
	r.run()
	r.takeOver()
}

// run takes its rounds.
func (r *replay) run() {
	t := r.t
	begin := clock.Wall().Now()
	for round := 0; round < replayRounds || clock.Since(clock.Wall(), begin) < *replayFor; round++ {
		for range replaySteps {
			r.step()
		}
		r.compare(fmt.Sprint("round ", round))
		if round%4 == 3 {
			r.reopen()
			r.compare(fmt.Sprint("opened anew after round ", round))
		}
	}
	t.Logf("%d commits: %v", r.follower.applied, r.did)
}

// replay is a store, and one that follows it.
type replay struct {
	*fixture
	rng      *rand.Rand
	stream   stream
	ask      func() // has the follower know what was committed; nil: it is given the stream
	follower *follower
	did      map[string]int
	sessions [3]replaySession
	beside   [2]*replayTransaction // transactions of several statements that are open, or nil
	mu       sync.Mutex            // guards rng and did while several write
}

// stream is what the first store commits, as bytes, and the pairs of its tables.
type stream struct {
	mu   sync.Mutex // guards sent
	sent []sentCommit
}

type sentCommit struct {
	encoded []byte
	pairs   kv.Pairs // nil where there is no table
	err     error
}

func (s *stream) send(c *kv.Commit) {
	var out sentCommit
	out.encoded, out.err = c.AppendBinary(nil)
	if c.Table != nil && out.err == nil {
		out.pairs, out.err = c.Table.Open()
	}
	s.mu.Lock()
	s.sent = append(s.sent, out)
	s.mu.Unlock()
}

func (s *stream) take() []sentCommit {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.sent
	s.sent = nil
	return out
}

// follower is the second store.
type follower struct {
	*fixture
	applied int
}

func memoryEngine(t *testing.T) kv.Engine {
	t.Helper()
	if *onTiKV {
		return openEngine(t)
	}
	e, err := pebblekv.OpenMemory(pebblekv.Options{CacheBytes: 1 << 20, MemTableBytes: 1 << 20, RowCacheBytes: 1 << 20, CommitKey: CommitKey()})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func newReplay(t *testing.T, seed uint64) *replay {
	return newReplayOver(t, seed, memoryEngine(t), nil)
}

// newReplayOver is newReplay over an engine. Where the follower reads the same keys, beside opens its engine.
func newReplayOver(t *testing.T, seed uint64, engine kv.Engine, beside func(*replay) kv.Engine) *replay {
	r := &replay{rng: rand.New(rand.NewPCG(seed, 0)), did: map[string]int{}}
	clock := clock.NewFake(epoch)
	r.fixture = &fixture{t: t, clock: clock, parser: indexParser(), engine: engine}
	r.options = Options{Clock: clock, Indexes: r.parser, HideExpired: func() bool { return r.hideAll },
		Grace: func() (int64, bool) { return 0, false }, OnCommit: r.stream.send}
	f := &follower{fixture: &fixture{t: t, clock: clock, parser: indexParser()}}
	f.options = Options{Clock: clock, Indexes: f.parser, HideExpired: func() bool { return r.hideAll }, Follows: true}
	r.follower = f
	r.open()
	first := r.stream.take() // the format
	if beside != nil {
		f.engine, first = beside(r), nil
	} else {
		f.engine = memoryEngine(t)
	}
	for _, sent := range first {
		c, err := kv.DecodeCommit(sent.encoded)
		r.must(errors.Join(err, sent.err))
		r.must(f.engine.Apply(context.Background(), c, kv.Buffered))
	}
	f.open()
	if seed%2 == 0 { // without it there are sweeps
		r.options.Oplog = func() int64 { return 1 }
		r.reopen()
		r.must(r.CreateOplog(context.Background(), 1<<30))
	}
	t.Cleanup(func() {
		r.endBeside()
		for _, sent := range r.stream.take() {
			if sent.pairs != nil {
				_ = sent.pairs.Close()
			}
		}
		if err := errors.Join(r.Store.Close(), r.engine.Close(), f.Store.Close(), f.engine.Close()); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *replay) open() {
	r.fixture.open()
	r.Bounds().MostCounted, r.Bounds().CountedAtOnce = 1<<17, math.MaxInt64
	r.Bounds().MostTold = 3
	r.BuildLimits().MemoryBytes = 5000
}

func (r *replay) random(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rng.IntN(n)
}

func (r *replay) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.did[what]++
}

// deliver applies what was sent.
func (r *replay) deliver() {
	r.t.Helper()
	sent := r.stream.take()
	if r.ask != nil {
		r.ask()
		return
	}
	for _, sent := range sent {
		r.must(sent.err)
		c, err := kv.DecodeCommit(sent.encoded)
		r.must(err)
		if c.Table != nil {
			c.Table.Open = func() (kv.Pairs, error) { return sent.pairs, nil }
			r.count(map[bool]string{false: "table loaded", true: "stretch of an index replaced"}[c.Table.Replaces])
		}
		r.must(r.follower.Apply(context.Background(), c, kv.Buffered))
		r.follower.applied++
	}
}

// The collections come and go. Each kind of one has options of its own.
var replayKinds = []struct {
	name, options string
	indexes       []string
}{
	{"plain", `{}`, []string{`{key: {a: 1}, name: "a"}`, `{key: {a: -1, b: 1}, name: "ab"}`, `{key: {u: 1}, name: "u", unique: true, sparse: true}`,
		`{key: {"$**": 1}, name: "wild"}`, `{key: {d: 1}, name: "d", expireAfterSeconds: 10, hideExpired: true}`}},
	{"dated", `{}`, []string{`{key: {d: 1}, name: "d", expireAfterSeconds: 10}`, `{key: {a: 1}, name: "a"}`, `{key: {b: 1}, name: "b"}`,
		`{key: {_ts: 1}, name: "ts", expireAfterSeconds: 30}`}},
	{"sliding", `{}`, []string{`{key: {_ts: 1}, name: "ts", expireAfterSeconds: 15}`, `{key: {a: 1}, name: "a"}`, `{key: {u: 1}, name: "u", unique: true, sparse: true}`}},
	{"clustered", `{clusteredIndex: {key: {_id: 1}, unique: true}, expireAfterSeconds: NumberLong(20)}`, nil},
	{"capped", `{capped: true, size: 20000, max: 40}`, []string{`{key: {a: 1}, name: "a"}`}},
	{"series", `{timeseries: {timeField: "t", metaField: "m", bucketMaxSpanSeconds: 60}, expireAfterSeconds: NumberLong(40)}`, nil},
}

func replayNS(kind int) namespace.NS {
	return namespace.NS{DB: "db", Coll: replayKinds[kind].name}
}

// replayTransaction is an open transaction of several statements.
type replayTransaction struct {
	*Txn
	wrote bool
	saw   map[int]string // of each kind, before it wrote
}

// goOn begins a transaction of several statements, or goes on with it, or ends it.
func (r *replay) goOn(i int) {
	t := r.beside[i]
	switch p := r.random(10); {
	case t == nil:
		txn, err := r.BeginTransaction(context.Background(), TransactionOptions{Now: r.Store.Now(), LockTimeout: -1})
		r.must(err)
		r.beside[i] = &replayTransaction{Txn: txn, saw: map[int]string{}}
		r.count("begin a transaction of statements")
	case p < 7:
		kind := r.random(len(replayKinds))
		if !t.wrote {
			now := seen(r.t, t.Statement(context.Background()), replayNS(kind))
			if before, saw := t.saw[kind]; saw && before != now {
				r.t.Fatalf("a transaction saw in %s\n%s\nand then\n%s", replayKinds[kind].name, before, now)
			}
			if t.saw[kind] = now; r.random(3) == 0 {
				return
			}
		}
		t.wrote = true
		err := t.Write(context.Background(), replayNS(kind), WriteOptions{}, func(w *Writer) error {
			if r.random(2) == 0 {
				return r.changeSome(w, kind)
			}
			return r.insertSome(w, kind, 1+r.random(5))
		})
		r.mayFail("statement of a transaction", err)
		if err != nil {
			t.Rollback()
			r.beside[i] = nil
		}
	case p < 9:
		r.mayFail("commit of a transaction of statements", t.Commit(context.Background(), kv.Buffered))
		r.beside[i] = nil
	default:
		t.Rollback()
		r.beside[i] = nil
	}
}

// endBeside ends them, before somebody changes what collections are, which would wait for that.
func (r *replay) endBeside() {
	for i, t := range r.beside {
		if t != nil {
			t.Rollback()
			r.beside[i] = nil
		}
	}
}

func (r *replay) step() {
	kind := r.random(len(replayKinds))
	ns := replayNS(kind)
	if r.Store.current.Load().catalog.Collection(ns) == nil {
		_, err := r.CreateCollection(context.Background(), ns, bson.MustDoc(replayKinds[kind].options))
		r.mayFail("create", err)
		if len(replayKinds[kind].indexes) > 0 && r.random(2) == 0 {
			r.createSome(kind)
		}
	}
	switch p := r.random(100); {
	case p < 29:
		r.mayFail("insert", r.write(ns, func(w *Writer) error { return r.insertSome(w, kind, 1+r.random(40)) }))
	case p < 44:
		r.mayFail("change", r.write(ns, func(w *Writer) error { return r.changeSome(w, kind) }))
	case p < 47:
		r.transaction()
	case p < 49:
		r.defining()
	case p < 58:
		for range 3 {
			r.goOn(r.random(len(r.beside)))
		}
	case p < 64:
		r.clock.Advance(time.Duration(r.random(6000)) * time.Millisecond)
	case p < 73:
		r.expire(ns)
	case p < 75:
		_, _, err := r.Recluster(context.Background(), r.id(ns), 1+r.random(200))
		r.mayFail("recluster", err)
	case p < 80:
		limit := 1 + r.random(40)
		for more := true; more; limit = 100 {
			var err error
			if _, more, err = r.Vacuum(context.Background(), r.id(ns), limit); err != nil {
				r.mayFail("vacuum", err)
				break
			}
			r.count("vacuum")
			more = more && r.random(4) > 0
		}
	case p < 82:
		r.compactIndexes(kind)
	case p < 83:
		r.abort(ns, kind)
	default:
		r.endBeside()
		r.define(kind)
	}
}

// define changes what collections, indexes and views there are, or the time.
func (r *replay) define(kind int) {
	switch p := r.random(17); {
	case p < 5:
		r.createSome(kind)
	case p < 7:
		r.besideWriters(kind)
	case p < 13:
		r.ddl(kind)
	case p < 15:
		r.viewDDL()
	default:
		r.times()
	}
}

func (r *replay) id(ns namespace.NS) uint32 {
	if coll := r.Store.current.Load().catalog.Collection(ns); coll != nil {
		return coll.ID
	}
	return 0
}

// mayFail takes what a client would be told; anything else is a fault.
func (r *replay) mayFail(what string, err error) {
	r.t.Helper()
	if told := new(mongoerr.Error); err != nil && !errors.As(err, &told) {
		r.t.Fatalf("%s: %v", what, err)
	}
	if err != nil {
		what += " refused"
	}
	r.count(what)
}

func (r *replay) write(ns namespace.NS, f func(*Writer) error) error {
	o := WriteOptions{Durability: kv.Buffered, PassesOver: true} // who waited here for an open transaction would wait for ever
	if i := r.random(len(r.sessions)); r.options.Oplog != nil && r.random(3) == 0 && r.sessions[i].mu.TryLock() {
		defer r.sessions[i].mu.Unlock()
		o.Retry = r.retry(i)
	}
	return r.Write(context.Background(), ns, o, f)
}

// replaySession is a session, which one writer has at a time.
type replaySession struct {
	mu      sync.Mutex
	history *history.History
}

// retry is a statement of a retryable write in a session. What is remembered of the session is what is stored.
func (r *replay) retry(i int) *history.Retry {
	s := &r.sessions[i]
	stored, err := r.Store.History(context.Background(), bson.Build().Int32("id", int32(i)).Doc())
	r.must(err)
	if s.history != nil && !stored.Equal(s.history) && s.history.Last.Timestamp != 0 {
		r.t.Fatalf("stored is %+v, remembered %+v", stored, s.history)
	}
	if s.history = stored; r.random(3) > 0 {
		s.history.Begin(s.history.Number + 1)
	}
	r.count("retryable write")
	return &history.Retry{History: s.history, Statement: int32(r.random(9)), Image: []oplog.Image{oplog.NoImage, oplog.PreImage, oplog.PostImage}[r.random(3)]}
}

func (r *replay) document(kind int) bson.Doc {
	b := bson.Build()
	if replayKinds[kind].name == "clustered" {
		b.Date("_id", r.Store.Now()+int64(r.random(40_000))-20_000)
	} else {
		b.Int32("_id", int32(r.random(2000)))
	}
	if r.random(3) > 0 {
		b.Value("a", []bson.Value{bson.Int32(int32(r.random(20))), bson.MustDoc(`{x: [1, {y: [2, 3]}]}`).Value(),
			bson.ArrayOf(bson.Int32(int32(r.random(9))), bson.String("x"))}[r.random(3)])
	}
	if r.random(2) == 0 {
		b.Int32("b", int32(r.random(50)))
	}
	if r.random(2) == 0 {
		b.Int32("u", int32(r.random(3000)))
	}
	if r.random(4) > 0 {
		b.Date("d", r.Store.Now()+int64(r.random(30_000))-15_000)
	}
	if r.random(6) == 0 {
		b.Int32("ttl", int32(1+r.random(30)))
	}
	b.Date("t", r.Store.Now()+int64(r.random(60_000))-40_000).Int32("m", int32(r.random(4)))
	return b.String("text", strings.Repeat("x", r.random(60))).Doc()
}

func (r *replay) insertSome(w *Writer, kind, n int) error {
	for range n {
		if _, err := w.Insert(r.document(kind)); err != nil && !mongoerr.Is(err, mongoerr.DuplicateKey) {
			return err
		}
	}
	return nil
}

// changeSome updates and deletes some of what is there.
func (r *replay) changeSome(w *Writer, kind int) error {
	found, err := r.some(w)
	if err != nil {
		return err
	}
	for _, rec := range found {
		if r.random(3) == 0 {
			err = w.Delete(rec)
		} else {
			_, _, err = w.Update(rec, bson.BuildOn(nil).Value("_id", rec.Doc.Lookup("_id")).Fields(without(r.document(kind), "_id")).Doc())
		}
		if err != nil && !mongoerr.Is(err, mongoerr.DuplicateKey) {
			return err
		}
	}
	return nil
}

func without(d bson.Doc, name string) bson.Doc {
	b := bson.Build()
	for it := d.Iter(); it.Next(); {
		if it.Key() != name {
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Doc()
}

func (r *replay) some(w *Writer) (found []Record, err error) {
	c, err := w.Scan(RecordScan{Reverse: r.random(2) == 0})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for skip := r.random(20); len(found) < 10 && c.Next(); skip-- {
		if skip <= 0 {
			found = append(found, c.Record().Clone())
		}
	}
	return found, c.Err()
}

// transaction writes to several collections at once, and commits or not.
func (r *replay) transaction() {
	txn, err := r.Begin(context.Background())
	r.must(err)
	defer txn.Rollback()
	for range 2 {
		kind := r.random(len(replayKinds))
		w, err := txn.Writer(replayNS(kind))
		if err == nil {
			err = r.insertSome(w, kind, 5)
		}
		if err == nil {
			err = r.changeSome(w, kind)
		}
		if err != nil {
			r.mayFail("transaction", err)
			return
		}
	}
	if r.random(4) > 0 {
		r.mayFail("transaction", txn.Commit(context.Background(), kv.Buffered))
	}
}

// defining makes collections and indexes in a transaction of several statements, and writes to them. Others may take the names meanwhile.
func (r *replay) defining() {
	ctx := context.Background()
	history, err := r.Store.History(ctx, bson.MustDoc("{id: 99}"))
	r.must(err)
	history.Begin(history.Number + 1)
	txn, err := r.BeginTransaction(ctx, TransactionOptions{Now: r.Store.Now(), History: history})
	r.must(err)
	defer txn.Rollback()
	for i := range 1 + r.random(3) {
		kind := r.random(len(replayKinds) - 1) // no time series, which transactions do not make
		ns, options := namespace.NS{DB: "made", Coll: replayKinds[kind].name}, bson.MustDoc(replayKinds[kind].options)
		if i == 0 && r.random(3) == 0 { // it has written nothing yet
			_, err := r.DropCollection(ctx, ns)
			r.mayFail("drop what a transaction may have made", err)
		}
		if txn.View().Catalog().Collection(ns) == nil {
			if _, err := txn.CreateCollection(ctx, ns, options); err != nil {
				r.mayFail("create in a transaction", err)
				return
			}
			r.count("create in a transaction")
		}
		if r.random(10) == 0 {
			_, err := r.Store.CreateCollection(ctx, ns, options)
			r.mayFail("create what a transaction has made", err)
		}
		specs := replayKinds[kind].indexes
		for range r.random(3) {
			if len(specs) == 0 {
				break
			}
			if _, err := r.DefineIndexes(ctx, txn, ns, r.parse(specs[r.random(len(specs))])); err != nil {
				r.mayFail("create indexes in a transaction", err)
				return
			}
			r.count("create indexes in a transaction")
		}
		if options.Lookup("capped").Truthy() {
			continue
		}
		for range r.random(3) {
			err := txn.Write(ctx, ns, WriteOptions{}, func(w *Writer) error {
				if err := r.insertSome(w, kind, 1+r.random(20)); err != nil {
					return err
				}
				return r.changeSome(w, kind)
			})
			if err != nil {
				r.mayFail("write in a transaction", err)
				return
			}
		}
	}
	if r.random(4) > 0 {
		r.mayFail("commit what was made", txn.Commit(ctx, kv.Buffered))
	}
}

// abort writes and takes it back.
func (r *replay) abort(ns namespace.NS, kind int) {
	txn, err := r.Begin(context.Background())
	r.must(err)
	w, err := txn.Writer(ns)
	if err == nil {
		err = r.insertSome(w, kind, 20)
	}
	txn.Rollback()
	r.mayFail("rollback", err)
}

// expire deletes what is due, in one of the ways there are.
func (r *replay) expire(ns namespace.NS) {
	ctx := context.Background()
	c := r.Store.current.Load().collections[r.id(ns)]
	if c == nil {
		return
	}
	rules := c.rules.All()
	if len(rules) == 0 {
		return
	}
	rule := &rules[r.random(len(rules))]
	if r.random(4) > 0 {
		done, ok, err := r.Sweep(ctx, c.ID, rule, r.Store.Now())
		r.mayFail("sweep", err)
		if ok && done.Documents > 0 {
			r.count("swept")
		}
		return
	}
	if now := r.find([]namespace.NS{ns})[0]; now != nil {
		_, err := r.deleteDue(ctx, now, rule, r.Store.Now(), besideWriters)
		r.mayFail("delete what is due", err)
	}
}

func (r *replay) createSome(kind int) {
	specs := replayKinds[kind].indexes
	if len(specs) == 0 {
		return
	}
	r.BuildLimits().InlineDocuments = []int64{-1, 1000}[r.random(2)]
	picked := []string{specs[r.random(len(specs))]}
	if more := specs[r.random(len(specs))]; more != picked[0] {
		picked = append(picked, more)
	}
	_, err := r.CreateIndexes(context.Background(), replayNS(kind), r.parse(picked...))
	r.mayFail("create indexes", err)
}

// besideWriters builds indexes while others write.
func (r *replay) besideWriters(kind int) {
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for range 10 {
				err := r.write(replayNS(kind), func(w *Writer) error {
					if err := r.insertSome(w, kind, 5); err != nil {
						return err
					}
					return r.changeSome(w, kind)
				})
				if told := new(mongoerr.Error); err != nil && !errors.As(err, &told) {
					r.t.Errorf("write beside a build: %v", err)
				}
			}
		})
	}
	r.createSome(kind)
	group.Wait()
}

func (r *replay) ddl(kind int) {
	ctx, ns := context.Background(), replayNS(kind)
	aside := namespace.NS{DB: "other", Coll: ns.Coll}
	switch r.random(12) {
	case 0:
		_, err := r.DropCollection(ctx, ns)
		r.mayFail("drop", err)
	case 1:
		r.mayFail("rename", r.Rename(ctx, ns, aside, true))
	case 2:
		r.mayFail("rename back", r.Rename(ctx, aside, ns, true))
	case 3, 4:
		_, err := r.DropIndexes(ctx, ns, func(c *catalog.Collection) ([]*index.Definition, error) {
			if i := r.random(len(c.Indexes) + 1); i < len(c.Indexes) {
				return c.Indexes[i : i+1], nil
			}
			return nil, nil
		})
		r.mayFail("drop indexes", err)
	case 5:
		_, err := r.RebuildIndexes(ctx, ns)
		r.mayFail("reIndex", err)
	case 6, 7, 8:
		seconds := int32(5 + r.random(40))
		_, err := r.ModifyWith(ctx, ns, ttlchange.OnHidden{Keep: r.random(2) == 0}, func(c *catalog.Collection) (*catalog.Collection, error) {
			defs := slices.Clone(c.Indexes)
			for i, d := range defs {
				if !d.TTL {
					continue
				}
				b := bson.Build()
				for it := d.Spec.Iter(); it.Next(); {
					if it.Key() == "expireAfterSeconds" {
						b.Int32(it.Key(), seconds)
					} else {
						b.Value(it.Key(), it.Value())
					}
				}
				again, err := r.parser.Parse(b.Doc(), c.Options.Collation)
				if err != nil {
					return nil, err
				}
				defs[i] = again.WithID(d.ID).WithForm(d.Form)
			}
			return c.WithIndexes(defs), nil
		})
		r.mayFail("collMod", err)
	case 9:
		r.mayFail("trim", r.write(ns, func(w *Writer) error { _, err := w.Trim(); return err }))
	case 10:
		r.hideAll = !r.hideAll
	case 11:
		if r.random(4) == 0 {
			_, err := r.DropDatabase(ctx, "other")
			r.mayFail("dropDatabase", err)
		}
	}
}

// viewDDL makes, changes and drops views, on collections and on each other, in two databases, one of which is dropped as a whole.
func (r *replay) viewDDL() {
	ctx, ns := context.Background(), namespace.NS{DB: []string{"db", "other"}[r.random(2)], Coll: fmt.Sprint("view", r.random(3))}
	options := func() bson.Doc {
		on := []string{"plain", "dated", "series", "view0", "not there"}[r.random(5)]
		stages := []string{`[]`, `[{$match: {a: 1}}]`, `[{$match: {d: {$gt: 5}}}, {$project: {text: 0, x: {$literal: "$a"}}}]`}[r.random(3)]
		return bson.MustDoc(fmt.Sprintf(`{viewOn: %q, pipeline: %s}`, on, stages))
	}
	switch r.random(4) {
	case 0, 1:
		_, err := r.CreateCollection(ctx, ns, options())
		r.mayFail("create view", err)
	case 2:
		r.mayFail("collMod of a view", r.Modify(ctx, ns, func(c *catalog.Collection) (*catalog.Collection, error) {
			return c.WithOptions(catalog.ReadOptions(options())), nil
		}))
	default:
		_, err := r.DropCollection(ctx, ns)
		r.mayFail("drop view", err)
	}
}

// compactIndexes has much of a collection expire at once, and then vacuums it to the end. Where nobody writes meanwhile stretches of its
// indexes are replaced by tables; where somebody does what was compacted until then is worthless.
func (r *replay) compactIndexes(kind int) {
	ctx, ns := context.Background(), replayNS(kind)
	if len(replayKinds[kind].indexes) == 0 {
		return
	}
	r.mayFail("insert", r.write(ns, func(w *Writer) error { return r.insertSome(w, kind, 60) }))
	r.clock.Advance(time.Duration(r.random(30_000)) * time.Millisecond)
	c := r.Store.current.Load().collections[r.id(ns)]
	if c.order == nil {
		return
	}
	_, _, err := r.Sweep(ctx, c.ID, c.order.Rule, r.Store.Now())
	r.mayFail("sweep", err)
	disturbed := r.random(3) == 0
	for more := true; more; {
		if _, more, err = r.Vacuum(ctx, c.ID, 1+r.random(10)); err != nil {
			r.mayFail("vacuum", err)
			return
		}
		if disturbed && r.IsCompacting(c.ID) && r.random(4) == 0 {
			r.mayFail("insert beside an index compaction", r.write(ns, func(w *Writer) error { return r.insertSome(w, kind, 3) }))
		}
	}
	r.count("vacuum to the end")
}

func (r *replay) times() {
	ctx := context.Background()
	keep := func() error { return r.Release(ctx) }
	switch r.random(4) {
	case 0:
		keep = func() error { return r.NoteTime(ctx, r.Store.Now()) }
	case 1:
		keep = func() error { return r.Hold(ctx, r.Store.Now()) }
	}
	err := keep()
	for errors.Is(err, kv.ErrUndetermined) { // over TiKV, where this process was not run for long; what is kept twice is the same
		err = keep()
	}
	r.must(err)
}

func (r *replay) reopen() {
	r.t.Helper()
	r.endBeside()
	r.fixture.Store.garbage.Wait()
	r.deliver()
	r.must(errors.Join(r.Store.Close(), r.follower.Store.Close()))
	r.open()
	r.follower.open()
	r.did["opened anew"]++
}

// takeOver has the second store write itself, as if the first had ended.
func (r *replay) takeOver() {
	r.t.Helper()
	next := &replay{fixture: r.follower.fixture, rng: r.rng, did: r.did}
	next.options.Follows = false
	r.must(next.Store.Close())
	next.open()
	for range replaySteps {
		next.step()
	}
	next.endBeside()
	for _, entry := range next.Store.current.Load().catalog.All() {
		if !entry.IsView() {
			next.validate(entry.NS)
		}
	}
	next.Store.garbage.Wait()
}
