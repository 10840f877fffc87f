package command

import (
	"math"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/query"
)

func findCommands() []*Command {
	return []*Command{{Name: "find", RawData: true, Needs: Needs{OnCollection: actions(privilege.Find)}, Doc: "Finds documents of a collection or view.", Kind: "query", ReadConcern: true, Run: find, Explain: explainFind}}
}

// findRequest is a find as the client asked for it.
type findRequest struct {
	query.Find
	call   query.Call
	cursor cursorOptions
}

func find(op *Op) (bson.Doc, error) {
	var r findRequest // on the stack: most that are found come by the short way
	if err := op.parseFind(op.Args, &r); err != nil {
		return nil, err
	}
	if err := readable(r.NS); err != nil {
		return nil, err
	}
	if op.txn != nil && r.Tailable {
		return nil, mongoerr.New(mongoerr.InvalidOptions, "It is illegal to open a tailable cursor in a transaction")
	}
	if doc, ok, err := op.Query.Express(op.Ctx, &r.Find, &r.call); ok {
		op.examined(&r.call)
		if err != nil {
			return nil, err
		}
		if r.cursor.takesOne() {
			op.brief = true
			return op.replyOne(doc), nil
		}
		r.cursor.planSummary = r.call.PlanSummary
		return op.openCursor(r.NS, query.NewOne(doc), r.cursor)
	}
	call := new(query.Call) // the plan keeps it
	*call = r.call
	op.executed = call
	running, err := op.Query.Find(op.Ctx, r.Find, call)
	op.examined(call)
	if err != nil {
		return nil, err
	}
	r.cursor.planSummary, r.cursor.seen, r.cursor.sorts = call.PlanSummary, &call.Seen, running.Sorted
	r.cursor.empty = running.Empty
	r.cursor.during = "Executor error during find command: "
	if call.OnView {
		r.cursor.during = duringAggregate
	}
	op.Running.Stats.HasSortStage.Store(running.Sorted)
	reply, err := op.openCursor(r.NS, running, r.cursor)
	op.examined(call)
	return reply, err
}

func (op *Op) parseFind(a *Args, r *findRequest) error {
	r.call = op.brings()
	r.NS = a.Collection(op.DB)
	a.as("FindCommandRequest")
	r.Filter = a.owned("filter")
	r.Sort = a.owned("sort")
	r.Projection = a.owned("projection")
	r.Skip, _ = a.Limit("skip")
	r.Limit, _ = a.Limit("limit")
	r.cursor.batch, r.cursor.batchGiven = a.IntIn("batchSize", 0, math.MaxInt64)
	r.Batched = r.cursor.batchGiven
	r.cursor.single = a.optionalBool("singleBatch", false)
	if !a.everyday {
		r.parseRare(a)
	}
	if err := a.Done(); err != nil {
		return err
	}
	return r.checkTail()
}

// keyBound reads a bound of an index's keys; an empty one is none.
func keyBound(a *Args, key string) bson.Doc {
	if d := a.owned(key); !d.IsEmpty() {
		return d
	}
	return nil
}

// parseRare reads the fields that are not everyday.
func (r *findRequest) parseRare(a *Args) {
	r.Hint = hint(a)
	r.Min, r.Max = keyBound(a, "min"), keyBound(a, "max")
	r.ReturnKey = a.optionalBool("returnKey", false)
	r.ShowRecordID = a.optionalBool("showRecordId", false)
	r.call.Let = a.Doc("let")
	r.call.AllowDiskUse = a.optionalBool("allowDiskUse", r.call.AllowDiskUse)
	collate(a, a.owned("collation"), &r.call)
	r.cursor.noTimeout = a.optionalBool("noCursorTimeout", false)
	r.Tailable = a.optionalBool("tailable", false)
	r.cursor.tailable = r.Tailable
	r.cursor.awaitData = a.optionalBool("awaitData", false)
	r.call.Expected = a.collectionUUID(r.NS)
	a.optionalBool("oplogReplay", false)
	a.optionalBool("allowPartialResults", false)
	a.optionalBool("mirrored", false)
	a.noEncryption()
	a.Ignore("options", "term", "$_requestReshardingResumeToken", "includeQueryStatsMetrics", "querySettings", "startOrphanSweepAfter")
	r.refuseResume(a)
}

// refuseResume refuses who asks for a place in the collection to go on from later, once he has asked as MongoDB would have it. A record
// of a collection with a TTL index moves with its deadline, and its number does not tell where it was.
func (r *findRequest) refuseResume(a *Args) {
	asked, after, at := a.Bool("$_requestResumeToken", false), a.Doc("$_resumeAfter"), a.Doc("$_startAt")
	invalid := func(text string) { a.Fail(mongoerr.New(mongoerr.BadValue, "%s", text)) }
	switch {
	case asked && (r.Hint.Type != bson.TypeObject || !forward(r.Hint.Doc())):
		invalid("hint must be {$natural:1} if 'requestResumeToken' is enabled")
	case asked && !r.Sort.IsEmpty() && !forward(r.Sort):
		invalid("sort must be unset or {$natural:1} if 'requestResumeToken' is enabled")
	case asked:
		a.Fail(mongoerr.New(mongoerr.NotImplemented, "'$_requestResumeToken' is not implemented"))
	case !after.IsEmpty():
		invalid("'requestResumeToken' must be true if 'resumeAfter' is specified")
	case !at.IsEmpty():
		invalid("'requestResumeToken' must be true if 'startAt' is specified")
	}
}

// checkTail refuses what a tailable cursor cannot have. Whether the collection is capped is known later.
func (r *findRequest) checkTail() error {
	switch {
	case r.cursor.awaitData && !r.Tailable:
		return mongoerr.New(mongoerr.FailedToParse, "Cannot set 'awaitData' without also setting 'tailable'")
	case r.Tailable && !r.Sort.IsEmpty() && !forward(r.Sort):
		return mongoerr.New(mongoerr.BadValue, "cannot use tailable option with a sort other than {$natural: 1}")
	case r.Tailable && r.cursor.single:
		return mongoerr.New(mongoerr.BadValue, "cannot use tailable option with the 'singleBatch' option")
	}
	return nil
}

// forward says whether a sort or a hint is {$natural: 1}.
func forward(sort bson.Doc) bool {
	return sort.Count() == 1 && sort.FirstKey() == "$natural" && sort.Lookup("$natural").IsNumber() && sort.Lookup("$natural").AsDouble() == 1
}
