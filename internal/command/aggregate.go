package command

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
)

func aggregateCommands() []*Command {
	return []*Command{{Name: "aggregate", RawData: true, Needs: Needs{Also: needsAggregate}, Doc: "Runs documents through a pipeline of stages.", ReadConcern: true, WriteConcern: true, Written: []string{"pipeline", "let"}, Run: aggregate, Explain: explainAggregate}}
}

// duringAggregate is what errors of an aggregation's first batch say, before its namespace.
const duringAggregate = "Executor error during aggregate command on namespace: "

// aggregateRequest is an aggregate as the client asked for it.
type aggregateRequest struct {
	query.Aggregate
	call    *query.Call
	cursor  cursorOptions
	explain bool
	// cursorGiven says that the client knows that a cursor comes back.
	cursorGiven bool
}

func aggregate(op *Op) (bson.Doc, error) {
	r, err := op.parseAggregate(op.Args)
	if err != nil {
		return nil, err
	}
	if r.explain {
		return op.explained(query.QueryPlanner)
	}
	if err := r.mustHaveCursor(); err != nil {
		return nil, err
	}
	running, err := op.Query.Aggregate(op.Ctx, r.Aggregate, r.call)
	op.examined(r.call)
	if err != nil {
		return nil, err
	}
	op.executed = r.call.Opened()
	r.cursor.planSummary, r.cursor.seen = r.call.PlanSummary, &r.call.Seen
	if running.Watches() {
		r.cursor.tailable, r.cursor.awaitData, r.cursor.watches = true, true, true
	}
	r.cursor.during = duringAggregate
	ns := r.NS
	if ns.Coll == "" {
		ns.Coll = "$cmd.aggregate"
	}
	reply, err := op.openCursor(ns, running, r.cursor)
	r.call.Patience = nil                     // which is this command's: a getMore waits for what it writes
	r.call.PlanSummary = r.cursor.planSummary // and not that of what a stage has opened
	op.examined(r.call)
	return reply, err
}

func (op *Op) parseAggregate(a *Args) (aggregateRequest, error) {
	r := aggregateRequest{call: op.pipe()}
	r.ReadConcern, r.Replicated = op.ReadConcern.Level, op.Replica != nil
	switch v := a.Value(op.Name()); {
	case v.Type == bson.TypeString:
		r.NS = a.asKept(namespace.NS{DB: op.DB, Coll: string([]byte(v.Str()))})
		if err := readable(r.NS); err != nil {
			a.Fail(err)
		}
	case v.IsNumber():
		if v.AsDouble() != 1 {
			a.Fail(mongoerr.New(mongoerr.BadValue, "Invalid command format: the 'aggregate' field must specify a collection name or 1").Unparsed())
		}
		r.NS = namespace.NS{DB: op.DB}
	default:
		a.Fail(mongoerr.New(mongoerr.InvalidNamespace, "collection name has invalid type %s", v.Type).Unparsed())
	}
	r.Pipeline = op.pipelineArg(a)
	a.refuseNull(bson.TypeBool, "explain")
	r.call.AllowDiskUse = a.optionalBool("allowDiskUse", op.spills())
	r.call.Let = a.Doc("let")
	r.call.Bypass = a.SafeBool("bypassDocumentValidation", false)
	r.Hint = hint(a)
	r.explain = a.Bool("explain", false)
	collate(a, a.Doc("collation"), r.call)
	r.cursorGiven = op.readCursor(a, &r)
	r.call.Expected = a.collectionUUID(r.NS)
	if r.call.Expected != nil && r.NS.Coll == "" {
		a.Fail(mongoerr.New(4928901, "collectionUUID is not supported for a collectionless aggregation"))
	}
	a.noEncryption()
	a.Ignore("fromRouter", "fromMongos", "needsMerge", "exchange", "isMapReduceCommand", "runtimeConstants", "includeQueryStatsMetrics", "requestReshardingResumeToken", "unwrappedReadPref", "querySettings", "needsSortedMerge", "mirrored", "bypassEmptyTsReplacement")
	return r, a.Done()
}

// mustHaveCursor refuses a pipeline of a client that does not know that a cursor comes back.
func (r *aggregateRequest) mustHaveCursor() error {
	if r.explain || r.cursorGiven {
		return nil
	}
	return mongoerr.New(mongoerr.FailedToParse, "The 'cursor' option is required, except for aggregate with the explain argument").Unparsed()
}

func (op *Op) pipelineArg(a *Args) bson.Value {
	v := a.Value("pipeline")
	switch {
	case v.IsMissing():
		a.Fail(mongoerr.New(40414, "BSON field 'aggregate.pipeline' is missing but a required field").Unparsed())
		return bson.EmptyArr
	case v.Type != bson.TypeArray:
		a.Fail(mongoerr.New(mongoerr.TypeMismatch, "'pipeline' option must be specified as an array").Unparsed())
		return bson.EmptyArr
	}
	if !objectsOnly(v.Doc()) {
		a.Fail(notStages())
	}
	return v
}

func (op *Op) readCursor(a *Args, r *aggregateRequest) (given bool) {
	v := a.Value("cursor")
	switch {
	case v.IsMissing():
		return false
	case v.Type != bson.TypeObject:
		a.Fail(mongoerr.New(mongoerr.TypeMismatch, "cursor field must be missing or an object").Unparsed())
		return false
	}
	c := NewArgs("cursor", v.Doc())
	r.cursor.batch, r.cursor.batchGiven = c.IntIn("batchSize", 0, math.MaxInt64)
	if err := c.Done(); err != nil {
		a.Fail(err)
	}
	return true
}
