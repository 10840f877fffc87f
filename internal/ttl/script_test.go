package ttl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/host"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/indexddl"
	"github.com/ebbdb/ebb/internal/ttl"
)

// zero is where a script's clock stands at first: @+5s in a script is the date five seconds later.
var zero = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// world is one store with a monitor over it and a clock in the script's hand.
type world struct {
	t       *testing.T
	clock   *clock.Fake
	disk    *vfs.MemFS
	engine  *pebblekv.Engine
	store   *storage.Store
	ddl     *indexddl.DDL
	indexes *index.Parser
	params  *parameter.Registry
	expiry  *ttl.Parameters
	ops     *operation.Registry
	monitor *ttl.Monitor
	gate    *scriptGate
	out     output
	// before are script lines to run, once, when a pass gets to that point.
	before map[string][]string
	visits bool
	inside bool
	// slices are such lines, one for each slice of the maintenance: "-" does nothing.
	slices []string
	logs   bool
	// atBatch is told the number of each batch that is about to be deleted, from 0 on.
	atBatch func(n int)
	batches int
	// atVisit is told of each visit that has looked at something.
	atVisit func()
	atSlice func(context.Context)
	// atRest comes in the place of a rest.
	atRest func(context.Context) error
	// busy is how many of four processors clients take.
	busy  float64
	wants bool
	// tells says that from the next start on there is an oplog, and what expires is told in it.
	tells bool
	// given are parameters of the command line of the next start.
	given map[string]string
}

type scriptGate struct {
	ttl.Open
	locked, blocked bool
	// Each transaction takes so long.
	clock    *clock.Fake
	slow     time.Duration
	failures int // how many transactions to refuse
}

func (g *scriptGate) Enter(context.Context) error {
	if g.slow > 0 {
		g.clock.Advance(g.slow)
	}
	if g.failures == 0 {
		return nil
	}
	g.failures--
	return errors.New("the gate is broken")
}

func (g *scriptGate) Locked() bool        { return g.locked }
func (g *scriptGate) WritesBlocked() bool { return g.blocked }

func newWorld(t *testing.T) *world {
	w := &world{t: t, clock: newWorldClock(), disk: vfs.NewMem(), gate: &scriptGate{}, before: map[string][]string{}}
	w.open()
	t.Cleanup(w.close)
	return w
}

func newWorldClock() *clock.Fake { return clock.NewFake(zero) }

func (w *world) countBatch() {
	if w.atBatch != nil {
		w.atBatch(w.batches)
	}
	w.batches++
}

func (w *world) open() {
	var err error
	if w.engine, err = pebblekv.Open("ebb", pebblekv.Options{FS: w.disk, CacheBytes: 8 << 20, MemTableBytes: 4 << 20}); err != nil {
		w.t.Fatal(err)
	}
	w.params = parameter.NewRegistry(func(name string) { w.monitor.ParameterChanged(name) })
	w.expiry = ttl.NewParameters(w.params)
	for name, text := range w.given {
		if _, err := w.params.Set(name, bson.String(text), parameter.Startup); err != nil {
			w.t.Fatal(err)
		}
	}
	w.ops = operation.NewRegistry(w.clock)
	w.monitor = ttl.New(ttl.Options{Clock: w.clock, Params: w.expiry, Ops: w.ops, Log: slog.New(slog.NewTextHandler(scriptLog{w}, &slog.HandlerOptions{ReplaceAttr: withoutTime})), Hooks: ttl.Hooks{
		BeforeSlice: func(ctx context.Context) { w.beforeSlice(ctx) },
		BeforePass:  func(int64) { w.run1("pass") },
		BeforeBatch: func(string, string) { w.run1("batch"); w.countBatch() },
		AfterVisit:  w.visited,
		Rest:        w.rest,
		Load:        w.load,
	}})
	w.indexes = index.NewParser(match.NewParser())
	var term func() int64
	if w.tells {
		term = func() int64 { return 1 }
	}
	w.store, w.ddl, err = indexddl.Open(context.Background(), w.engine, storage.Options{Clock: w.clock, Indexes: w.indexes, Oplog: term,
		HideExpired: w.expiry.HideExpired.Get, Held: w.monitor.Hold, Grace: w.expiry.Grace, HidesUpTo: w.monitor.HidesUpTo, OnDDL: w.monitor.OnDDL, OnDeadline: w.monitor.OnDeadline, OnReleased: w.monitor.OnReleased})
	if err != nil {
		w.t.Fatal(err)
	}
	if w.tells {
		if err := w.store.CreateOplog(context.Background(), 1<<20); err != nil {
			w.t.Fatal(err)
		}
	}
	w.monitor.Connect(w.store, w.ddl.Sweeper, w.gate, w)
	if err := w.expiry.Hold.Begin(); err != nil {
		w.t.Fatal(err)
	}
}

// rest lets the time pass that a sweep rests.
func (w *world) rest(ctx context.Context, d time.Duration) error {
	if w.atRest != nil {
		return w.atRest(ctx)
	}
	fmt.Fprintf(&w.out, "rest %v\n", d.Round(time.Millisecond))
	w.clock.Advance(d)
	return nil
}

// load is that of a machine with four processors, as busy now as it always was.
func (w *world) load() (p host.Processors, operations int64) {
	passed := w.clock.Now().Sub(zero)
	if w.busy > 0 {
		operations = passed.Milliseconds()
	}
	used := time.Duration(float64(passed) * w.busy)
	return host.Processors{Count: 4, Used: used, Idle: 4*passed - used}, operations
}

// scriptLog is the log of a script that wants to see it.
type scriptLog struct{ *world }

func (l scriptLog) Write(line []byte) (int, error) {
	if l.logs {
		l.out.Write(line)
	}
	return len(line), nil
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

func (w *world) close() {
	w.monitor.Stop()
	if left := w.ops.Running(); len(left) > 0 {
		w.t.Errorf("%d operations are left, the first is of %s", len(left), left[0].NS)
	}
	if err := w.store.Close(); err != nil {
		w.t.Error(err)
	}
	if err := w.engine.Close(); err != nil {
		w.t.Error(err)
	}
}

// Wants is ttl.Recorder's.
func (w *world) Wants(string) bool { return w.wants }

// RecordVisit is ttl.Recorder's.
func (w *world) RecordVisit(ttl.Visit) {}

// RecordSweep is ttl.Recorder's.
func (w *world) RecordSweep(op *operation.Operation, _ time.Duration, err error) {
	if w.visits {
		fmt.Fprintf(&w.out, "recorded %s %s %s deleted %d keys %d err %v\n", op.Kind, op.NS, op.Stats.PlanSummary(), op.Stats.Deleted.Load(), op.Stats.KeysDeleted.Load(), err)
	}
}

// visited prints a visit as one line. One that looked at nothing before the monitor was stopped depends on the moment alone.
func (w *world) visited(v ttl.Visit) {
	if v.Examined == 0 && (v.Err == nil || errors.Is(v.Err, context.Canceled)) {
		return
	}
	if w.atVisit != nil {
		w.atVisit()
	}
	line := fmt.Sprintf("%s: deleted %d of %d", strings.TrimSpace(v.NS+" "+v.Index), v.Deleted, v.Examined)
	if v.Swept > 0 {
		line += fmt.Sprintf(", %d at once", v.Swept)
	}
	if v.More {
		line += ", more"
	}
	if v.Err != nil {
		line += fmt.Sprintf(", error: %v", v.Err)
	}
	fmt.Fprintln(&w.out, line)
}

// output is what a script prints. Its lines come from the monitor's goroutines too.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Len()
}

func (o *output) Truncate(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Truncate(n)
}

// Reset empties it.
func (o *output) Reset() { o.Truncate(0) }

// run1 runs the next line that waits for this point of a pass.
func (w *world) run1(point string) {
	if lines := w.before[point]; len(lines) > 0 && !w.inside {
		w.before[point] = lines[1:]
		w.inside = true
		w.line(lines[0])
		w.inside = false
	}
}

// beforeSlice runs the line that waits for the slice.
func (w *world) beforeSlice(ctx context.Context) {
	if w.atSlice != nil {
		w.atSlice(ctx)
	}
	if len(w.slices) == 0 {
		return
	}
	line := w.slices[0]
	w.slices = w.slices[1:]
	if line != "-" {
		w.inside = true
		w.line(line)
		w.inside = false
	}
}

// TestScripts runs testdata: each case is a list of lines under its id, and what they print.
func TestScripts(t *testing.T) {
	eachFile(t, "testdata/*.txt", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w := newWorld(t)
			for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
				w.line(strings.TrimSpace(line))
			}
			w.monitor.Stop()
			if w.out.Len() == 0 {
				return "ok\n"
			}
			return w.out.String()
		})
	})
}

// eachFile runs f as a test of each file.
func eachFile(t *testing.T, pattern string, f func(t *testing.T, path string)) {
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) { f(t, path) })
	}
}

var relativeDate = regexp.MustCompile(`@([+-]\w+|0)`)

func relative(text string) int64 {
	if text == "0" {
		return zero.UnixMilli()
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return zero.Add(d).UnixMilli()
}

// dates puts dates where a script says @-10s.
func dates(text string) string {
	return relativeDate.ReplaceAllStringFunc(text, func(m string) string { return fmt.Sprintf("Date(%d)", relative(m[1:])) })
}

func (w *world) line(text string) {
	verb, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	if err := w.do(verb, dates(rest), rest); err != nil {
		fmt.Fprintf(&w.out, "%s: %v\n", verb, err)
	}
}

// first parts the first word from the rest.
func first(text string) (word, rest string) {
	word, rest, _ = strings.Cut(text, " ")
	return word, strings.TrimSpace(rest)
}

func (w *world) do(verb, rest, raw string) error {
	ctx := context.Background()
	word, arg := first(rest)
	ns := namespace.NS{DB: "db", Coll: word}
	if db, coll, ok := strings.Cut(word, "."); ok {
		ns = namespace.NS{DB: db, Coll: coll}
	}
	switch verb {
	case "create":
		_, err := w.store.CreateCollection(ctx, ns, bson.MustDoc(arg))
		return err
	case "drop":
		_, err := w.store.DropCollection(ctx, ns)
		return err
	case "rename":
		return w.store.Rename(ctx, ns, namespace.NS{DB: ns.DB, Coll: arg}, false)
	case "index":
		return w.index(ns, arg)
	case "dropIndex":
		_, err := w.ddl.DropIndexes(ctx, ns, func(c *catalog.Collection) ([]*index.Definition, error) {
			return []*index.Definition{c.Index(arg)}, nil
		})
		return err
	case "collMod":
		return w.collMod(ns, arg)
	case "break": // a specification that only a catalogue could have
		return w.ddl.Modify(ctx, ns, func(c *catalog.Collection) (*catalog.Collection, error) {
			defs := append([]*index.Definition(nil), c.Indexes...)
			for i, d := range defs[1:] {
				broken := *d
				broken.Spec = overlay(d.Spec, bson.MustDoc(arg))
				defs[i+1] = &broken
			}
			return c.WithIndexes(defs), nil
		})
	case "insert":
		return w.write(ns, func(wr *storage.Writer) error { _, err := wr.Insert(bson.MustDoc(arg)); return err })
	case "fill":
		return w.fill(ns, arg)
	case "refill":
		return w.refill(ns, arg)
	case "replace":
		return w.replace(ns, bson.MustDoc(arg))
	case "delete":
		return w.write(ns, func(wr *storage.Writer) error {
			rec, ok, err := wr.GetByID(bson.MustParse(arg))
			if !ok || err != nil {
				return err
			}
			return wr.Delete(rec)
		})
	case "collections":
		return w.collections(ctx, most(word))
	case "set":
		before := w.out.Len() // a pass that follows writes as well
		fmt.Fprintf(&w.out, "was %s\n", w.params.Lookup(word).Get())
		_, err := w.params.Set(word, bson.MustParse(arg), parameter.Runtime)
		if err != nil {
			w.out.Truncate(before)
		}
		return w.settle(err)
	case "get":
		for _, name := range strings.Fields(rest) {
			fmt.Fprintf(&w.out, "%s %s\n", name, w.params.Lookup(name).Get().Text())
		}
		return nil
	case "busy": // from the beginning of time on
		n, err := strconv.ParseFloat(word, 64)
		w.busy = n
		return err
	case "slow":
		d, err := time.ParseDuration(word)
		w.gate.clock, w.gate.slow = w.clock, d
		return err
	case "lock", "unlock":
		w.gate.locked = verb == "lock"
	case "block", "unblock":
		w.gate.blocked = verb == "block"
	case "fail":
		n, err := strconv.Atoi(word)
		w.gate.failures = n
		return err
	case "panic":
		w.inside = false
		panic("a visit went wrong")
	case "kill":
		for _, op := range w.ops.Running() {
			w.ops.Kill(op.ID)
		}
	case "wake":
		w.monitor.Wake()
		return w.settle(nil)
	case "advance":
		d, err := time.ParseDuration(rest)
		if err != nil {
			return err
		}
		w.clock.Advance(d)
		return w.settle(nil)
	case "step":
		d, err := time.ParseDuration(rest)
		if err != nil {
			return err
		}
		w.clock.Step(d)
		return w.settle(nil)
	case "pass":
		return w.monitor.RunPass(ctx)
	case "start":
		w.monitor.Start()
		return w.settle(nil)
	case "restart":
		w.close()
		w.given = map[string]string{}
		if word != "" {
			w.given[word] = strings.TrimSpace(strings.TrimPrefix(raw, word))
		}
		w.open()
	case "log":
		w.logs = true
	case "record":
		w.visits = true
	case "watch", "unwatch":
		w.wants = verb == "watch"
	case "maintenance":
		return w.monitor.RunMaintenance(ctx)
	case "before":
		point, line := first(raw)
		if point == "slice" {
			w.slices = append(w.slices, line)
			return nil
		}
		w.before[point] = append(w.before[point], line)
	default:
		return w.look(verb, ns, rest, arg)
	}
	return nil
}

// look runs the verbs that only print.
func (w *world) look(verb string, ns namespace.NS, rest, arg string) error {
	view, err := w.store.View(context.Background())
	if err != nil {
		return err
	}
	defer view.Close()
	switch verb {
	case "metrics":
		w.metrics(strings.Fields(rest))
		return nil
	case "status":
		return w.status(view)
	case "held":
		fmt.Fprintf(&w.out, "held: %s\n", w.monitor.Held())
		return nil
	case "running":
		for _, op := range w.ops.Running() {
			if op.Progress != nil {
				message, done, total := op.Progress()
				fmt.Fprintf(&w.out, "running %s %s %s: %s, %d of %d\n", op.Client.Desc, op.Kind, op.NS, message, done, total)
				continue
			}
			fmt.Fprintf(&w.out, "running %s %s %s %s\n", op.Client.Desc, op.Kind, op.NS, op.Command)
		}
		return nil
	}
	r, ok := view.Collection(ns)
	if !ok {
		fmt.Fprintf(&w.out, "%s: no collection %s\n", verb, ns)
		return nil
	}
	switch verb {
	case "find", "stored":
		if verb == "stored" {
			r = r.Unhidden()
		}
		ids, err := idsOf(r)
		fmt.Fprintf(&w.out, "%s: %s\n", verb, strings.Join(ids, " "))
		return err
	case "storedCount":
		n, err := r.Stored()
		fmt.Fprintf(&w.out, "storedCount: %d\n", n)
		return err
	case "ever":
		n, err := r.Expired()
		fmt.Fprintf(&w.out, "ever: %d\n", n)
		return err
	case "indexes":
		for _, d := range r.Catalog().Indexes {
			fmt.Fprintf(&w.out, "%s\n", d.Spec)
		}
		return nil
	case "count":
		n, err := r.Count()
		fmt.Fprintf(&w.out, "count: %d\n", n)
		return err
	case "entries":
		n, err := r.Entries(r.Catalog().Index(arg))
		fmt.Fprintf(&w.out, "entries of %s: %d\n", arg, n)
		return err
	case "explain":
		return w.explain(r, bson.MustParse(arg))
	}
	return fmt.Errorf("no such verb")
}

func idsOf(r *storage.Reader) (ids []string, err error) {
	c, err := r.Scan(storage.RecordScan{})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for c.Next() {
		ids = append(ids, c.Record().Doc.Lookup("_id").String())
	}
	return ids, c.Err()
}

// settle lets a loop that runs come to rest.
func (w *world) settle(err error) error {
	if err != nil || w.inside {
		return err
	}
	return w.monitor.Settle(context.Background())
}

func (w *world) write(ns namespace.NS, f func(*storage.Writer) error) error {
	err := w.store.Write(context.Background(), ns, storage.WriteOptions{Durability: kv.Buffered, Create: true}, f)
	return w.settle(err)
}

func (w *world) index(ns namespace.NS, spec string) error {
	_, err := w.ddl.CreateIndexes(context.Background(), ns, func(c *catalog.Collection) ([]*index.Definition, error) {
		d, err := w.indexes.Parse(bson.MustDoc(spec), c.Options.Collation)
		return []*index.Definition{d}, err
	})
	return w.settle(err)
}

// collMod changes options of one index: "name {expireAfterSeconds: 5}", or with an empty name those of the collection.
func (w *world) collMod(ns namespace.NS, arg string) error {
	name, doc := first(arg)
	change := bson.MustDoc(doc)
	return w.settle(w.ddl.Modify(context.Background(), ns, func(c *catalog.Collection) (*catalog.Collection, error) {
		if name == "-" {
			return c.WithOptions(catalog.ReadOptions(overlay(c.Options.Doc, change))), nil
		}
		defs := append([]*index.Definition(nil), c.Indexes...)
		for i, d := range defs {
			if d.Name == name {
				changed, err := w.indexes.Parse(overlay(d.Spec, change), c.Options.Collation)
				if err != nil {
					return nil, err
				}
				defs[i] = changed.WithID(d.ID)
			}
		}
		return c.WithIndexes(defs), nil
	}))
}

// overlay is doc with the fields of change, where null takes one away.
func overlay(doc, change bson.Doc) bson.Doc {
	b := bson.Build()
	for it := doc.Iter(); it.Next(); {
		if change.Lookup(it.Key()).IsMissing() {
			b.Value(it.Key(), it.Value())
		}
	}
	for it := change.Iter(); it.Next(); {
		if it.Value().Type != bson.TypeNull {
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Doc()
}

func (w *world) replace(ns namespace.NS, doc bson.Doc) error {
	return w.write(ns, func(wr *storage.Writer) error {
		rec, ok, err := wr.GetByID(doc.Lookup("_id"))
		if err != nil {
			return err
		}
		if !ok {
			fmt.Fprintf(&w.out, "replace: no document %s\n", doc.Lookup("_id"))
			return nil
		}
		_, _, err = wr.Update(rec.Clone(), doc)
		return err
	})
}

// fill inserts many documents: "1000 {d: …}", with _id from 1 on.
func (w *world) fill(ns namespace.NS, arg string) error {
	count, fields := first(arg)
	count, behind, _ := strings.Cut(count, "/") // the _id that they come behind
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	before := 0
	if behind != "" {
		if before, err = strconv.Atoi(behind); err != nil {
			return err
		}
	}
	rest := bson.MustDoc(fields)
	for from := 0; from < n; from += 5000 {
		err := w.write(ns, func(wr *storage.Writer) error {
			for i := from; i < min(from+5000, n); i++ {
				if _, err := wr.Insert(bson.Build().Int32("_id", int32(before+i+1)).Fields(rest).Doc()); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// refill replaces many documents: "1000 {d: …}" those with _id from 1 on, "1000/50 {d: …}" those behind 50.
func (w *world) refill(ns namespace.NS, arg string) error {
	count, fields := first(arg)
	count, behind, _ := strings.Cut(count, "/")
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	before := 0
	if behind != "" {
		if before, err = strconv.Atoi(behind); err != nil {
			return err
		}
	}
	rest := bson.MustDoc(fields)
	return w.write(ns, func(wr *storage.Writer) error {
		for i := before + 1; i <= before+n; i++ {
			rec, ok, err := wr.GetByID(bson.Int32(int32(i)))
			if !ok || err != nil {
				return fmt.Errorf("document %d: %v, %w", i, ok, err)
			}
			if _, _, err := wr.Update(rec.Clone(), bson.Build().Int32("_id", int32(i)).Fields(rest).Doc()); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *world) metrics(names []string) {
	b := bson.Build()
	w.monitor.AppendMetrics(b)
	w.monitor.AppendBatchedDeletes(b)
	doc := b.Doc()
	fmt.Fprint(&w.out, "metrics:")
	for _, name := range names {
		fmt.Fprintf(&w.out, " %s %s", name, fieldpath.Split(name).Get(doc).Text())
	}
	fmt.Fprint(&w.out, "\n")
}

// since is a time as a script says it.
func since(millis int64) string {
	if millis == 1<<63-1 {
		return "never"
	}
	t := time.UnixMilli(millis).UTC()
	if t.Year() > zero.Year()+100 {
		return t.Format(time.RFC3339)
	}
	return "@" + t.Sub(zero).String()
}

func (w *world) status(view *storage.View) error {
	all, err := w.monitor.Status(context.Background(), view, func(namespace.NS) bool { return true })
	for i := range all {
		s := &all[i]
		fmt.Fprintf(&w.out, "%s %q %s+%ds: oldest %s, backlog %d, lag %dms, deleted %d", s.NS, s.Index, s.Field, s.Seconds, since(s.Oldest), s.Backlog, s.Lag(view.Now()), s.Deleted)
		if o := s.Order; o != nil && *o != (ttl.Order{Ordered: true, Exact: true}) {
			fmt.Fprintf(&w.out, ", ordered %v, unclustered %d, reclustered %d, dead %d", o.Ordered, o.Unclustered, o.Reclustered, o.Dead)
			if !o.Exact {
				fmt.Fprint(&w.out, " (and more unclustered)")
			}
		}
		if s.Swept {
			fmt.Fprintf(&w.out, ", swept %s: %d", since(s.LastSweep), s.LastDeleted)
		}
		if s.Planned {
			fmt.Fprintf(&w.out, ", next %s", since(s.NextSweep))
		}
		if s.InGrace {
			fmt.Fprintf(&w.out, ", grace until %s", since(s.GraceUntil))
		}
		if s.Paused {
			fmt.Fprint(&w.out, ", paused")
		}
		if s.Hides {
			fmt.Fprint(&w.out, ", hides")
		}
		for _, text := range []string{s.Inert, s.LastError} {
			if text != "" {
				fmt.Fprintf(&w.out, ", %s", text)
			}
		}
		fmt.Fprint(&w.out, "\n")
	}
	if held := w.monitor.Held(); held != "" {
		fmt.Fprintf(&w.out, "held: %s\n", held)
	}
	return err
}

func (w *world) explain(r *storage.Reader, id bson.Value) error {
	e, ok, err := w.monitor.Explain(r, id)
	if err != nil || !ok {
		fmt.Fprintf(&w.out, "explain: no document %s\n", id)
		return err
	}
	by := "-"
	if e.By != nil {
		by = strconv.Quote(e.By.Name())
	}
	fmt.Fprintf(&w.out, "deadline %s by %s, hidden %v\n", since(e.Deadline), by, e.Hidden)
	for _, rule := range e.Rules {
		fmt.Fprintf(&w.out, "  %q %s+%ds: %s, %s\n", rule.Index, rule.Field, rule.Seconds, since(rule.Deadline), rule.Why)
	}
	for _, note := range e.Notes {
		fmt.Fprintf(&w.out, "  note: %s\n", note)
	}
	return nil
}
