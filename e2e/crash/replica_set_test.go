package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/binary"
)

// What the load of TestReplicaSetCrash is about: accounts in two collections, and a line in the journal for each transfer.
const (
	bankers, retriers = 4, 3
	accounts          = 12 // in each collection
	opening           = 1000
	journal           = "journal"
	counters          = "counters"
)

var accountColls = [2]string{"giro", "savings"}

// Codes of errors with which a transaction may be tried again.
const (
	writeConflict     = 112
	noSuchTransaction = 251
	lockTimeout       = 24
	snapshotGone      = 246
)

// TestReplicaSetCrash kills the primary of a replica set of one under transfers between collections, retryable writes, and a change
// stream. What was acknowledged is there, no transfer is there in part, a write that is sent again is executed once, and each event
// comes once.
func TestReplicaSetCrash(t *testing.T) {
	random := rand.New(rand.NewPCG(chosenSeed(t), 9))
	path, data := binary.Build(t), t.TempDir()
	args := []string{"--dbpath", data, "--replSet", "rs", "--replSetInitiate"}
	server := binary.Start(t, path, args...)
	openAccounts(t, database(t, server))

	var load []*banker
	for i := range bankers {
		load = append(load, &banker{session: newRawSession(random), name: fmt.Sprint("b", i), random: rand.New(rand.NewPCG(*seed, uint64(100+i))), lines: map[string]bool{}})
	}
	var again []*retrier
	for i := range retriers {
		again = append(again, &retrier{session: newRawSession(random), id: fmt.Sprint("r", i), random: rand.New(rand.NewPCG(*seed, uint64(200+i)))})
	}
	watch := &watcher{seen: map[string]int{}}
	for round := range *rounds {
		alive := time.Duration(200+random.IntN(800)) * time.Millisecond
		var work []func(context.Context)
		for _, b := range load {
			work = append(work, func(ctx context.Context) { b.run(ctx, server.Addr) })
		}
		for _, r := range again {
			work = append(work, func(ctx context.Context) { r.run(ctx, server.Addr) })
		}
		stream := database(t, server)
		work = append(work, func(ctx context.Context) { watch.run(ctx, stream) })
		killUnder(t, server, alive, work...)

		server = binary.Start(t, path, args...)
		db := database(t, server)
		transfers, writes := 0, 0
		for _, b := range load {
			b.settle(t, server.Addr)
			transfers += len(b.lines)
		}
		for _, r := range again {
			r.settle(t, server.Addr)
			writes += r.written
		}
		verifyBank(t, db, load)
		verifyCounters(t, db, again)
		watch.catchUp(t, db)
		t.Logf("round %d: killed after %v; %d transfers and %d retryable writes so far, %d events", round+1, alive, transfers, writes, len(watch.seen))
		if t.Failed() {
			t.Fatalf("again with: go test ./e2e/crash -run TestReplicaSetCrash -v -args -rounds %d -seed %d\nthe server's log ends with:\n%s", *rounds, *seed, server.Log())
		}
	}
}

func openAccounts(t *testing.T, db *mongo.Database) {
	t.Helper()
	for _, coll := range accountColls {
		var docs []bson.D
		for i := range accounts {
			docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "balance", Value: opening}})
		}
		if _, err := db.Collection(coll).InsertMany(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
	}
	for _, coll := range []string{journal, counters} {
		if err := db.CreateCollection(t.Context(), coll); err != nil {
			t.Fatal(err)
		}
	}
}

// rawSession is a session that is the test's own, and the number of its last transaction or write.
type rawSession struct {
	id     bson.Binary
	number int64
}

func newRawSession(random *rand.Rand) rawSession {
	id := make([]byte, 16)
	for i := range id {
		id[i] = byte(random.Uint32())
	}
	return rawSession{bson.Binary{Subtype: 4, Data: id}, 0}
}

// with is a command in the session.
func (s *rawSession) with(command bson.D, more ...bson.E) bson.D {
	command = append(command, bson.E{Key: "lsid", Value: bson.D{{Key: "id", Value: s.id}}}, bson.E{Key: "txnNumber", Value: s.number})
	return append(command, more...)
}

var inTransaction = bson.E{Key: "autocommit", Value: false}

// line is a transfer in the journal.
type line struct {
	ID       string `bson:"_id"`
	From, To int
	// Out is the collection that the money leaves; it goes to the other one.
	Out, Amount int
}

// banker moves money in transactions.
type banker struct {
	session  rawSession
	name     string
	random   *rand.Rand
	made     int
	lines    map[string]bool // in the journal
	open     *line           // whose commit was sent and not answered
	problems []string
}

func (b *banker) run(ctx context.Context, addr string) {
	c, err := dialRaw(ctx, addr)
	if err != nil {
		return
	}
	defer c.close()
	for ctx.Err() == nil {
		err := b.transfer(c)
		var answer *errAnswer
		switch {
		case err == nil, hasCode(err, writeConflict, noSuchTransaction, lockTimeout, snapshotGone):
		case errors.As(err, &answer):
			b.problems = append(b.problems, err.Error())
			return
		default:
			return // it is dead
		}
	}
}

// transfer is one transaction: it reads two accounts, changes both, and writes a line. An error that is an answer leaves nothing of it.
func (b *banker) transfer(c *rawConn) error {
	b.session.number++
	b.made++
	l := &line{ID: fmt.Sprintf("%s-%d", b.name, b.made), From: b.random.IntN(accounts), To: b.random.IntN(accounts), Out: b.random.IntN(2), Amount: 1 + b.random.IntN(50)}
	starts := bson.E{Key: "startTransaction", Value: true}
	for i, a := range []struct {
		coll, account, add int
	}{{l.Out, l.From, -l.Amount}, {1 - l.Out, l.To, l.Amount}} {
		more := []bson.E{inTransaction}
		if i == 0 {
			more = append(more, starts)
		}
		reply, err := c.run(dbName, b.session.with(bson.D{{Key: "find", Value: accountColls[a.coll]}, {Key: "filter", Value: bson.D{{Key: "_id", Value: a.account}}}}, more...))
		if err != nil {
			return b.abort(c, err)
		}
		var found struct {
			Cursor struct {
				FirstBatch []struct{ Balance int } `bson:"firstBatch"`
			}
		}
		if err := bson.Unmarshal(reply, &found); err != nil || len(found.Cursor.FirstBatch) != 1 {
			return fmt.Errorf("no account in %s (%w)", reply, err)
		}
		set := bson.D{{Key: "$set", Value: bson.D{{Key: "balance", Value: found.Cursor.FirstBatch[0].Balance + a.add}}}} // what another would overwrite
		update := bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: a.account}}}, {Key: "u", Value: set}}
		if _, err := c.run(dbName, b.session.with(bson.D{{Key: "update", Value: accountColls[a.coll]}, {Key: "updates", Value: bson.A{update}}}, inTransaction)); err != nil {
			return b.abort(c, err)
		}
	}
	if _, err := c.run(dbName, b.session.with(bson.D{{Key: "insert", Value: journal}, {Key: "documents", Value: bson.A{l}}}, inTransaction)); err != nil {
		return b.abort(c, err)
	}
	if b.random.IntN(8) == 0 {
		_, err := c.run("admin", b.session.with(bson.D{{Key: "abortTransaction", Value: 1}}, inTransaction))
		return err
	}
	b.open = l
	return b.commit(c)
}

// abort gives up what has failed, which the server may have done by itself.
func (b *banker) abort(c *rawConn, err error) error {
	if answer := new(errAnswer); errors.As(err, &answer) {
		if _, e := c.run("admin", b.session.with(bson.D{{Key: "abortTransaction", Value: 1}}, inTransaction)); e != nil && !hasCode(e, noSuchTransaction) {
			return e
		}
	}
	return err
}

func (b *banker) commit(c *rawConn) error {
	_, err := c.run("admin", b.session.with(bson.D{{Key: "commitTransaction", Value: 1}}, inTransaction))
	answer := new(errAnswer)
	switch {
	case err == nil:
		b.lines[b.open.ID] = true
		b.open = nil
	case errors.As(err, &answer):
		b.open = nil
	}
	return err
}

// settle sends the commit again whose answer did not come: it is answered the way it ended.
func (b *banker) settle(t *testing.T, addr string) {
	t.Helper()
	for _, p := range b.problems {
		t.Errorf("%s: %s", b.name, p)
	}
	if b.open == nil {
		return
	}
	c, err := dialRaw(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := b.commit(c); err != nil && !hasCode(err, noSuchTransaction) {
		t.Errorf("%s: a commit that is sent again: %v", b.name, err)
	}
}

// verifyBank holds the journal against what was acknowledged, and the accounts against the journal.
func verifyBank(t *testing.T, db *mongo.Database, load []*banker) {
	t.Helper()
	cursor, err := db.Collection(journal).Find(t.Context(), bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []line
	if err := cursor.All(t.Context(), &lines); err != nil {
		t.Fatal(err)
	}
	var want [2][accounts]int
	there := map[string]bool{}
	for _, l := range lines {
		there[l.ID] = true
		want[l.Out][l.From] -= l.Amount
		want[1-l.Out][l.To] += l.Amount
	}
	known := 0
	for _, b := range load {
		for id := range b.lines {
			if !there[id] {
				t.Errorf("the transfer %s was acknowledged and is lost", id)
			}
		}
		known += len(b.lines)
	}
	if known != len(lines) {
		t.Errorf("%d transfers are there, and %d were acknowledged", len(lines), known)
	}
	for i, coll := range accountColls {
		cursor, err := db.Collection(coll).Find(t.Context(), bson.D{})
		if err != nil {
			t.Fatal(err)
		}
		var found []struct {
			ID      int `bson:"_id"`
			Balance int
		}
		if err := cursor.All(t.Context(), &found); err != nil {
			t.Fatal(err)
		}
		for _, a := range found {
			if a.Balance != opening+want[i][a.ID] {
				t.Errorf("account %d of %s has %d, its journal %d", a.ID, coll, a.Balance, opening+want[i][a.ID])
			}
		}
	}
}

// retrier counts in retryable writes, each of which it sends again when it gets no answer, and now and then when it gets one.
type retrier struct {
	session rawSession
	id      string
	random  *rand.Rand
	counts  [3]int // what was counted, and is known
	made    int    // documents that were inserted
	written int
	// open is a write that was sent and not answered.
	open     *retried
	problems []string
}

// retried is a write as it was sent, what it adds to which counter, and how many documents it inserts.
type retried struct {
	command  bson.D
	add      [3]int
	inserted int
	returns  int // what a findAndModify has to return; -1 where it is none
}

func (r *retrier) run(ctx context.Context, addr string) {
	c, err := dialRaw(ctx, addr)
	if err != nil {
		return
	}
	defer c.close()
	for ctx.Err() == nil {
		r.session.number++
		w := r.next()
		r.open = w
		for sent := 1 + r.random.IntN(5)/4; sent > 0; sent-- {
			if !r.send(c, w) {
				return
			}
		}
		r.done(w)
	}
}

func (r *retrier) done(w *retried) {
	for i, n := range w.add {
		r.counts[i] += n
	}
	r.made += w.inserted
	r.written++
	r.open = nil
}

// send sends a write, and looks at the answer.
func (r *retrier) send(c *rawConn, w *retried) (answered bool) {
	reply, err := c.run(dbName, w.command)
	if answer := new(errAnswer); errors.As(err, &answer) {
		r.problems = append(r.problems, err.Error())
		return false
	}
	if err != nil {
		return false
	}
	if w.returns < 0 {
		n := reply.Lookup("n").AsInt64()
		want := int64(w.inserted)
		for _, add := range w.add {
			if add > 0 {
				want++
			}
		}
		if n != want {
			r.problems = append(r.problems, fmt.Sprintf("%v: %v, want n: %d", w.command, reply, want))
		}
		return true
	}
	if got := reply.Lookup("value", "n").AsInt64(); got != int64(w.returns) {
		r.problems = append(r.problems, fmt.Sprintf("%v: %v, want %d", w.command, reply, w.returns))
	}
	return true
}

// next is another write.
func (r *retrier) next() *retried {
	w := &retried{returns: -1}
	inc := func(i int) bson.D {
		add := 1 + r.random.IntN(9)
		w.add[i] = add
		return bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: fmt.Sprint(r.id, "-", i)}}}, {Key: "u", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: add}}}}}, {Key: "upsert", Value: true}}
	}
	var command bson.D
	switch r.random.IntN(4) {
	case 0:
		var docs bson.A
		for range 1 + r.random.IntN(4) {
			docs = append(docs, bson.D{{Key: "_id", Value: fmt.Sprint(r.id, "-document-", r.made+w.inserted)}})
			w.inserted++
		}
		command = bson.D{{Key: "insert", Value: counters}, {Key: "documents", Value: docs}}
	case 1:
		command = bson.D{{Key: "update", Value: counters}, {Key: "updates", Value: bson.A{inc(0)}}}
	case 2:
		command = bson.D{{Key: "update", Value: counters}, {Key: "updates", Value: bson.A{inc(0), inc(1), inc(2)}}}
	default:
		w.add[1] = 1 + r.random.IntN(9)
		w.returns = r.counts[1] + w.add[1]
		command = bson.D{{Key: "findAndModify", Value: counters}, {Key: "query", Value: bson.D{{Key: "_id", Value: r.id + "-1"}}},
			{Key: "update", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: w.add[1]}}}}}, {Key: "upsert", Value: true}, {Key: "new", Value: true}}
	}
	w.command = r.session.with(command)
	return w
}

// settle sends the write again whose answer did not come.
func (r *retrier) settle(t *testing.T, addr string) {
	t.Helper()
	if r.open != nil {
		c, err := dialRaw(t.Context(), addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		if w := r.open; r.send(c, w) {
			r.done(w)
		} else {
			t.Errorf("%s: a write that is sent again gets no answer", r.id)
		}
	}
	for _, p := range r.problems {
		t.Errorf("%s: %s", r.id, p)
	}
}

// verifyCounters holds the counters against what was counted.
func verifyCounters(t *testing.T, db *mongo.Database, all []*retrier) {
	t.Helper()
	for _, r := range all {
		for i, want := range r.counts {
			var found struct{ N int }
			err := db.Collection(counters).FindOne(t.Context(), bson.D{{Key: "_id", Value: fmt.Sprint(r.id, "-", i)}}).Decode(&found)
			if err != nil && !errors.Is(err, mongo.ErrNoDocuments) || found.N != want {
				t.Errorf("%s has counted %d, and %d is there (%v)", r.id, want, found.N, err)
			}
		}
		n, err := db.Collection(counters).CountDocuments(t.Context(), bson.D{{Key: "_id", Value: bson.D{{Key: "$regex", Value: "^" + r.id + "-document-"}}}})
		if err != nil || n != int64(r.made) {
			t.Errorf("%s has inserted %d documents, and %d are there (%v)", r.id, r.made, n, err)
		}
	}
}

// watcher reads the change stream of the journal.
type watcher struct {
	mu    sync.Mutex
	token bson.Raw // of the last event that came
	seen  map[string]int
	bad   []string
}

func (w *watcher) open(ctx context.Context, db *mongo.Database) (*mongo.ChangeStream, error) {
	o := options.ChangeStream().SetMaxAwaitTime(50 * time.Millisecond)
	if w.token != nil {
		o.SetResumeAfter(w.token)
	} else {
		o.SetStartAtOperationTime(&bson.Timestamp{T: 1, I: 1})
	}
	return db.Collection(journal).Watch(ctx, mongo.Pipeline{}, o)
}

// take notes an event.
func (w *watcher) take(s *mongo.ChangeStream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind, id := s.Current.Lookup("operationType").StringValue(), ""
	if key, ok := s.Current.Lookup("documentKey", "_id").StringValueOK(); ok {
		id = key
	}
	if kind == "insert" {
		w.seen[id]++
	}
	token := s.ResumeToken()
	if w.token != nil && bytes.Compare([]byte(w.token.Lookup("_data").StringValue()), []byte(token.Lookup("_data").StringValue())) >= 0 {
		w.bad = append(w.bad, fmt.Sprintf("the token of %s does not come behind that of the event before", id))
	}
	w.token = append(bson.Raw(nil), token...)
}

func (w *watcher) run(ctx context.Context, db *mongo.Database) {
	s, err := w.open(ctx, db)
	if err != nil {
		return
	}
	defer func() { _ = s.Close(context.WithoutCancel(ctx)) }()
	for s.Next(ctx) {
		w.take(s)
	}
}

// catchUp reads what has not come, and holds it against what is there.
func (w *watcher) catchUp(t *testing.T, db *mongo.Database) {
	t.Helper()
	want, err := db.Collection(journal).CountDocuments(t.Context(), bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.open(t.Context(), db)
	if err != nil {
		t.Errorf("the stream does not resume: %v", err)
		return
	}
	defer func() { _ = s.Close(t.Context()) }()
	for empty := 0; empty < 3; { // what comes too often would come behind the last
		if s.TryNext(t.Context()) {
			w.take(s)
			continue
		}
		if s.Err() != nil {
			t.Error(s.Err())
			return
		}
		empty++
	}
	for id, n := range w.seen {
		if n != 1 {
			t.Errorf("the event of %s came %d times", id, n)
		}
	}
	if int64(len(w.seen)) != want {
		t.Errorf("%d documents are there, and events of %d came", want, len(w.seen))
	}
	for _, p := range w.bad {
		t.Error(p)
	}
}
