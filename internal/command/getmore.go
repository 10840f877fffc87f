package command

import (
	"math"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/cursor"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

func getMoreCommands() []*Command {
	return []*Command{
		{Name: "getMore", Needs: Needs{Nothing: true}, Doc: "Gives the next batch of a cursor.", Kind: "getmore", ReadConcern: true, Run: getMore},
		{Name: "killCursors", Needs: Needs{Also: needsKillCursors}, Doc: "Ends cursors.", Run: killCursors},
	}
}

func getMore(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Required(op.Name())
	if a.Err() != nil {
		return nil, a.Err()
	}
	id := a.Value(op.Name())
	if id.Type != bson.TypeInt64 {
		return nil, a.wrongType("getMore", id.Type, []bson.Type{bson.TypeInt64})
	}
	coll, _ := a.String("collection")
	batch, given := a.IntIn("batchSize", 0, math.MaxInt64)
	a.typed("term", bson.TypeInt64)
	a.Ignore("lastKnownCommittedOpTime", "includeQueryStatsMetrics", "maxTimeMS")
	a.Required("collection")
	if err := a.Done(); err != nil {
		return nil, err
	}
	ns := namespace.NS{DB: op.DB, Coll: coll}
	if err := cursorNamespace(ns); err != nil {
		return nil, err
	}
	if given && batch == 0 {
		batch, given = 0, false
	}
	bound := op.user() != nil && !op.May(privilege.Cluster(), privilege.Impersonate)
	c, err := op.Cursors.Take(id.Int64(), ns.String(), op.SessionID, bound)
	if err != nil {
		return nil, err
	}
	if op.Authorization {
		if err := op.mayContinue(c); err != nil {
			op.Cursors.Put(c)
			return nil, err
		}
	}
	if txn := op.cursorTxn(); c.TxnNumber != txn {
		op.Cursors.Put(c)
		return nil, otherTransaction(c, txn)
	}
	if err := op.checkAPI(c.API, "cursor-creating command"); err != nil {
		op.Cursors.Put(c)
		return nil, err
	}
	if a.Has("maxTimeMS") && !c.AwaitData {
		op.Cursors.Put(c)
		return nil, mongoerr.New(mongoerr.BadValue, "cannot set maxTimeMS on getMore command for a non-awaitData cursor")
	}
	op.Running.Stats.SetPlanSummary(c.PlanSummary)
	op.Running.Stats.CursorID.Store(c.ID)
	op.originating = c.Command
	if c.AwaitData {
		op.Ops.Follows()
	}
	if err := op.failGetMore(c.NS); err != nil {
		_ = op.Cursors.Close(c)
		return nil, err
	}
	b := op.build().Object("cursor").Array("nextBatch")
	before, _ := c.Returned()
	op.Running.Stats.HasSortStage.Store(c.Sorts)
	if c.Executed != nil {
		op.executed = c.Executed
	}
	defer op.examinedBy(c)()
	more, err := op.nextBatch(c, b, batch)
	if err != nil {
		op.during = "Executor error during getMore"
		_ = op.Cursors.Close(c)
		return nil, err
	}
	op.appendResumeToken(b.End(), c)
	if c.Durable {
		op.tellsDurable()
	}
	left := c.ID
	if more {
		op.Cursors.Put(c)
	} else {
		left = 0
		if err := op.Cursors.Close(c); err != nil {
			return nil, err
		}
	}
	after, _ := c.Returned()
	op.Running.Stats.Returned.Store(after - before)
	op.Running.Stats.CursorID.Store(left)
	op.Running.Stats.CursorExhausted.Store(!more)
	if more && op.ExhaustAllowed {
		op.MoreToCome = true
	}
	return appendAt(b.Int64("id", left).String("ns", ns.String()), c.AtClusterTime).End().Doc(), nil
}

// examinedBy begins to count what c looks at; what it returns notes how much that was.
func (op *Op) examinedBy(c *cursor.Cursor) (note func()) {
	if c.Examined == nil {
		return func() {}
	}
	keys, docs := c.Examined()
	return func() {
		k, d := c.Examined()
		op.Running.Stats.KeysExamined.Store(k - keys)
		op.Running.Stats.DocsExamined.Store(d - docs)
	}
}

// nextBatch reads a batch within what is left of the maxTimeMS that the cursor was opened with, unless this command has
// one of its own.
func (op *Op) nextBatch(c *cursor.Cursor, b *bson.Builder, limit int64) (more bool, err error) {
	if c.AwaitData {
		return op.awaitBatch(c, b, limit)
	}
	if c.MaxTime == 0 || op.MaxTime > 0 {
		return c.Batch(op.Ctx, b, limit, op.ReplyMemory)
	}
	began := op.elapsed()
	ctx, cancel, err := op.limitTime(op.Ctx, c.MaxTime)
	if err != nil {
		return false, err
	}
	defer cancel()
	more, err = c.Batch(ctx, b, limit, op.ReplyMemory)
	c.MaxTime = max(time.Millisecond, c.MaxTime-(op.elapsed()-began))
	return more, cause(ctx, err)
}

func killCursors(op *Op) (bson.Doc, error) {
	a := op.Args
	ns := a.Collection(op.DB)
	ids := a.Array("cursors")
	a.Required("cursors")
	if err := a.Done(); err != nil {
		return nil, err
	}
	if err := cursorNamespace(ns); err != nil {
		return nil, err
	}
	var wanted []bson.Value // nulls are passed over
	for it := ids.Iter(); it.Next(); {
		switch v := it.Value(); {
		case v.Type == bson.TypeInt64:
			wanted = append(wanted, v)
		case !v.IsNullish():
			return nil, a.wrongType("cursors."+it.Key(), v.Type, []bson.Type{bson.TypeInt64})
		}
	}
	var killed, notFound []bson.Value
	for _, v := range wanted {
		if op.Cursors.Kill(v.Int64()) {
			killed = append(killed, v)
		} else {
			notFound = append(notFound, v)
		}
	}
	return bson.Build().Value("cursorsKilled", bson.ArrayOf(killed...)).Value("cursorsNotFound", bson.ArrayOf(notFound...)).
		Value("cursorsAlive", bson.ArrayOf()).Value("cursorsUnknown", bson.ArrayOf()).Doc(), nil
}

// cursorNamespace refuses namespaces that no cursor can have. Those of commands that are about no one collection have a name
// of their own.
func cursorNamespace(ns namespace.NS) error {
	if strings.HasPrefix(ns.Coll, "$cmd.") {
		return nil
	}
	return readable(ns)
}
