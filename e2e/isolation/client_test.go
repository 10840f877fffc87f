package isolation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"github.com/ebbdb/ebb/e2e/isolation/anomaly"
)

// client runs one transaction, or one call outside of transactions, after the other, and keeps what it saw.
type client struct {
	*workload
	name   string
	random *rand.Rand
	db     *mongo.Database

	history  []anomaly.Txn
	counts   counts
	problems []string // answers that none of them should get
}

// The labels by which drivers know what to do.
const (
	transient     = "TransientTransactionError"
	unknownCommit = "UnknownTransactionCommitResult"
)

const (
	writeConflict       = 112
	snapshotTooOld      = 239
	snapshotUnavailable = 246
	commitAttempts      = 20
	mostOps             = 5
)

func hasLabel(err error, label string) bool {
	var e mongo.LabeledError
	return errors.As(err, &e) && e.HasErrorLabel(label)
}

func hasCode(err error, code int) bool {
	var e mongo.ServerError
	return errors.As(err, &e) && e.HasErrorCode(code)
}

// errAborts is why a client gives up a transaction that could be committed.
var errAborts = errors.New("the client aborts")

// run goes on until ctx ends, with what it has begun until that ends too.
func (c *client) run(ctx context.Context) {
	session, err := c.db.Client().StartSession()
	if err != nil {
		c.problem("a session: %v", err)
		return
	}
	calls := context.WithoutCancel(ctx)
	defer session.EndSession(calls)
	for ctx.Err() == nil && len(c.problems) == 0 {
		switch dice := c.random.IntN(20); {
		case dice < 1:
			c.snapshot(calls)
		case dice < 3:
			c.readOne(calls)
		case dice < 7:
			c.writeOne(calls)
		case dice < 10:
			c.withTransaction(calls, session)
		default:
			c.transaction(calls, session)
		}
	}
}

func (c *client) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// begin is a transaction of which nothing is known yet.
func (c *client) begin() *anomaly.Txn {
	return &anomaly.Txn{Name: fmt.Sprintf("T%s.%d", c.name, len(c.history)), Start: c.now(), End: anomaly.Never, Outcome: anomaly.Unknown}
}

// end keeps a transaction.
func (c *client) end(txn *anomaly.Txn, outcome anomaly.Outcome) {
	if txn.Outcome = outcome; outcome != anomaly.Unknown {
		txn.End = c.now()
	}
	c.history = append(c.history, *txn)
}

// readOne reads one list outside of transactions. What has not reached the disk may be read by those who ask for what is local; after a
// kill it is gone.
func (c *client) readOne(ctx context.Context) {
	levels := []*readconcern.ReadConcern{readconcern.Majority(), readconcern.Linearizable(), readconcern.Local(), nil}
	if c.kills {
		levels = levels[:2]
	}
	txn := c.begin()
	level := levels[c.random.IntN(len(levels))]
	l := c.choose(c.random)
	var d document
	err := c.db.Collection(l.coll(), options.Collection().SetReadConcern(level)).FindOne(ctx, bson.D{{Key: "_id", Value: l.id}}).Decode(&d)
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		if !c.excused(err) {
			c.problem("a read: %v", err)
		}
		return
	}
	txn.Ops = []anomaly.Op{anomaly.Read(l.key(), d.List)}
	c.counts[single]++
	c.end(txn, anomaly.Committed)
}

// snapshot reads several lists outside of transactions, all in one state: that of the first read.
func (c *client) snapshot(ctx context.Context) {
	session, err := c.db.Client().StartSession(options.Session().SetSnapshot(true))
	if err != nil {
		c.problem("a snapshot session: %v", err)
		return
	}
	defer session.EndSession(ctx)
	txn := c.begin()
	in := mongo.NewSessionContext(ctx, session)
	for range 1 + c.random.IntN(mostOps) {
		ops, err := c.statement(in, true)
		switch {
		case err == nil:
		case c.excused(err), hasCode(err, snapshotUnavailable), hasCode(err, snapshotTooOld):
			c.counts["snapshots that were not read to the end"]++
			return
		default:
			c.problem("a read of a snapshot: %v", err)
			return
		}
		txn.Ops = append(txn.Ops, ops...)
	}
	c.counts["snapshots read outside of transactions"]++
	c.end(txn, anomaly.Committed)
}

// excused says whether an error comes from a kill or a fail point.
func (c *client) excused(err error) bool {
	return mongo.IsNetworkError(err) || !c.kills && isInjected(err)
}

// writeOne appends to one list outside of transactions.
func (c *client) writeOne(ctx context.Context) {
	txn := c.begin()
	l := c.choose(c.random)
	ops, err := c.append(ctx, l, c.random.IntN(3))
	txn.Ops = ops
	c.counts[single]++
	if err == nil {
		c.end(txn, anomaly.Committed)
		return
	}
	if !c.excused(err) {
		c.problem("a write: %v", err)
	}
	c.counts[uncertain]++
	txn.Ops = slices.DeleteFunc(ops, func(o anomaly.Op) bool { return o.Read })
	c.end(txn, anomaly.Unknown)
}

func appended(l list, value int64) bson.D {
	return bson.D{{Key: "$push", Value: bson.D{{Key: "list", Value: value}}}, {Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}, {Key: "$setOnInsert", Value: bson.D{{Key: "group", Value: l.group}}}}
}

// append appends to a list, which may not be there yet, in one of three ways, of which two tell what was there before or is after.
func (c *client) append(ctx context.Context, l list, how int) ([]anomaly.Op, error) {
	value := c.take(l)
	write := anomaly.Append(l.key(), value)
	coll, id := c.db.Collection(l.coll()), bson.D{{Key: "_id", Value: l.id}}
	if how == 0 {
		_, err := coll.UpdateOne(ctx, id, appended(l, value), options.UpdateOne().SetUpsert(true))
		return []anomaly.Op{write}, err
	}
	o := options.FindOneAndUpdate().SetUpsert(true)
	if how == 1 {
		o.SetReturnDocument(options.After)
	}
	var d document
	if err := coll.FindOneAndUpdate(ctx, id, appended(l, value), o).Decode(&d); err != nil && (how == 1 || !errors.Is(err, mongo.ErrNoDocuments)) {
		return []anomaly.Op{write}, err
	}
	if how == 1 {
		return []anomaly.Op{write, anomaly.Read(l.key(), d.List)}, nil
	}
	return []anomaly.Op{anomaly.Read(l.key(), d.List), write}, nil
}

// statements are those of one transaction. They end with the first that fails.
func (c *client) statements(ctx context.Context, txn *anomaly.Txn, readOnly bool) error {
	for range 1 + c.random.IntN(mostOps) {
		ops, err := c.statement(ctx, readOnly)
		txn.Ops = append(txn.Ops, ops...)
		if err != nil {
			return err
		}
		if c.random.IntN(4) == 0 {
			rest(ctx, time.Duration(c.random.IntN(2000))*time.Microsecond)
		}
	}
	if c.random.IntN(12) == 0 {
		return errAborts
	}
	return nil
}

// statement is one of them. What it tells of a failed one are its appends.
func (c *client) statement(ctx context.Context, readOnly bool) ([]anomaly.Op, error) {
	l := c.choose(c.random)
	dice := c.random.IntN(12)
	if readOnly {
		dice %= 5
	}
	switch {
	case dice < 2:
		return c.read(ctx, l)
	case dice < 3:
		return c.aggregate(ctx, l)
	case dice < 5:
		return c.readGroup(ctx, l)
	case dice < 6:
		return c.rewrite(ctx, l)
	case dice < 7:
		return c.appendMany(ctx, l)
	}
	return c.append(ctx, l, dice%3)
}

func (c *client) read(ctx context.Context, l list) ([]anomaly.Op, error) {
	var d document
	err := c.db.Collection(l.coll()).FindOne(ctx, bson.D{{Key: "_id", Value: l.id}}).Decode(&d)
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return nil, err
	}
	return []anomaly.Op{anomaly.Read(l.key(), d.List)}, nil
}

func (c *client) aggregate(ctx context.Context, l list) ([]anomaly.Op, error) {
	cursor, err := c.db.Collection(l.coll()).Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: "group", Value: l.group}}}}, {{Key: "$match", Value: bson.D{{Key: "_id", Value: l.id}}}},
		{{Key: "$project", Value: bson.D{{Key: "list", Value: 1}}}},
	})
	if err != nil {
		return nil, err
	}
	return c.listsOf(ctx, cursor, []list{l})
}

// readGroup reads all lists of a group in the order of an index in which each append moves them, one with each call.
func (c *client) readGroup(ctx context.Context, l list) ([]anomaly.Op, error) {
	o := options.Find().SetBatchSize(int32(1 + c.random.IntN(2)))
	if l.place != made {
		o.SetHint(bson.D{{Key: "group", Value: 1}, {Key: "n", Value: 1}})
	}
	cursor, err := c.db.Collection(l.coll()).Find(ctx, bson.D{{Key: "group", Value: l.group}}, o)
	if err != nil {
		return nil, err
	}
	return c.listsOf(ctx, cursor, members(l.place, l.group))
}

func (c *client) listsOf(ctx context.Context, cursor *mongo.Cursor, wanted []list) ([]anomaly.Op, error) {
	var found []document
	if err := cursor.All(ctx, &found); err != nil {
		return nil, err
	}
	for _, d := range found {
		if !slices.ContainsFunc(wanted, func(l list) bool { return l.id == d.ID }) {
			c.problem("a read of %v finds %v", wanted, d)
		}
	}
	return readsOf(wanted, found), nil
}

// rewrite reads a list and writes it anew with one value more: what another appended meanwhile would be gone.
func (c *client) rewrite(ctx context.Context, l list) ([]anomaly.Op, error) {
	ops, err := c.read(ctx, l)
	if err != nil {
		return nil, err
	}
	value := c.take(l)
	longer := append(slices.Clone(ops[0].List), value)
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "group", Value: l.group}, {Key: "list", Value: longer}, {Key: "n", Value: len(longer)}}}}
	_, err = c.db.Collection(l.coll()).UpdateOne(ctx, bson.D{{Key: "_id", Value: l.id}}, set, options.UpdateOne().SetUpsert(true))
	return append(ops, anomaly.Append(l.key(), value)), err
}

// appendMany appends to some lists of a group in one command.
func (c *client) appendMany(ctx context.Context, l list) (ops []anomaly.Op, err error) {
	var writes []mongo.WriteModel
	for _, m := range members(l.place, l.group)[:2] {
		value := c.take(m)
		writes = append(writes, mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id", Value: m.id}}).SetUpdate(appended(m, value)).SetUpsert(true))
		ops = append(ops, anomaly.Append(m.key(), value))
	}
	_, err = c.db.Collection(l.coll()).BulkWrite(ctx, writes)
	return ops, err
}

// options of one transaction. All commit with the write concern majority: what they have read a kill does not take back, whatever the read concern.
func (c *client) options() (o *options.TransactionOptionsBuilder, readOnly bool) {
	o = options.Transaction()
	levels := []*readconcern.ReadConcern{readconcern.Snapshot(), readconcern.Majority(), readconcern.Local(), nil}
	if level := levels[c.random.IntN(len(levels))]; level != nil {
		o.SetReadConcern(level)
	}
	return o, c.random.IntN(4) == 0
}

// transaction is one whose client does everything itself.
func (c *client) transaction(ctx context.Context, session *mongo.Session) {
	o, readOnly := c.options()
	if err := session.StartTransaction(o); err != nil {
		c.problem("the start of a transaction: %v", err)
		return
	}
	txn := c.begin()
	if err := c.statements(mongo.NewSessionContext(ctx, session), txn, readOnly); err != nil {
		c.failed(txn, err)
		if err := session.AbortTransaction(ctx); err != nil && !c.excused(err) {
			c.problem("the end of a transaction: %v", err)
		}
		return
	}
	c.commit(ctx, session, txn)
}

// failed keeps a transaction whose commit was never sent.
func (c *client) failed(txn *anomaly.Txn, err error) {
	switch {
	case hasCode(err, writeConflict) && hasLabel(err, transient):
		c.counts[conflicted]++
	case errors.Is(err, errAborts), hasLabel(err, transient), c.excused(err):
		c.counts[aborted]++
	default:
		c.problem("a statement of a transaction: %v\n%v", err, txn)
	}
	c.end(txn, anomaly.Aborted)
}

// commit asks until it knows.
func (c *client) commit(ctx context.Context, session *mongo.Session, txn *anomaly.Txn) {
	for range commitAttempts {
		err := session.CommitTransaction(ctx)
		switch {
		case err == nil:
			c.counts[committed]++
			c.end(txn, anomaly.Committed)
			return
		case hasLabel(err, unknownCommit):
			c.counts["commits that were sent again"]++
		case hasLabel(err, transient):
			c.failed(txn, err)
			return
		default:
			c.problem("a commit: %v\n%v", err, txn)
		}
	}
	c.counts[lost]++
	c.end(txn, anomaly.Unknown)
}

// withTransaction is one that the driver runs as often as it has to.
func (c *client) withTransaction(ctx context.Context, session *mongo.Session) {
	o, readOnly := c.options()
	var txn *anomaly.Txn // of the attempt that goes on
	var failure error    // of its statements
	over := func(err error) {
		if failure != nil {
			err = failure
		}
		c.failed(txn, err)
	}
	_, err := session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		if txn != nil { // the driver runs it again when it knows that the one before is not committed
			over(errAborts)
		}
		txn = c.begin()
		failure = c.statements(ctx, txn, readOnly)
		return nil, failure
	}, o)
	switch {
	case err == nil:
		c.counts[committed]++
		c.end(txn, anomaly.Committed)
	case failure != nil, hasLabel(err, transient):
		over(err)
	default:
		if !hasLabel(err, unknownCommit) && !c.excused(err) {
			c.problem("withTransaction: %v", err)
		}
		c.counts[lost]++
		c.end(txn, anomaly.Unknown)
	}
}
