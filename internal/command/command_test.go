package command

import (
	"bytes"
	"context"
	"errors"
	goflag "flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/checkpoint"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/cursor"
	"github.com/ebbdb/ebb/internal/host"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/javascript"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/query"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/indexddl"
	"github.com/ebbdb/ebb/internal/ttl"
)

// The cases in testdata run against one Server a file, on a store in memory, at a time that stands still. A case is
//
//	run db=admin
//	{ping: 1}
//	----
//	{ok: 1.0}
//
// Each line of the input is one command; a line of the reply is its answer, or "code codeName: message". Arguments:
//
//	db=test      the database (test when it is left out)
//	conn=2       the connection (1)
//	hide=(a,b.c) fields of replies whose values change from run to run: only their types are shown
//	only=(a,b.c) fields of replies that matter: nothing else is shown
//	codes        only the codes of errors, and "ok"
//	session=7    the commands are sent in session 7
//	txn=3        and in its transaction 3; start, and the first of them begins it; retry=3 sends them as retryable writes
//	times        $clusterTime and operationTime are shown; elsewhere they are not
//
// "watch name" opens a change stream with the $changeStream and the stages of its input, and "events name" prints what it has to
// give; see watching_test.go.
//
// "advance 10s" moves the clock. "expire" deletes what is due, and prints how many documents that were.
type harness struct {
	t      testing.TB
	clock  *clock.Fake
	server *Server
	conns  map[string]*Conn
	// monitor deletes what is due, when a case says so; connect comes before its first pass.
	monitor *ttl.Monitor
	connect func() error
	// streams are the change streams of a file, by name.
	streams map[string]*stream
}

func newHarness(t testing.TB) *harness {
	return newHarnessOn(t, func(e kv.Engine) kv.Engine { return e })
}

// newHarnessOn has the store on what over makes of an engine in memory.
func newHarnessOn(t testing.TB, over func(kv.Engine) kv.Engine) *harness {
	return newHarnessAs(t, nil, over)
}

// newMember is the harness of a server that was started as a member of the replica set "rs".
func newMember(t testing.TB) *harness { return newMemberWith(t) }

func newMemberWith(t testing.TB, settings ...func(*parameter.Registry)) *harness {
	return newMemberOn(t, func(e kv.Engine) kv.Engine { return e }, settings...)
}

func newMemberOn(t testing.TB, over func(kv.Engine) kv.Engine, settings ...func(*parameter.Registry)) *harness {
	h := newHarnessAs(t, &ReplicaSet{Name: "rs", Host: "localhost:27018", Term: new(atomic.Int64), OplogBytes: 1 << 30}, over, settings...)
	if err := h.server.JoinReplicaSet(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	return h
}

// newTested is newMember of a server that was started with enableTestCommands.
func newTested(t testing.TB) *harness {
	return newMemberWith(t, func(p *parameter.Registry) {
		if _, err := p.Set("enableTestCommands", bson.String("1"), parameter.Startup); err != nil {
			t.Fatal(err)
		}
	})
}

// onTiKV has the servers be over TiKV clusters in memory.
var onTiKV = goflag.Bool("tikv", false, "run what does not need Pebble over TiKV's protocol")

func notOnTiKV(t *testing.T, why string) {
	t.Helper()
	if *onTiKV {
		t.Skip(why)
	}
}

func openEngine(t testing.TB, c clock.Clock) kv.Engine {
	t.Helper()
	if *onTiKV {
		return tikvtest.Open(t)
	}
	engine, err := pebblekv.OpenMemory(pebblekv.Options{Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// newHarnessAs is newHarnessOn for a member of set, or a standalone where that is nil; each setting was given on the command line.
func newHarnessAs(t testing.TB, set *ReplicaSet, over func(kv.Engine) kv.Engine, settings ...func(*parameter.Registry)) *harness {
	h := &harness{t: t, clock: clock.NewFake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), conns: map[string]*Conn{}}
	log := slog.New(slog.DiscardHandler)
	params := parameter.NewRegistry(nil)
	AddParameters(params, nil)
	expiry := ttl.NewParameters(params)
	for _, set := range settings {
		set(params)
	}
	engine := openEngine(t, h.clock)
	filters := match.NewParser()
	monitor := ttl.New(ttl.Options{Clock: h.clock, Params: expiry, Ops: operation.NewRegistry(h.clock), Log: log}) // which is never started
	h.monitor = monitor
	options := storage.Options{Clock: h.clock, Indexes: index.NewParser(filters), HideExpired: expiry.HideExpired.Get, Held: monitor.Hold, Grace: expiry.Grace, Witnessed: IsAuthCollection}
	if set != nil {
		options.Oplog = set.Term.Load
	}
	store, ddl, err := indexddl.Open(t.Context(), over(engine), options)
	if err != nil {
		t.Fatal(err)
	}
	h.connect = sync.OnceValue(func() error {
		monitor.Connect(store, ddl.Sweeper, ttl.Open{}, ttl.NoRecord{})
		return expiry.Hold.Begin()
	})
	queries := query.New(store, ddl, filters)
	queries.Scripts = javascript.InProcess(clock.Wall())
	h.server = New(Config{
		Clock: h.clock, Log: log, Engine: "inMemory", Argv: []string{"ebb", "serve"}, Parsed: bson.MustDoc("{net: {port: 27017}}"),
		Version: "8.2.4", EbbVersion: "0.1.0", GitVersion: "abc",
		RecentLog:       func() ([]string, int) { return []string{"one", "two"}, 7 },
		StartupWarnings: func() []string { return []string{"beware"} },
		Traffic: func() Traffic {
			return Traffic{Current: 1, Available: 9, Active: 1, TotalCreated: 3, BytesIn: 10, BytesOut: 20, Requests: 5}
		},
		Shutdown: func() {}, Stopping: make(chan struct{}), Expiry: stillMonitor{}, ReplicaSet: set,
	}, Services{Params: params, Ops: operation.NewRegistry(h.clock), Cursors: cursor.NewRegistry(h.clock, nil), Query: queries, Durable: store,
		Checkpoints: checkpoint.NewRegistry(h.clock, engine, log), FailPoints: AddFailPoints(params, h.clock)})
	h.server.machine.Do(func() { h.server.host = theirMachine() })
	t.Cleanup(func() {
		h.server.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// theirMachine is the machine on which the servers of tests are, whatever machine that is.
func theirMachine() host.Machine {
	m := host.Look()
	m.Name, m.MemoryBytes, m.MemoryLimit = "db1.example.net", 16<<30, 16<<30
	return m
}

// stillMonitor is a TTL monitor that has nothing to do.
type stillMonitor struct{}

func (stillMonitor) AppendMetrics(b *bson.Builder)        { b.Int64("deletedDocuments", 0).Int64("passes", 2) }
func (stillMonitor) AppendBatchedDeletes(b *bson.Builder) { b.Int64("batches", 0).Int64("docs", 0) }

func (h *harness) conn(name string) *Conn {
	if h.conns[name] == nil {
		id := int64(len(h.conns) + 1)
		h.conns[name] = h.server.Connect(id, fmt.Sprintf("127.0.0.1:5000%d", id), "127.0.0.1:27018")
	}
	return h.conns[name]
}

// send runs one command and returns its reply.
func (h *harness) send(ctx context.Context, conn, db string, command bson.Doc) Reply {
	return h.sendOn(ctx, h.conn(conn), db, command)
}

func (h *harness) sendOn(ctx context.Context, conn *Conn, db string, command bson.Doc) Reply {
	body := bson.Build().Fields(command).String("$db", db).Doc()
	reply := h.server.Handle(ctx, conn, Request{Body: body})
	reply.Body = reply.Body.Clone() // it lies in the connection's memory until the next command
	for i := range body {
		body[i] = 0xEE
	}
	return reply
}

func TestCommands(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			h := newHarness(t)
			datadriven.RunTest(t, file, h.directive)
		})
	}
}

// TestMembers runs the cases in testdata/replset, each file on a member of a replica set that nobody has initiated.
func TestMembers(t *testing.T) {
	files, err := filepath.Glob("testdata/replset/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			h := newMember(t)
			datadriven.RunTest(t, file, h.directive)
		})
	}
}

// TestFailPoints runs the cases in testdata/failpoint, each file on a member of a replica set that has fail points.
func TestFailPoints(t *testing.T) {
	files, err := filepath.Glob("testdata/failpoint/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			h := newTested(t)
			datadriven.RunTest(t, file, h.directive)
		})
	}
}

func (h *harness) directive(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "advance":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		h.clock.Advance(by)
		return ""
	case "expire":
		return h.expireCase(t)
	case "run":
		return h.runCase(t, d)
	case "watch":
		return h.watchCase(t, d)
	case "events":
		return h.eventsCase(t, d)
	}
	d.Fatalf(t, "no such directive: %s", d.Cmd)
	return ""
}

func (h *harness) expireCase(t *testing.T) string {
	stored := func() (n int64) {
		v, err := h.server.Query.Store.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		for _, c := range v.Catalog().All() {
			if r, ok := v.Collection(c.NS); ok && r.Rules().Any() {
				stored, err := r.Stored()
				if err != nil {
					t.Fatal(err)
				}
				n += stored
			}
		}
		return n
	}
	before := stored()
	if err := errors.Join(h.connect(), h.monitor.RunPass(t.Context())); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintln(before-stored(), "documents")
}

func (h *harness) runCase(t *testing.T, d *datadriven.TestData) string {
	db, conn := "test", "1"
	d.MaybeScanArgs(t, "db", &db)
	d.MaybeScanArgs(t, "conn", &conn)
	var out strings.Builder
	for i, command := range commandsIn(t, d) {
		reply := h.send(t.Context(), conn, db, inSession(t, d, command, i == 0)).Body
		if !d.HasArg("times") {
			reply = withoutTimes(reply)
		}
		out.WriteString(showReply(reply, paths(d, "hide"), paths(d, "only"), d.HasArg("codes")))
		out.WriteByte('\n')
	}
	return out.String()
}

// inSession is a command with the fields that its case gives it.
func inSession(t *testing.T, d *datadriven.TestData, command bson.Doc, first bool) bson.Doc {
	session, txn, retry := 0, -1, -1
	d.MaybeScanArgs(t, "session", &session)
	d.MaybeScanArgs(t, "txn", &txn)
	d.MaybeScanArgs(t, "retry", &retry)
	if session == 0 {
		return command
	}
	b := bson.Build().Fields(command).Object("lsid").Binary("id", 4, bytes.Repeat([]byte{byte(session)}, 16)).End()
	switch {
	case txn >= 0:
		b.Int64("txnNumber", int64(txn)).Bool("autocommit", false)
		if d.HasArg("start") && first {
			b.Bool("startTransaction", true)
		}
	case retry >= 0:
		b.Int64("txnNumber", int64(retry))
	}
	return b.Doc()
}

// withoutTimes is a reply without what moves with each write.
func withoutTimes(reply bson.Doc) bson.Doc {
	if reply == nil {
		return nil
	}
	b := bson.Build()
	for it := reply.Iter(); it.Next(); {
		switch it.Key() {
		case "$clusterTime", "operationTime", "electionId", "opTime":
		default:
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Doc()
}

// commandsIn is the documents of the input; one that goes on in the next line is indented there.
func commandsIn(t *testing.T, d *datadriven.TestData) []bson.Doc {
	var docs []bson.Doc
	for text := range strings.SplitSeq(strings.ReplaceAll(d.Input, "\n ", " "), "\n") {
		doc, err := bson.ParseDoc(text)
		if err != nil {
			d.Fatalf(t, "%s: %v", text, err)
		}
		docs = append(docs, doc)
	}
	return docs
}

func paths(d *datadriven.TestData, name string) []string {
	for _, arg := range d.CmdArgs {
		if arg.Key == name {
			return arg.Vals
		}
	}
	return nil
}

func showReply(reply bson.Doc, hide, only []string, codes bool) string {
	if reply == nil {
		return "the connection ends"
	}
	if !reply.Lookup("ok").Truthy() {
		text := fmt.Sprintf("%d %s", reply.Lookup("code").Int32(), reply.Lookup("codeName").Str())
		if codes {
			return text
		}
		if labels := reply.Lookup("errorLabels"); !labels.IsMissing() {
			text += " " + labels.Text()
		}
		return text + ": " + failedBuild.ReplaceAllString(reply.Lookup("errmsg").Str(), "Index build failed: <uuid>: Collection $1 ( <uuid> )")
	}
	if codes {
		return "ok"
	}
	if only != nil {
		return strings.TrimSuffix(pick(reply, only), " ")
	}
	return mask(reply, "", hide).Text()
}

// failedBuild is what the error of an index build begins with.
var failedBuild = regexp.MustCompile(`^Index build failed: [0-9a-f-]{36}: Collection (\S+) \( [0-9a-f-]{36} \)`)

// pick is "path: value" of each path.
func pick(reply bson.Doc, only []string) string {
	var out strings.Builder
	for _, path := range only {
		fmt.Fprintf(&out, "%s: %s ", path, at(reply.Value(), path).Text())
	}
	return out.String()
}

// at is the value that a path leads to; "path!" is its type, and "path#" the number of its elements.
func at(v bson.Value, path string) bson.Value {
	name := strings.TrimRight(path, "!#")
	for part := range strings.SplitSeq(name, ".") {
		if v.Type != bson.TypeObject && v.Type != bson.TypeArray {
			return bson.Missing
		}
		v = v.Doc().Lookup(part)
	}
	switch path[len(name):] {
	case "!":
		return bson.String(v.Type.String())
	case "#":
		return bson.Int32(int32(v.Doc().Count()))
	}
	return v
}

// mask is the document with the type in place of the value where a hidden path leads to.
func mask(d bson.Doc, prefix string, hide []string) bson.Doc {
	b := bson.Build()
	for it := d.Iter(); it.Next(); {
		path, v := prefix+it.Key(), it.Value()
		switch {
		case contains(hide, path):
			b.String(it.Key(), "<"+v.Type.String()+">")
		case v.Type == bson.TypeObject:
			b.Document(it.Key(), mask(v.Doc(), path+".", hide))
		case v.Type == bson.TypeArray:
			b.Value(it.Key(), mask(v.Doc(), path+".", hide).ArrayValue())
		default:
			b.Value(it.Key(), v)
		}
	}
	return b.Doc()
}

func contains(hide []string, path string) bool {
	for _, h := range hide {
		if h == path {
			return true
		}
	}
	return false
}
