package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/ownership"
)

// sharedEngine is one engine under several stores, as if each were a process of its own: it tells each of them of every Commit, of
// others' as bytes.
type sharedEngine struct {
	kv.Engine
	t         *testing.T
	processes []*process
}

// process is a sharedEngine as one of the stores has it.
type process struct {
	*sharedEngine
	own  observer
	told kv.Commit // the last one, as it was told
}

// signed is a Meaning and who means it.
type signed struct {
	kv.Meaning
	by *process
}

func (e *sharedEngine) Now() int64 { return e.processes[0].own.Now() }

func (e *sharedEngine) Ordered(c *kv.Commit) {
	for _, p := range e.processes {
		p.told = *c
		if m, ok := c.Meaning.(signed); ok && m.by == p {
			p.told.Meaning = m.Meaning
		} else if ok {
			p.told.Meaning = e.decode(c, p.own.store)
		}
		p.own.Ordered(&p.told)
	}
}

func (e *sharedEngine) Appears(*kv.Commit) {
	for _, p := range e.processes {
		p.own.Appears(&p.told)
	}
}

func (e *sharedEngine) Visible(*kv.Commit) {
	for _, p := range e.processes {
		p.own.Visible(&p.told)
	}
}

func (e *sharedEngine) decode(c *kv.Commit, s *Store) *meaning.Meaning {
	encoded, err := c.AppendBinary(nil)
	if err != nil {
		e.t.Error(err)
		return nil
	}
	again, err := kv.DecodeCommit(encoded)
	if err != nil {
		e.t.Error(err)
		return nil
	}
	m, err := meaning.Decode(again, s.Catalog(), s.options.Indexes)
	if err != nil {
		e.t.Error(err)
	}
	return m
}

func (p *process) Capabilities() kv.Capabilities {
	can := p.Engine.Capabilities()
	can.SoleWriter = false
	return can
}

func (p *process) Observe(o kv.Observer) {
	p.own = o.(observer)
	p.processes = append(p.processes, p)
	p.Engine.Observe(p.sharedEngine)
}

func (p *process) Begin() (kv.Txn, error) { return p.sign(p.Engine.Begin()) }

func (p *process) BeginBlind() (kv.Txn, error) { return p.sign(p.Engine.BeginBlind()) }

func (p *process) sign(t kv.Txn, err error) (kv.Txn, error) {
	if err != nil {
		return nil, err
	}
	return signedTxn{t, p}, nil
}

type signedTxn struct {
	kv.Txn
	by *process
}

func (t signedTxn) Mean(m kv.Meaning) { t.Txn.Mean(signed{m, t.by}) }

// sharedOwnership is one for several processes: locks that all of them know, each number from the store, and no _id is known to be
// new.
type sharedOwnership struct {
	ownership.Ownership
	engine kv.Engine
	mu     sync.Mutex // guards locks
	locks  map[uint32]ownership.Collection
}

func (o *sharedOwnership) Collection(number uint32) ownership.Collection {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.locks[number] == nil {
		o.locks[number] = o.Ownership.Collection(number)
	}
	return sharedCollection{o.locks[number], o.engine, layout.SequenceKey(number)}
}

type sharedCollection struct {
	ownership.Collection
	engine kv.Engine
	key    []byte
}

func (c sharedCollection) NextNumber(bool) (n uint64, err error) {
	for range 1000 {
		if n, err = c.takeNumber(); !errors.Is(err, kv.ErrConflict) {
			return n, err
		}
	}
	return 0, err
}

func (c sharedCollection) takeNumber() (uint64, error) {
	t, err := c.engine.Begin()
	if err != nil {
		return 0, err
	}
	last, err := lastTaken(t, c.key)
	if err != nil {
		t.Rollback()
		return 0, err
	}
	t.Claim(c.key)
	t.Set(c.key, binary.BigEndian.AppendUint64(nil, last+1))
	return last + 1, t.Commit(context.Background(), kv.Buffered)
}

func lastTaken(r kv.Reader, key []byte) (uint64, error) {
	value, err := r.Get(key)
	if errors.Is(err, kv.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(value), nil
}

func (c sharedCollection) SecureNumbers() error { return nil } // each is noted when it is given out

func (c sharedCollection) LastNumber() (uint64, error) {
	s, err := c.engine.Snapshot()
	if err != nil {
		return 0, err
	}
	last, err := lastTaken(s, c.key)
	return last, errors.Join(err, s.Close())
}

func (c sharedCollection) IsNew([]byte, ownership.Index) (bool, error) { return false, nil }

func (c sharedCollection) Follow(*meaning.Change) {}

// TestTwoWriters: two stores write to one engine that neither has for itself. What they have to agree about for documents and for the
// catalogue they ask their Ownership for; so nothing is lost, nothing is there twice, and both have the same catalogue.
func TestTwoWriters(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("go test ./internal/storage -run TestTwoWriters -seed %d", seed)
	base := memoryEngine(t)
	alone, err := ownership.Of(base)
	if err != nil {
		t.Fatal(err)
	}
	engine := &sharedEngine{Engine: base, t: t}
	own := &sharedOwnership{Ownership: alone, engine: base, locks: map[uint32]ownership.Collection{}}
	now, w := clock.NewFake(epoch), &twoWriters{made: map[uint32]bool{}, increments: map[namespace.NS]int{}}
	for range 2 {
		f := &fixture{t: t, clock: now, parser: indexParser(), engine: &process{sharedEngine: engine}, own: own}
		f.must(f.openOn(f.engine, Options{Clock: now, Indexes: f.parser}))
		w.stores = append(w.stores, f)
	}
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for range 400 {
				if err := w.step(w.stores[i%2], r); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	w.compare(t)
	for _, f := range w.stores {
		f.must(f.Store.Close())
	}
	if err := base.Close(); err != nil {
		t.Error(err)
	}
}

type twoWriters struct {
	stores     []*fixture
	mu         sync.Mutex // guards the rest
	made       map[uint32]bool
	increments map[namespace.NS]int
}

var kept = []namespace.NS{{DB: "db", Coll: "a"}, {DB: "db", Coll: "b"}}

// step does something at random.
func (w *twoWriters) step(f *fixture, r *rand.Rand) (err error) {
	ctx, ns, id := context.Background(), kept[r.IntN(len(kept))], r.IntN(300)
	switch r.IntN(20) {
	case 0, 1:
		return w.create(f, namespace.NS{DB: "db", Coll: fmt.Sprint("c", r.IntN(4))})
	case 2:
		_, err = f.DropCollection(ctx, namespace.NS{DB: "db", Coll: fmt.Sprint("c", r.IntN(4))})
	case 3:
		_, err = f.CreateIndexes(ctx, ns, f.parse(fmt.Sprintf(`{key: {x: 1, y%d: 1}, name: "x%d"}`, id%3, id%3)))
	case 4, 5, 6, 7:
		return w.increment(f, ns)
	case 8, 9:
		_, err = f.change(ns, bson.Int32(int32(id)), "")
	case 10, 11:
		_, err = f.change(ns, bson.Int32(int32(id)), fmt.Sprintf(`{_id: %d, x: [1, %d]}`, id, id))
	default:
		err = f.insert(ns, fmt.Sprintf(`{_id: %d, x: %d}`, id, id))
	}
	return expected(err)
}

// expected is err unless it is one that others may cause.
func expected(err error) error {
	for _, code := range []mongoerr.Code{mongoerr.DuplicateKey, mongoerr.WriteConflict, mongoerr.NamespaceExists, mongoerr.NamespaceNotFound} {
		if mongoerr.Is(err, code) {
			return nil
		}
	}
	return err
}

// create makes a collection, whose number and index number nobody has had.
func (w *twoWriters) create(f *fixture, ns namespace.NS) error {
	made, err := f.CreateCollection(context.Background(), ns, nil)
	if err != nil {
		return expected(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.made[made.ID] {
		return fmt.Errorf("%d is the number of two collections", made.ID)
	}
	w.made[made.ID] = true
	return nil
}

// increment adds one to the number that a document of ns has.
func (w *twoWriters) increment(f *fixture, ns namespace.NS) error {
	err := f.Write(context.Background(), ns, creating, func(wr *Writer) error {
		old, there, err := wr.GetByID(bson.String("n"))
		if err != nil {
			return err
		}
		if !there {
			_, err = wr.Insert(bson.MustDoc(`{_id: "n", n: 1}`))
			return err
		}
		_, _, err = wr.Update(old, bson.Build().String("_id", "n").Int32("n", old.Doc.Lookup("n").Int32()+1).Doc())
		return err
	})
	if err != nil {
		return expected(err)
	}
	w.mu.Lock()
	w.increments[ns]++
	w.mu.Unlock()
	return nil
}

// compare looks at what is left.
func (w *twoWriters) compare(t *testing.T) {
	var catalogs [][]string
	for _, f := range w.stores {
		var catalog []string
		for _, entry := range f.Catalog().All() {
			catalog = append(catalog, fmt.Sprint(entry.ID, " ", entry.Document()))
			f.validate(entry.NS)
		}
		catalogs = append(catalogs, catalog)
		for _, ns := range kept {
			f.read(ns, func(r *Reader) error {
				rec, there, err := r.GetByID(bson.String("n"))
				if n := w.increments[ns]; err == nil && (!there || int(rec.Doc.Lookup("n").Int32()) != n) {
					t.Errorf("%s: of %d increments there is %s", ns, n, rec.Doc)
				}
				return err
			})
		}
	}
	if !slices.Equal(catalogs[0], catalogs[1]) {
		t.Errorf("the catalogues are\n%s\n%s", catalogs[0], catalogs[1])
	}
}
