package command

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
)

// handDisk is an engine whose disk is the test's hand.
type handDisk struct {
	kv.Engine
	waiting []func(error)
	synced  int
	err     error
}

func (d *handDisk) AfterSync(done func(error)) bool {
	d.waiting = append(d.waiting, done)
	return true
}

func (d *handDisk) Sync() error {
	d.synced++
	return d.err
}

// turn syncs.
func (d *handDisk) turn(err error) {
	waiting := d.waiting
	d.waiting = nil
	for _, done := range waiting {
		done(err)
	}
}

// late is a harness whose commands need not wait for its disk.
type late struct {
	*harness
	disk  *handDisk
	later int // how often a pending reply was announced
}

func newLate(t *testing.T) *late {
	l := &late{disk: &handDisk{}}
	l.harness = newHarnessOn(t, func(e kv.Engine) kv.Engine {
		l.disk.Engine = e
		return l.disk
	})
	return l
}

func (l *late) handle(command string) Reply {
	db := "test"
	if strings.HasPrefix(command, "{bulkWrite") {
		db = "admin"
	}
	body := bson.Build().Fields(bson.MustDoc(command)).String("$db", db).Doc()
	return l.server.Handle(l.t.Context(), l.conn("1"), Request{Body: body, Later: func() { l.later++ }})
}

// pend runs what must not be over yet.
func (l *late) pend(command string) {
	l.t.Helper()
	if r := l.handle(command); !r.Pending || l.later > 0 {
		l.t.Fatalf("%s: replied %s, announced %d times", command, r.Body, l.later)
	}
	if len(l.disk.waiting) != 1 {
		l.t.Fatalf("%s: waits for %d syncs", command, len(l.disk.waiting))
	}
}

// end syncs and gives the reply of what is pending.
func (l *late) end(err error) string {
	l.t.Helper()
	l.disk.turn(err)
	if l.later != 1 {
		l.t.Fatalf("announced %d times", l.later)
	}
	l.later = 0
	r := l.server.Finish(l.conn("1"))
	if r.Pending {
		l.t.Fatal("pending for ever")
	}
	return r.Body.Text()
}

// What a command has committed is waited for at its end, once.
func TestRepliesAreLate(t *testing.T) {
	l := newLate(t)
	for _, c := range [][2]string{
		{"{insert: 'c', documents: [{_id: 1}, {_id: 2}, {_id: 3}]}", "{ n: 3, ok: 1.0 }"},
		{"{insert: 'c', documents: [{_id: 1}, {_id: 4}], ordered: false}", "{ n: 1, writeErrors: [ { index: 0, code: 11000"},
		{"{update: 'c', updates: [{q: {_id: 1}, u: {$set: {a: 1}}}, {q: {_id: 2}, u: {$set: {a: 1}}}]}", "{ n: 2, nModified: 2, ok: 1.0 }"},
		{"{update: 'c', updates: [{q: {_id: 1}, u: {$set: {a: 2}}}, {q: {_id: 2}, u: {$bad: 1}}]}", "{ n: 1, writeErrors: [ { index: 1"},
		{"{update: 'c', updates: [{q: {}, u: {$set: {b: 1}}, multi: true}]}", "{ n: 4, nModified: 4, ok: 1.0 }"},
		{"{delete: 'c', deletes: [{q: {_id: 1}, limit: 1}, {q: {_id: 2}, limit: 0}]}", "{ n: 2, ok: 1.0 }"},
		{"{findAndModify: 'c', query: {_id: 3}, remove: true}", "{ lastErrorObject: { n: 1 }, value: { _id: 3, b: 1 }, ok: 1.0 }"},
		{"{bulkWrite: 1, ops: [{insert: 0, document: {_id: 8}}, {delete: 0, filter: {_id: 8}}], nsInfo: [{ns: 'test.c'}]}", "{ cursor: "},
		{"{insert: 'c', documents: [{_id: 9}], maxTimeMS: 1000}", "{ n: 1, ok: 1.0 }"},
	} {
		l.pend(c[0])
		if got := l.end(nil); !strings.HasPrefix(got, c[1]) {
			t.Errorf("%s: %s", c[0], got)
		}
	}
	if l.disk.synced > 0 {
		t.Errorf("%d times a command waited", l.disk.synced)
	}
}

// Nothing is waited for where nothing was written, or the client does not ask.
func TestRepliesAreNotLate(t *testing.T) {
	l := newLate(t)
	l.pend("{insert: 'c', documents: [{_id: 1}]}")
	l.end(nil)
	for _, c := range []string{
		"{find: 'c'}",
		"{insert: 'c', documents: [{_id: 1}]}",
		"{insert: 'c', documents: [{_id: 2}], writeConcern: {j: false}}",
		"{update: 'c', updates: [{q: {_id: 7}, u: {$set: {a: 1}}}]}",
		"{delete: 'c', deletes: [{q: {_id: 7}, limit: 1}]}",
		"{insert: 'c', documents: {}}",
		"{aggregate: 'c', pipeline: [{$merge: {into: 'd'}}], cursor: {}}",
		"{aggregate: 'c', pipeline: [{$out: 'd'}], cursor: {}}",
	} {
		if r := l.handle(c); r.Pending || len(l.disk.waiting) > 0 || l.disk.synced > 0 {
			t.Errorf("%s: waits", c)
		}
	}
}

func TestWithoutLaterCommandsWait(t *testing.T) {
	l := newLate(t)
	run := func() string {
		return l.send(t.Context(), "1", "test", bson.MustDoc("{insert: 'c', documents: [{a: 1}]}")).Body.Text()
	}
	if got := run(); got != "{ n: 1, ok: 1.0 }" || l.disk.synced != 1 || len(l.disk.waiting) > 0 {
		t.Errorf("%s after %d syncs", got, l.disk.synced)
	}
	l.disk.err = errors.New("broken")
	if got := run(); !strings.Contains(got, "broken") || !strings.HasPrefix(got, "{ ok: 0.0") {
		t.Error(got)
	}
}

// A sync that fails is the command's failure, and the next command knows nothing of it.
func TestSyncFails(t *testing.T) {
	l := newLate(t)
	l.pend("{insert: 'c', documents: [{a: 1}]}")
	if got := l.end(errors.New("broken")); !strings.HasPrefix(got, "{ ok: 0.0") || !strings.Contains(got, "broken") {
		t.Error(got)
	}
	if r := l.handle("{ping: 1}"); r.Body.Text() != "{ ok: 1.0 }" {
		t.Error(r.Body.Text())
	}
}

// While it waits an operation is shown, and its wait is part of what it took.
func TestWaitingIsPartOfTheOperation(t *testing.T) {
	l := newLate(t)
	lines := l.logged()
	for _, c := range [][2]string{
		{"{insert: 'c', documents: [{_id: 1}]}", `"type":"insert"`},
		{"{update: 'c', updates: [{q: {_id: 1}, u: {$set: {a: 1}}}]}", `"type":"update"`},
	} {
		l.pend(c[0])
		if n := len(l.server.Ops.Running()); n != 1 {
			t.Fatalf("%d operations run", n)
		}
		if got := l.send(t.Context(), "2", "admin", bson.MustDoc("{currentOp: 1, ns: 'test.c'}")).Body.Text(); !strings.Contains(got, "ns: \"test.c\"") {
			t.Errorf("currentOp: %s", got)
		}
		l.clock.Advance(300 * time.Millisecond)
		l.end(nil)
		if got := lines.String(); !strings.Contains(got, c[1]) || !strings.Contains(got, `"durationMillis":300`) {
			t.Errorf("%s: logged %s", c[0], got)
		}
		if n := len(l.server.Ops.Running()); n != 0 {
			t.Fatalf("%d operations run", n)
		}
		lines.Reset()
	}
}

// A reply may be announced, and finished, before Handle returns.
func TestLateBeforeHandleReturns(t *testing.T) {
	h := newHarnessOn(t, func(e kv.Engine) kv.Engine { return sudden{e} })
	conn := h.conn("1")
	for range 200 {
		replies := make(chan Reply)
		later := func() { go func() { replies <- h.server.Finish(conn) }() }
		r := h.server.Handle(t.Context(), conn, Request{Body: bson.MustDoc("{insert: 'c', documents: [{a: 1}], $db: 'test'}"), Later: later})
		if !r.Pending {
			t.Fatal(r.Body)
		}
		if got := (<-replies).Body.Text(); got != "{ n: 1, ok: 1.0 }" {
			t.Fatal(got)
		}
	}
}

// sudden is an engine whose syncs are over at once.
type sudden struct{ kv.Engine }

func (sudden) AfterSync(done func(error)) bool {
	go done(nil)
	return true
}
