package command

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/serverlog"
)

// logged is what the server logs from here on, without the times.
func (h *harness) logged() *bytes.Buffer {
	lines := &bytes.Buffer{}
	h.server.Log = slog.New(slog.NewJSONHandler(lines, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	return lines
}

func TestSlowLog(t *testing.T) {
	h := newHarness(t)
	run := func(text string) { h.send(t.Context(), "1", "test", bson.MustDoc(text)) }
	run("{insert: 'c', documents: [{_id: 1, a: 1}, {_id: 2, a: 1}]}")
	lines := h.logged()
	run("{find: 'c'}")
	if lines.Len() > 0 {
		t.Errorf("what is not slow was logged: %s", lines)
	}
	run("{profile: 0, slowms: -1}")
	lines.Reset()
	run("{find: 'c', filter: {a: 1, d: {$lt: 1.5}}, sort: {a: 1}}")
	run("{update: 'c', updates: [{q: {_id: 1}, u: {$set: {b: 1}}}]}")
	run("{find: 'c', filter: {$bad: 1}}")
	want := []string{
		`{"level":"INFO","msg":"Slow query","type":"command","isFromUserConnection":true,"ns":"test.c",` +
			`"command":{"find":"c","filter":{"a":1,"d":{"$lt":1.5}},"sort":{"a":1},"$db":"test"},"planSummary":"COLLSCAN",` +
			`"queryShapeHash":"E5B401EAF74E06270AAE6C6FA2E4574CA2BA1D1CDD9B2669BCA9C12D539922BD","keysExamined":0,"docsExamined":2,"hasSortStage":true,"numYields":0,"nreturned":0,"reslen":62,"remote":"127.0.0.1:50001",` +
			`"protocol":"op_msg","durationMillis":0,"ctx":"conn1"}`,
		`{"level":"INFO","msg":"Slow query","type":"update","isFromUserConnection":true,"ns":"test.c",` +
			`"command":{"q":{"_id":1},"u":{"$set":{"b":1}},"multi":false,"upsert":false},"planSummary":"EXPRESS_IXSCAN { _id: 1 },EXPRESS_UPDATE","keysExamined":1,"docsExamined":1,` +
			`"nMatched":1,"nModified":1,"nUpserted":0,"numYields":0,"remote":"127.0.0.1:50001","protocol":"op_msg","durationMillis":0,"ctx":"conn1"}`,
	}
	got := strings.Split(strings.TrimSpace(lines.String()), "\n")
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !strings.Contains(got[2], `"errName":"BadValue","errCode":2`) {
		t.Errorf("the failure is not told of: %s", got[2])
	}
}

// What the TTL monitor deletes is profiled and logged as what clients delete is, but for who did it.
func TestRecordSweep(t *testing.T) {
	h := newHarness(t)
	lines := h.logged()
	run := func(text string) bson.Doc { return h.send(t.Context(), "1", "test", bson.MustDoc(text)).Body }
	run("{profile: 1, slowms: 5}")
	sweep := &operation.Operation{Client: &operation.Client{Desc: "TTLMonitor"}, Kind: "remove", NS: "test.c",
		Command: bson.MustDoc("{q: {d: {$lt: 1}}, limit: 0}")}
	sweep.Stats.Deleted.Store(7)
	sweep.Stats.KeysDeleted.Store(21)
	h.server.RecordSweep(sweep, time.Millisecond, nil)
	h.server.RecordSweep(sweep, 20*time.Millisecond, errors.New("no room"))
	run("{profile: 0}")
	reply := run("{find: 'system.profile', filter: {op: 'remove'}, projection: {_id: 0, ts: 0, locks: 0, flowControl: 0}}")
	const want = `[ { op: "remove", ns: "test.c", command: { q: { d: { $lt: 1 } }, limit: 0 }, keysExamined: 0, docsExamined: 0, ` +
		`ndeleted: 7, keysDeleted: 21, numYield: 0, ok: 0.0, errMsg: "no room", errName: "InternalError", errCode: 1, millis: 20, client: "", ` +
		`allUsers: [ { user: "__system", db: "local" } ], user: "__system@local" } ]`
	if got := at(reply.Value(), "cursor.firstBatch").Text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if n := strings.Count(lines.String(), "Slow query"); n != 1 {
		t.Errorf("%d slow operations in the log, not 1:\n%s", n, lines)
	}
}

// While writes are locked out, operations are answered all the same.
func TestProfileWhileLocked(t *testing.T) {
	h := newHarness(t)
	run := func(db, text string) string {
		return showReply(h.send(t.Context(), "1", db, bson.MustDoc(text)).Body, nil, nil, true)
	}
	for _, c := range []struct{ db, command string }{
		{"test", "{profile: 2}"}, {"admin", "{fsync: 1, lock: true}"}, {"test", "{find: 'c'}"}, {"admin", "{fsyncUnlock: 1}"}, {"test", "{find: 'd'}"},
	} {
		if got := run(c.db, c.command); got != "ok" {
			t.Fatalf("%s: %s", c.command, got)
		}
	}
	reply := h.send(t.Context(), "1", "test", bson.MustDoc("{count: 'system.profile', query: {op: 'query'}}")).Body
	if n := reply.Lookup("n").Int32(); n != 1 {
		t.Errorf("%d finds were profiled, not the 1 after the lock", n)
	}
}

func TestGetMoreHasTheCommentOfItsCursor(t *testing.T) {
	h := newHarness(t)
	run := func(text string) bson.Doc { return h.send(t.Context(), "1", "test", bson.MustDoc(text)).Body }
	run("{insert: 'c', documents: [{_id: 1}, {_id: 2}, {_id: 3}, {_id: 4}]}")
	run("{profile: 2}")
	id := at(run(`{find: "c", batchSize: 1, comment: "why"}`).Value(), "cursor.id").Int64()
	for own, want := range map[string]string{"": `"why"`, `, comment: "mine"`: `"mine"`} {
		run(fmt.Sprintf("{getMore: NumberLong(%q), collection: 'c', batchSize: 1%s}", strconv.FormatInt(id, 10), own))
		last := run("{find: 'system.profile', filter: {op: 'getmore'}, sort: {$natural: -1}, limit: 1}")
		if got := at(last.Value(), "cursor.firstBatch.0.command.comment").String(); got != want {
			t.Errorf("%s: %s, not %s", own, got, want)
		}
	}
}

func TestATruncatedCommandKeepsItsComment(t *testing.T) {
	long := bson.Build().String("find", "c").Object("filter").String("a", strings.Repeat("x", 2*truncatedBytes)).End().String("comment", "why").Doc()
	got := describeCommand(long, truncatedBytes)
	if got.Lookup("$truncated").IsMissing() || got.Lookup("comment").String() != `"why"` {
		t.Errorf("%s", got)
	}
}

// TestLongCommandsAreProfiled with what they look for, as mongod profiles them, and logged with as much of it as the log takes.
func TestLongCommandsAreProfiled(t *testing.T) {
	h := newHarness(t)
	h.must("1", "test", "{profile: 2, slowms: -1}")
	var out bytes.Buffer
	h.server.Log = serverlog.New(&out, 0).For("COMMAND")
	find := func(n int) *bson.Builder {
		b := bson.Build().String("find", "c").Object("filter").Object("x").Array("$nin")
		for i := range n {
			b.String(bson.IndexKey(i), fmt.Sprintf("some value number %d", i))
		}
		return b.End().End().End().Int32("limit", 1)
	}
	send := func(b *bson.Builder) (profiled bson.Doc, line string) {
		out.Reset()
		h.send(t.Context(), "1", "test", b.Doc())
		line = out.String()
		reply := h.must("1", "test", "{find: 'system.profile', sort: {$natural: -1}, limit: 1}")
		return reply.Lookup("cursor").Doc().Lookup("firstBatch").Doc().Index(0).Doc(), line
	}
	profiled, line := send(find(60))
	if got := profiled.Lookup("command").Doc().Lookup("filter").String(); !strings.Contains(got, "some value number 59") || !strings.Contains(line, `"some value number 59"]}},"limit":1`) {
		t.Errorf("%s\n%s", profiled, line)
	}
	long := strings.Repeat("x", 2<<20)
	profiled, line = send(find(5000).String("comment", long))
	command := profiled.Lookup("command").Doc()
	if text := command.Lookup("$truncated").Str(); len(text) != maxProfiledBytes || !strings.HasPrefix(text, `{ find: "c", filter: { x: { $nin: [ "some value number 0", `) || len(profiled) > 2*maxProfiledBytes {
		t.Errorf("%d bytes: %.500s", len(profiled), profiled)
	}
	if !strings.Contains(line, `"command":{"find":"c","filter":{"x":{"$nin":["some value number 0",`) || len(line) > 12<<10 ||
		!strings.Contains(line, `},"truncated":{"command":{"filter":{"x":{"$nin":{"4`) || !strings.HasSuffix(line, "}}\n") {
		t.Errorf("%d bytes: %.300s … %s", len(line), line, line[len(line)-300:])
	}
	profiled, line = send(bson.Build().String("find", "c").Object("filter").Int32("$"+long, 1).End())
	if len(profiled) > 3*maxProfiledBytes || len(line) > 22<<10 || !strings.Contains(line, `"errMsg":{"type":"string","size":`) {
		t.Errorf("%d bytes: %.300s\n%d bytes: %.300s", len(profiled), profiled, len(line), line)
	}
}
