package storage

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"regexp"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/ownership"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

var epoch = time.UnixMilli(1_000_000_000_000).UTC()

func indexParser() *index.Parser {
	return index.NewParser(match.NewParser())
}

// fixture is a store in memory under a clock that the test turns.
type fixture struct {
	*Store
	Above
	t       *testing.T
	clock   *clock.Fake
	parser  *index.Parser
	engine  kv.Engine
	own     ownership.Ownership // of an engine that others write as well; nil where nobody does
	options Options
	hideAll bool
	events  []meaning.Event
}

// onTiKV has the stores be over TiKV clusters in memory.
var onTiKV = flag.Bool("tikv", false, "run what does not need Pebble over TiKV's protocol")

func notOnTiKV(t *testing.T, why string) {
	t.Helper()
	if *onTiKV {
		t.Skip(why)
	}
}

func openEngine(t *testing.T) kv.Engine {
	t.Helper()
	if *onTiKV {
		return tikvtest.Open(t)
	}
	engine, err := pebblekv.OpenMemory(pebblekv.Options{CacheBytes: 1 << 20, MemTableBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

func newFixture(t *testing.T) *fixture { return newFixtureOver(t, openEngine(t)) }

// newFixtureOver is newFixture over an engine, which ends with the test.
func newFixtureOver(t *testing.T, engine kv.Engine) *fixture {
	f := &fixture{t: t, clock: clock.NewFake(epoch), parser: indexParser(), engine: engine}
	f.options = Options{Clock: f.clock, Indexes: f.parser,
		HideExpired: func() bool { return f.hideAll },
		OnDDL:       func(e meaning.Event) { f.events = append(f.events, e) }}
	f.open()
	t.Cleanup(func() {
		if err := errors.Join(f.Store.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *fixture) open() {
	f.t.Helper()
	f.must(f.openOn(f.engine, f.options))
	f.Bounds().Few, f.Bounds().LongStretch = 1, 2
}

// online makes every index build one beside writers, with runs on disk.
func (f *fixture) online() { f.BuildLimits().InlineDocuments, f.BuildLimits().MemoryBytes = -1, 5000 }

// reopen is what a restart does, without a crash.
func (f *fixture) reopen() {
	f.t.Helper()
	f.must(f.Store.Close())
	f.open()
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) parse(specs ...string) func(*catalog.Collection) ([]*index.Definition, error) {
	return func(c *catalog.Collection) (defs []*index.Definition, err error) {
		for _, spec := range specs {
			d, err := f.parser.Parse(bson.MustDoc(spec), c.Options.Collation)
			if err != nil {
				return nil, err
			}
			defs = append(defs, d)
		}
		return defs, nil
	}
}

func (f *fixture) createIndexes(ns namespace.NS, specs ...string) {
	f.t.Helper()
	_, err := f.CreateIndexes(context.Background(), ns, f.parse(specs...))
	f.must(err)
}

var creating = WriteOptions{Durability: kv.Buffered, Create: true}

func (f *fixture) insert(ns namespace.NS, docs ...string) error {
	return f.Write(context.Background(), ns, creating, func(w *Writer) error {
		for _, d := range docs {
			if _, err := w.Insert(bson.MustDoc(d)); err != nil {
				return err
			}
		}
		return nil
	})
}

// change replaces, or with an empty text deletes, the document with an _id; it says whether there was one.
func (f *fixture) change(ns namespace.NS, id bson.Value, doc string) (there bool, err error) {
	err = f.Write(context.Background(), ns, creating, func(w *Writer) (err error) {
		var rec Record
		rec, there, err = w.GetByID(id)
		switch {
		case err != nil || !there:
			return err
		case doc == "":
			return w.Delete(rec)
		}
		_, _, err = w.Update(rec, bson.MustDoc(doc))
		return err
	})
	return there, err
}

// read runs look on the collection in a new view.
func (f *fixture) read(ns namespace.NS, look func(*Reader) error) {
	f.t.Helper()
	v, err := f.View(context.Background())
	f.must(err)
	r, ok := v.Collection(ns)
	if !ok {
		f.t.Fatalf("no collection %s", ns)
	}
	f.must(errors.Join(look(r), v.Close()))
}

// ids are the _ids that a scan shows.
func (f *fixture) ids(ns namespace.NS) string {
	f.t.Helper()
	text := ""
	f.read(ns, func(r *Reader) error {
		c, err := r.Scan(RecordScan{})
		if err != nil {
			return err
		}
		defer c.Close()
		for c.Next() {
			text += " " + c.Record().Doc.Lookup("_id").String()
		}
		return c.Err()
	})
	if text == "" {
		return "none"
	}
	return text[1:]
}

func (f *fixture) validate(ns namespace.NS) {
	f.t.Helper()
	v, err := f.Validate(context.Background(), ns, nil)
	f.must(err)
	if !v.Valid {
		f.t.Fatalf("%s is not valid: %v, indexes %+v\nmissing %+v\nextra %+v", ns, v.Errors, v.Indexes, v.Missing, v.Extra)
	}
}

func (f *fixture) sweep(ns namespace.NS) (n int64) {
	f.t.Helper()
	v, err := f.View(context.Background())
	f.must(err)
	r, _ := v.Collection(ns)
	rules := r.Rules().All()
	f.must(v.Close())
	for i := range rules {
		n += f.expire(ns, &rules[i])
	}
	return n
}

// expire deletes what is due by the rule, one by one.
func (f *fixture) expire(ns namespace.NS, rule *policy.Rule) int64 {
	f.t.Helper()
	defer func(n int64) { f.Bounds().Few = n }(f.Bounds().Few)
	f.Bounds().Few = math.MaxInt64
	n, err := f.deleteDue(context.Background(), f.find([]namespace.NS{ns})[0], rule, f.Now(), besideWriters)
	f.must(err)
	return n
}

func failed(err error) string {
	if err == nil {
		return "ok"
	}
	e := mongoerr.From(err)
	return fmt.Sprintf("%d %s: %s", e.Code, e.Code.Name(), uuids.ReplaceAllString(e.Message, "<uuid>"))
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
