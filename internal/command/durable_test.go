package command

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
)

// handDisk is an engine whose disk is the test's hand.
type handDisk struct {
	kv.Engine
	synced int
	err    error
	// while, unless nil, is called during a sync.
	while func()
}

func (d *handDisk) AwaitDurable(uint64) error {
	d.synced++
	if d.while != nil {
		d.while()
	}
	return d.err
}

// syncing is a harness on a handDisk.
type syncing struct {
	*harness
	disk *handDisk
}

func newSyncing(t *testing.T) *syncing {
	s := &syncing{disk: &handDisk{}}
	s.harness = newHarnessOn(t, func(e kv.Engine) kv.Engine {
		s.disk.Engine = e
		return s.disk
	})
	return s
}

// handle runs a command and says how many syncs it waited for.
func (s *syncing) handle(command string) (reply string, syncs int) {
	db := "test"
	if strings.HasPrefix(command, "{bulkWrite") {
		db = "admin"
	}
	before := s.disk.synced
	r := s.send(s.t.Context(), "1", db, bson.MustDoc(command))
	return r.Body.Text(), s.disk.synced - before
}

// What a command has committed is waited for at its end, once.
func TestRepliesWaitForTheDisk(t *testing.T) {
	s := newSyncing(t)
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
		if got, syncs := s.handle(c[0]); !strings.HasPrefix(got, c[1]) || syncs != 1 {
			t.Errorf("%s: %s after %d syncs", c[0], got, syncs)
		}
	}
}

// Nothing is waited for where nothing was written, or the client does not ask.
func TestRepliesDoNotWait(t *testing.T) {
	s := newSyncing(t)
	s.handle("{insert: 'c', documents: [{_id: 1}]}")
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
		if got, syncs := s.handle(c); syncs > 0 {
			t.Errorf("%s waits: %s", c, got)
		}
	}
}

// A sync that fails is the command's failure, and the next command knows nothing of it.
func TestSyncFails(t *testing.T) {
	s := newSyncing(t)
	s.disk.err = errors.New("broken")
	if got, _ := s.handle("{insert: 'c', documents: [{a: 1}]}"); !strings.HasPrefix(got, "{ ok: 0.0") || !strings.Contains(got, "broken") {
		t.Error(got)
	}
	if got, _ := s.handle("{ping: 1}"); got != "{ ok: 1.0 }" {
		t.Error(got)
	}
}

// While it waits an operation is shown, and its wait is part of what it took.
func TestWaitingIsPartOfTheOperation(t *testing.T) {
	s := newSyncing(t)
	lines := s.logged()
	for _, c := range [][2]string{
		{"{insert: 'c', documents: [{_id: 1}]}", `"type":"insert"`},
		{"{update: 'c', updates: [{q: {_id: 1}, u: {$set: {a: 1}}}]}", `"type":"update"`},
	} {
		s.disk.while = func() {
			if n := len(s.server.Ops.Running()); n != 1 {
				t.Errorf("%d operations run", n)
			}
			if got := s.send(t.Context(), "2", "admin", bson.MustDoc("{currentOp: 1, ns: 'test.c'}")).Body.Text(); !strings.Contains(got, "ns: \"test.c\"") {
				t.Errorf("currentOp: %s", got)
			}
			s.clock.Advance(300 * time.Millisecond)
		}
		s.handle(c[0])
		if got := lines.String(); !strings.Contains(got, c[1]) || !strings.Contains(got, `"durationMillis":300`) {
			t.Errorf("%s: logged %s", c[0], got)
		}
		if n := len(s.server.Ops.Running()); n != 0 {
			t.Fatalf("%d operations run", n)
		}
		lines.Reset()
	}
}

// newSyncingMember is newSyncing of a member of a replica set.
func newSyncingMember(t *testing.T) *syncing {
	s := &syncing{disk: &handDisk{}}
	s.harness = newHarnessAs(t, &ReplicaSet{Name: "rs", Host: "localhost:27018", Term: new(atomic.Int64), OplogBytes: 1 << 30}, func(e kv.Engine) kv.Engine {
		s.disk.Engine = e
		return s.disk
	})
	if err := s.server.JoinReplicaSet(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	s.ok(t, "admin", "{replSetInitiate: 1}")
	return s
}

// TestReadsThatAreDurable: a reader who asks for what a majority has, and a change stream, get nothing that a crash could take back.
func TestReadsThatAreDurable(t *testing.T) {
	s := newSyncingMember(t)
	s.handle("{insert: 'c', documents: [{_id: 1}], writeConcern: {w: 1, j: false}}")
	for command, waits := range map[string]int{
		"{find: 'c'}": 0,
		"{find: 'c', readConcern: {level: 'local'}}":                                       0,
		"{find: 'c', readConcern: {level: 'majority'}}":                                    1,
		"{aggregate: 'c', pipeline: [], cursor: {}, readConcern: {level: 'linearizable'}}": 1,
		"{aggregate: 'c', pipeline: [{$changeStream: {}}], cursor: {}}":                    1,
	} {
		if got, syncs := s.handle(command); !strings.HasPrefix(got, "{ cursor: ") || syncs != waits {
			t.Errorf("%s: %s after %d syncs, want %d", command, got, syncs, waits)
		}
	}
}

// TestBatchesThatAreDurable: nor do later batches of a cursor that was opened so tell anything that a crash could take back.
func TestBatchesThatAreDurable(t *testing.T) {
	s := newSyncingMember(t)
	s.handle("{insert: 'c', documents: [{_id: 1}, {_id: 2}, {_id: 3}]}")
	for concern, waits := range map[string]int{"local": 0, "majority": 1} {
		s.handle("{find: 'c', batchSize: 1, readConcern: {level: '" + concern + "'}}")
		open := s.server.Cursors.Idle()
		if len(open) != 1 {
			t.Fatalf("%d cursors are open", len(open))
		}
		if got, syncs := s.handle(fmt.Sprintf("{getMore: NumberLong('%d'), collection: 'c'}", open[0].ID)); !strings.HasPrefix(got, "{ cursor: { nextBatch: [ { _id: 2 }") || syncs != waits {
			t.Errorf("%s: %s after %d syncs, want %d", concern, got, syncs, waits)
		}
	}
}

// TestNothingWrittenIsDurable: what a member's write that changes nothing tells of, and what a transaction has read that wrote nothing, is not
// taken back by a crash either, whatever the read concern.
func TestNothingWrittenIsDurable(t *testing.T) {
	s := newSyncingMember(t)
	s.handle("{insert: 'c', documents: [{_id: 1, a: 1}], writeConcern: {w: 1, j: false}}")
	const session = "lsid: {id: UUID('00000000-0000-0000-0000-000000000001')}, txnNumber: NumberLong(%N), autocommit: false"
	for _, c := range []struct {
		db, command string
		waits       int
	}{
		{"test", "{update: 'c', updates: [{q: {_id: 7}, u: {$set: {a: 1}}}]}", 1},
		{"test", "{update: 'c', updates: [{q: {_id: 1}, u: {$set: {a: 1}}}]}", 1},
		{"test", "{update: 'c', updates: [{q: {_id: 7}, u: {$set: {a: 1}}}], writeConcern: {w: 'majority'}}", 1},
		{"test", "{update: 'c', updates: [{q: {_id: 7}, u: {$set: {a: 1}}}], writeConcern: {w: 1, j: false}}", 0},
		{"test", "{delete: 'c', deletes: [{q: {_id: 7}, limit: 1}]}", 1},
		{"test", "{insert: 'c', documents: [{_id: 1}]}", 1},
		{"test", "{findAndModify: 'c', query: {_id: 7}, remove: true}", 1},
		{"test", "{update: 'c', updates: [{q: {_id: 1}, u: {$set: {a: 2}}}]}", 1},
		{"test", "{find: 'c', startTransaction: true, " + strings.Replace(session, "%N", "1", 1) + "}", 0},
		{"test", "{update: 'c', updates: [{q: {_id: 7}, u: {$set: {a: 1}}}], " + strings.Replace(session, "%N", "1", 1) + "}", 0},
		{"admin", "{commitTransaction: 1, " + strings.Replace(session, "%N", "1", 1) + "}", 1},
		{"test", "{find: 'c', startTransaction: true, " + strings.Replace(session, "%N", "2", 1) + "}", 0},
		{"admin", "{commitTransaction: 1, writeConcern: {w: 1, j: false}, " + strings.Replace(session, "%N", "2", 1) + "}", 0},
		{"test", "{find: 'c', startTransaction: true, " + strings.Replace(session, "%N", "3", 1) + "}", 0},
		{"admin", "{abortTransaction: 1, " + strings.Replace(session, "%N", "3", 1) + "}", 0},
	} {
		before := s.disk.synced
		reply := s.send(t.Context(), "1", c.db, bson.MustDoc(c.command)).Body.Text()
		if syncs := s.disk.synced - before; strings.HasPrefix(reply, "{ ok: 0.0") || syncs != c.waits {
			t.Errorf("%s: %s after %d syncs, want %d", c.command, reply, syncs, c.waits)
		}
	}
}
