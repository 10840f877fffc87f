package command

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/cursor"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// addWait adds a command that waits for the end of its operation, or for a minute, and says that it has begun.
func (h *harness) addWait() (begun chan struct{}) {
	begun = make(chan struct{}, 16)
	h.server.table["wait"] = &Command{Name: "wait", Run: func(op *Op) (bson.Doc, error) {
		begun <- struct{}{}
		return bson.EmptyDoc, clock.Wait(op.Ctx, op.Clock, time.Minute)
	}}
	return begun
}

// start sends a command from a goroutine; the reply comes by the channel.
func (h *harness) start(conn, db, command string) chan Reply {
	out := make(chan Reply, 1)
	c, doc := h.conn(conn), bson.MustDoc(command)
	go func() { out <- h.sendOn(context.Background(), c, db, doc) }()
	return out
}

// later turns the clock until the reply is there: the timer that it waits for may not have begun yet.
func (h *harness) later(reply chan Reply, d time.Duration) Reply {
	for len(reply) == 0 {
		h.clock.Advance(d)
		runtime.Gosched()
	}
	return <-reply
}

func (h *harness) must(conn, db, command string) bson.Doc {
	h.t.Helper()
	reply := h.send(h.t.Context(), conn, db, bson.MustDoc(command)).Body
	if !reply.Lookup("ok").Truthy() {
		h.t.Fatalf("%s: %s", command, reply)
	}
	return reply
}

func wantCode(t *testing.T, reply Reply, code mongoerr.Code) {
	t.Helper()
	if got := reply.Body.Lookup("code"); got.IsMissing() || got.Int32() != int32(code) {
		t.Errorf("%s, not %s", reply.Body, code.Name())
	}
}

func TestAnOperationIsSeenAndKilled(t *testing.T) {
	h := newHarness(t)
	begun := h.addWait()
	waiting := h.start("2", "test", "{wait: 'c', comment: 'here'}")
	<-begun
	h.clock.Advance(3 * time.Second)
	rows := h.must("1", "admin", "{currentOp: 1, ns: 'test.c', secs_running: {$gte: 3}, 'command.comment': 'here'}").Lookup("inprog").Doc()
	if rows.Count() != 1 {
		t.Fatalf("%s", rows)
	}
	row := rows.Index(0).Doc()
	if row.Lookup("desc").Str() != "conn"+itoa(h.conn("2").ID) || row.Lookup("microsecs_running").Int64() != 3e6 {
		t.Errorf("%s", row)
	}
	kill := bson.Build().Int32("killOp", 1).Value("op", row.Lookup("opid")).Doc()
	h.send(t.Context(), "1", "admin", kill)
	wantCode(t, <-waiting, mongoerr.Interrupted)
}

// TestRunningPlansAreShown: who looks sees by which plan an operation goes that has not answered yet.
func TestRunningPlansAreShown(t *testing.T) {
	h := newHarness(t)
	h.must("1", "test", "{insert: 'c', documents: [{_id: 1, a: 1}]}")
	h.must("1", "test", "{createIndexes: 'c', indexes: [{key: {a: 1}, name: 'a'}]}")
	const slow = "{a: 1, $where: 'function() { for (;;); }'}"
	for _, command := range []string{
		"{find: 'c', filter: " + slow + "}", "{count: 'c', query: " + slow + "}", "{update: 'c', updates: [{q: " + slow + ", u: {$set: {b: 1}}}]}",
	} {
		reply := h.start("2", "test", command)
		var row bson.Doc
		for row == nil || row.Lookup("planSummary").IsMissing() && len(reply) == 0 {
			rows := h.must("1", "admin", "{currentOp: 1, ns: 'test.c'}").Lookup("inprog").Doc()
			if !rows.IsEmpty() {
				row = rows.Index(0).Doc()
			}
			runtime.Gosched()
		}
		if got := row.Lookup("planSummary"); got.Type != bson.TypeString || got.Str() != "IXSCAN { a: 1 }" {
			t.Errorf("%s: %s", command, row)
		}
		h.send(t.Context(), "1", "admin", bson.Build().Int32("killOp", 1).Value("op", row.Lookup("opid")).Doc())
		<-reply
	}
}

// TestRunningGetMoreIsShown: who looks sees which query the documents are of that a getMore fetches.
func TestRunningGetMoreIsShown(t *testing.T) {
	h := newHarness(t)
	h.must("1", "test", "{create: 'c', capped: true, size: 4096}")
	h.must("1", "test", "{insert: 'c', documents: [{_id: 1}, {_id: 2}]}")
	const find = "{find: 'c', filter: {_id: {$gt: 0}}, batchSize: 2, tailable: true, awaitData: true}"
	id := h.must("2", "test", find).Lookup("cursor").Doc().Lookup("id").Int64()
	waiting := h.start("2", "test", fmt.Sprintf("{getMore: NumberLong('%d'), collection: 'c', maxTimeMS: 60000}", id))
	var rows bson.Doc
	for rows.IsEmpty() {
		rows = h.must("1", "admin", "{currentOp: 1, op: 'getmore', 'cursor.cursorId': {$exists: true}}").Lookup("inprog").Doc()
		runtime.Gosched()
	}
	shown := rows.Index(0).Doc().Lookup("cursor").Doc()
	for path, want := range map[string]bson.Value{
		"cursorId": bson.Int64(id), "nDocsReturned": bson.Int64(2), "nBatchesReturned": bson.Int64(1), "tailable": bson.Bool(true), "awaitData": bson.Bool(true),
		"operationUsingCursorId": rows.Index(0).Doc().Lookup("opid"),
	} {
		if got := shown.Lookup(path); bson.Compare(got, want) != 0 {
			t.Errorf("%s is %s, and should be %s", path, got, want)
		}
	}
	if got := shown.Lookup("originatingCommand").Doc().Lookup("filter").String(); got != bson.MustDoc("{a: {_id: {$gt: 0}}}").Lookup("a").String() {
		t.Errorf("the cursor is of the query %s", got)
	}
	h.must("1", "test", "{insert: 'c', documents: [{_id: 3}]}")
	<-waiting
}

func TestATimeLimitEndsAnOperation(t *testing.T) {
	h := newHarness(t)
	begun := h.addWait()
	waiting := h.start("2", "test", "{wait: 1, maxTimeMS: 50}")
	<-begun
	h.clock.Advance(50 * time.Millisecond)
	wantCode(t, <-waiting, mongoerr.MaxTimeMSExpired)
}

func TestKillSessionsStopsTheirOperationsAndCursors(t *testing.T) {
	const one, two = "UUID('11111111-1111-4111-8111-111111111111')", "UUID('22222222-2222-4222-8222-222222222222')"
	const nobody = "BinData(0, '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=')"
	for _, c := range []struct {
		command  string
		one, two bool // which sessions it stops
	}{
		{"{killSessions: [{id: " + one + "}]}", true, false},
		{"{killSessions: []}", true, true},
		{"{killAllSessions: []}", true, true},
		{"{killAllSessions: [{user: 'a', db: 'b'}]}", false, false},
		{"{killAllSessionsByPattern: []}", true, true},
		{"{killAllSessionsByPattern: [{lsid: {id: " + two + ", uid: " + nobody + "}}]}", false, true},
		{"{killAllSessionsByPattern: [{uid: " + nobody + "}]}", true, true},
		{"{killAllSessionsByPattern: [{uid: BinData(0, 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=')}]}", false, false},
	} {
		h := newHarness(t)
		begun := h.addWait()
		waiting := map[string]chan Reply{}
		for name, id := range map[string]string{"one": one, "two": two} {
			waiting[name] = h.start(name, "test", "{wait: 1, lsid: {id: "+id+"}}")
			<-begun
			_, raw := bson.MustParse(id).Binary()
			if err := h.server.Cursors.Add(&cursor.Cursor{NS: "test.c", LSID: string(raw), Source: noDocuments{}}); err != nil {
				t.Fatal(err)
			}
		}
		h.must("1", "test", c.command)
		left := int64(2)
		for name, stopped := range map[string]bool{"one": c.one, "two": c.two} {
			if !stopped {
				continue
			}
			left--
			wantCode(t, <-waiting[name], mongoerr.Interrupted)
			delete(waiting, name)
		}
		if open, _, _, _ := h.server.Cursors.Counts(); open != left {
			t.Errorf("%s: %d cursors are open", c.command, open)
		}
		for _, w := range waiting {
			if r := h.later(w, time.Minute).Body; !r.Lookup("ok").Truthy() {
				t.Errorf("%s: %s", c.command, r)
			}
		}
	}
}

type noDocuments struct{}

func (noDocuments) Next(context.Context) (bson.Doc, error) { return nil, nil }
func (noDocuments) Park()                                  {}
func (noDocuments) Held() int64                            { return 0 }
func (noDocuments) Shrink() error                          { return nil }
func (noDocuments) Close() error                           { return nil }

func TestALockHoldsWritesUp(t *testing.T) {
	h := newHarness(t)
	h.must("1", "admin", "{fsync: 1, lock: true}")
	insert := h.start("2", "test", "{insert: 'c', documents: [{_id: 1}], maxTimeMS: 100}")
	for h.must("1", "admin", "{currentOp: 1, op: 'insert'}").Lookup("inprog").Doc().IsEmpty() {
	}
	h.must("3", "test", "{find: 'c'}") // readers pass
	wantCode(t, h.later(insert, 100*time.Millisecond), mongoerr.MaxTimeMSExpired)

	insert = h.start("2", "test", "{insert: 'c', documents: [{_id: 1}]}")
	h.must("1", "admin", "{fsyncUnlock: 1}")
	if r := (<-insert).Body; r.Lookup("n").Int32() != 1 {
		t.Errorf("%s", r)
	}
}

func TestALockIsWaitedForSoLong(t *testing.T) {
	h := newHarness(t)
	if err := h.server.Writes.Enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	lock := h.start("1", "admin", "{fsync: 1, lock: true, fsyncLockAcquisitionTimeoutMillis: 500}")
	for h.must("2", "admin", "{currentOp: 1, 'command.fsync': 1}").Lookup("inprog").Doc().IsEmpty() {
	}
	wantCode(t, h.later(lock, 500*time.Millisecond), mongoerr.LockTimeout)
	h.server.Writes.Leave()
	if n := h.server.Writes.Locks(); n != 0 {
		t.Errorf("%d locks", n)
	}
}

func (h *harness) await(millis string) string {
	return "{hello: 1, topologyVersion: {processId: " + bson.ObjectID(h.server.processID).Text() + ", counter: NumberLong(0)}, maxAwaitTimeMS: " + millis + "}"
}

func TestAnAwaitedHelloIsAnsweredInTime(t *testing.T) {
	h := newHarness(t)
	if r := h.must("1", "admin", h.await("0")); !r.Lookup("isWritablePrimary").Truthy() {
		t.Errorf("%s", r)
	}
	// Clients and sockets live in real time, whatever clock the database has.
	if r := h.must("1", "admin", h.await("5")); !r.Lookup("ok").Truthy() {
		t.Errorf("%s", r)
	}
}

func TestAnAwaitedHelloEndsWithTheServer(t *testing.T) {
	h := newHarness(t)
	stopping := make(chan struct{})
	h.server.Stopping = stopping
	waiting := h.start("1", "admin", h.await("10000"))
	exhausting, conn := make(chan Reply), h.conn("2")
	go func() {
		body := bson.MustDoc(strings.TrimSuffix(h.await("10000"), "}") + ", $db: 'admin'}")
		exhausting <- h.server.Handle(t.Context(), conn, Request{Body: body, ExhaustAllowed: true})
	}()
	// serverStatus counts both, and one of them twice.
	told := func() bson.Doc { return h.must("3", "admin", "{serverStatus: 1}").Lookup("connections").Doc() }
	for c := told(); c.Lookup("awaitingTopologyChanges").Int64() != 2; c = told() {
		runtime.Gosched()
	}
	if c := told(); c.Lookup("exhaustHello").Int64() != 1 || c.Lookup("exhaustIsMaster").Int64() != 0 {
		t.Errorf("%s", c)
	}
	close(stopping)
	wantCode(t, <-waiting, mongoerr.InterruptedAtShutdown)
	if r := <-exhausting; r.Body.Lookup("ok").Truthy() {
		t.Errorf("%s", r.Body)
	}
	if c := told(); c.Lookup("awaitingTopologyChanges").Int64() != 0 || c.Lookup("exhaustHello").Int64() != 0 {
		t.Errorf("%s", c)
	}
}

// An exhaust hello is asked again with the version that the client knows by then, not with the one it began with.
func TestAnExhaustHelloGoesOn(t *testing.T) {
	h := newHarness(t)
	body := bson.MustDoc("{hello: 1, topologyVersion: {processId: ObjectId('000000000000000000000000'), counter: NumberLong(3)}, maxAwaitTimeMS: 10000, $db: 'admin'}")
	reply := h.server.Handle(t.Context(), h.conn("1"), Request{Body: body, ExhaustAllowed: true})
	if !reply.MoreToCome || !reply.Body.Lookup("ok").Truthy() {
		t.Fatalf("%v %s", reply.MoreToCome, reply.Body)
	}
	v := reply.Next.Lookup("topologyVersion").Doc()
	if v.Lookup("processId").ObjectID() != h.server.processID || v.Lookup("counter").Int64() != 0 || reply.Next.Lookup("$db").Str() != "admin" {
		t.Errorf("%s", reply.Next)
	}
}

func TestShutdownIsForThoseNearby(t *testing.T) {
	h := newHarness(t)
	ended := false
	h.server.Shutdown = func() { ended = true }
	h.conns["far"] = NewConn(9, "192.0.2.1:5", "192.0.2.2:27017")
	wantCode(t, h.send(t.Context(), "far", "admin", bson.MustDoc("{shutdown: 1}")), mongoerr.Unauthorized)
	if ended {
		t.Error("ended from afar")
	}
	reply := h.send(t.Context(), "1", "admin", bson.MustDoc("{shutdown: 1, force: false, timeoutSecs: 0.0}"))
	if !ended || !reply.Close || !reply.Body.Lookup("ok").Truthy() {
		t.Errorf("%v %v %s", ended, reply.Close, reply.Body)
	}
}

func TestReadsHaveTheClustersTimeLimit(t *testing.T) {
	h := newHarness(t)
	h.must("1", "admin", "{setClusterParameter: {defaultMaxTimeMS: {readOperations: 250}}}")
	var got []time.Duration
	h.server.table["find"] = &Command{Name: "find", Run: func(op *Op) (bson.Doc, error) {
		got = append(got, op.MaxTime)
		return bson.EmptyDoc, nil
	}}
	for _, command := range []string{"{find: 'c'}", "{find: 'c', maxTimeMS: 5}", "{find: 'c', maxTimeMS: 0}"} {
		h.must("1", "test", command)
	}
	if len(got) != 3 || got[0] != 250*time.Millisecond || got[1] != 5*time.Millisecond || got[2] != 0 {
		t.Errorf("%v", got)
	}
}

func TestLongCommandsAreCut(t *testing.T) {
	h := newHarness(t)
	begun := h.addWait()
	waiting := h.start("2", "test", "{wait: 'c', long: '"+strings.Repeat("x", 3000)+"'}")
	<-begun
	cut := h.must("1", "admin", "{currentOp: 1, ns: 'test.c'}").Lookup("inprog").Doc().Index(0).Doc().Lookup("command").Doc()
	if text := cut.Lookup("$truncated"); text.IsMissing() || !strings.Contains(text.Str(), "wait") || len(text.Str()) > 2*truncatedBytes {
		t.Errorf("%s", cut)
	}
	admin := namespace.NS{DB: "admin"}
	rows, err := h.server.Documents(t.Context(), admin, "$currentOp", bson.MustParse("{}"))
	if err != nil || len(rows) != 1 || len(rows[0].Lookup("command").Doc().Lookup("long").Str()) != 3000 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	h.later(waiting, time.Minute)
}

// TestAllOperationsAreShown: none hides another, nor itself, behind a long comment.
func TestAllOperationsAreShown(t *testing.T) {
	h := newHarness(t)
	begun := h.addWait()
	var waiting []chan Reply
	for conn, comment := range map[string]string{"2": `'x`, "3": `{a: 'x`, "4": `'x`} {
		comment += strings.Repeat("x", 8<<20) + "'"
		if comment[0] == '{' {
			comment += "}"
		}
		waiting = append(waiting, h.start(conn, "test", "{wait: 'c', comment: "+comment+"}"))
		<-begun
	}
	rows := h.must("1", "admin", "{currentOp: 1, ns: 'test.c'}").Lookup("inprog").Doc().Values(nil)
	if len(rows) != len(waiting) {
		t.Errorf("%d operations are shown", len(rows))
	}
	for _, row := range rows {
		if comment := row.Doc().Lookup("command").Doc().Lookup("comment").Str(); len(comment) > truncatedBytes || !strings.HasSuffix(comment, "xxx...") && !strings.HasPrefix(comment, "{ a: ") {
			t.Errorf("%.2000s", row)
		}
	}
	for _, w := range waiting {
		h.later(w, time.Minute)
	}
}

func TestCurrentOpStage(t *testing.T) {
	h := newHarness(t)
	admin := namespace.NS{DB: "admin"}
	if err := h.server.Cursors.Add(&cursor.Cursor{NS: "test.c", Source: noDocuments{}, Command: bson.MustDoc("{find: 'c'}")}); err != nil {
		t.Fatal(err)
	}
	rows, err := h.server.Documents(t.Context(), admin, "$currentOp", bson.MustParse("{allUsers: true, idleConnections: true, idleCursors: true}"))
	if err != nil || len(rows) != 2 || rows[0].Lookup("desc").Str() != ttlMonitor || rows[1].Lookup("type").Str() != "idleCursor" {
		t.Errorf("%v %v", rows, err)
	}
	h.must("1", "test", "{startSession: 1}")
	if rows, err = h.server.Documents(t.Context(), admin, "$listLocalSessions", bson.MustParse("{}")); err != nil || len(rows) != 1 {
		t.Errorf("%v %v", rows, err)
	}
	if _, err = h.server.Documents(t.Context(), admin, "$noSuch", bson.MustParse("{}")); !mongoerr.Is(err, mongoerr.CommandNotSupported) {
		t.Error(err)
	}
}

func TestTopWatchesSoMany(t *testing.T) {
	var u usage
	for i := range maxUsed + 10 {
		u.add("find", "test.c"+itoa(int64(i)), 1, nil)
	}
	if n := len(u.mu.of); n != maxUsed {
		t.Errorf("%d namespaces", n)
	}
	u.add("drop", "test.c0", 1, nil)
	u.add("find", "test.new", 1, nil)
	if u.mu.of["test.c0"] != nil || u.mu.of["test.new"] == nil {
		t.Error("a dropped collection keeps its place")
	}
	u.add("find", "test.failed", 1, mongoerr.New(mongoerr.BadValue, "x"))
	if u.mu.of["test.failed"] != nil {
		t.Error("a failure is watched")
	}
}

func TestProfilesAreBounded(t *testing.T) {
	var p Profiler
	for i := range maxProfiled {
		if err := p.Set("db"+itoa(int64(i)), func(of *Profiling) { of.Level = 1 }); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Set("more", func(of *Profiling) { of.Level = 1 }); !mongoerr.Is(err, mongoerr.OperationFailed) {
		t.Error(err)
	}
	if err := p.Set("db0", func(of *Profiling) { of.Level = 0 }); err != nil {
		t.Fatal(err)
	}
	if err := p.Set("more", func(of *Profiling) { of.Level = 2 }); err != nil || p.Of("more").Level != 2 || p.Of("db0").Level != 0 {
		t.Error(err)
	}
}

// Everything that looks at others does so while they come and go.
func TestLookingAtOthers(t *testing.T) {
	h := newHarness(t)
	commands := []string{"{currentOp: 1, $all: true}", "{serverStatus: 1}", "{top: 1}", "{killSessions: []}", "{insert: 'c', documents: [{a: 1}]}",
		"{find: 'c', limit: 1, lsid: {id: UUID('11111111-1111-4111-8111-111111111111')}}", "{profile: 1}", "{setParameter: 1, logLevel: 1}",
		"{getParameter: '*'}", "{setClusterParameter: {changeStreams: {}}}", "{fsync: 1}", "{hello: 1}"}
	var all sync.WaitGroup
	for i := range 4 {
		conn := NewConn(int64(100+i), "127.0.0.1:1", "127.0.0.1:27017")
		all.Go(func() {
			for j := range 40 {
				body := bson.Build().Fields(bson.MustDoc(commands[(i*7+j)%len(commands)])).String("$db", "admin").Doc()
				if r := h.server.Handle(context.Background(), conn, Request{Body: body}).Body; r.Lookup("code").Type == bson.TypeInt32 &&
					r.Lookup("code").Int32() != int32(mongoerr.Interrupted) {
					t.Errorf("%s: %s", body, r)
				}
				clear(body) // as the server reuses it for the next message
			}
		})
	}
	all.Wait()
}
