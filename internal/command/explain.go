package command

import (
	"cmp"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/query"
)

func explainCommands() []*Command {
	return []*Command{{Name: "explain", Needs: Needs{Also: needsExplain}, Doc: "Tells how a command is run.", ReadConcern: true, HoldsCommands: true, Run: explain}}
}

// explain runs the Explain of the command in it, as if that had come instead.
func explain(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Required(op.Name())
	doc := a.Doc(op.Name())
	verbosity, err := verbosityArg(a)
	if err != nil {
		a.Fail(err)
	}
	if err := a.Done(); err != nil {
		return nil, err
	}
	inner := *op
	name := doc.FirstKey()
	if inner.Command = op.table[name]; inner.Command == nil {
		return nil, mongoerr.New(mongoerr.CommandNotFound, "Explain failed due to unknown command: %s", name)
	}
	if inner.Command.Explain == nil {
		return nil, mongoerr.New(mongoerr.IllegalOperation, "Cannot explain cmd: %s", inner.Command.Name)
	}
	inner.Args, inner.Sequences = NewArgs(inner.Command.Name, doc), nil
	if db := doc.Lookup("$db"); db.Type == bson.TypeString && db.Str() != op.DB {
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "Mismatched $db in explain command. Expected %s but got %s", op.DB, db.Str())
	}
	if err := inner.readGeneric(); err != nil {
		return nil, err
	}
	if doc.Lookup("explain").Type == bson.TypeBool {
		return nil, mongoerr.New(mongoerr.FailedToParse, "The 'explain' option is illegal when a explain verbosity is also provided")
	}
	return inner.explained(verbosity)
}

// verbosityArg reads how much to tell; everything, when the client does not say.
func verbosityArg(a *Args) (query.Verbosity, error) {
	v, given := a.String("verbosity")
	switch {
	case !given, v == "allPlansExecution":
		return query.AllPlansExecution, nil
	case v == "executionStats":
		return query.ExecutionStats, nil
	case v == "queryPlanner":
		return query.QueryPlanner, nil
	}
	return 0, mongoerr.New(mongoerr.BadValue, "Enumeration value '%s' for field 'explain.verbosity' is not a valid value.", v)
}

// explainReserve is the room in a reply of explain for what tells of the server.
const explainReserve = 16 << 10

// explained is the reply that tells how op is run.
func (op *Op) explained(v query.Verbosity) (bson.Doc, error) {
	x, err := op.Command.Explain(op, v)
	if err != nil {
		return nil, err
	}
	b := bson.BuildOn(make([]byte, 0, len(x.Fields)+len(op.Args.Document())+1024))
	b.String("explainVersion", "1").Fields(x.Fields)
	b.String("queryShapeHash", query.ShapeHash(x.Shape))
	command := op.Args.Document()
	if len(x.Fields)+len(command) > bson.MaxDocSize-explainReserve {
		b.String("warning", "'command' has been omitted due to exceeding BSON size limit")
	} else {
		b.Object("command").Fields(command)
		if command.Lookup("$db").IsMissing() {
			b.String("$db", op.DB)
		}
		b.End()
	}
	op.printServer(b)
	return b.Doc(), nil
}

func (op *Op) printServer(b *bson.Builder) {
	port := int32(0)
	for _, c := range portOf(op.Conn.Local) {
		port = port*10 + int32(c-'0')
	}
	b.Object("serverInfo").String("host", op.theMachine().Name).Int32("port", port).String("version", op.Version).
		String("gitVersion", op.GitVersion).End()
	b.Object("serverParameters")
	for _, limit := range []string{"internalQueryFacetBufferSizeBytes", "internalQueryFacetMaxOutputDocSizeBytes",
		"internalLookupStageIntermediateDocumentMaxSizeBytes", "internalDocumentSourceGroupMaxMemoryBytes",
		"internalQueryMaxBlockingSortMemoryUsageBytes"} {
		b.Int32(limit, exec.DefaultMaxMemory)
	}
	b.Int32("internalQueryProhibitBlockingMergeOnMongoS", 0).Int32("internalQueryMaxAddToSetBytes", exec.DefaultMaxMemory).
		Int32("internalDocumentSourceSetWindowFieldsMaxMemoryBytes", exec.DefaultMaxMemory).
		String("internalQueryFrameworkControl", "forceClassicEngine").Int32("internalQueryPlannerIgnoreIndexWithCollationForRegex", 1).End()
}

func explainFind(op *Op, v query.Verbosity) (*query.Explanation, error) {
	r := &findRequest{}
	if err := op.parseFind(op.Args, r); err != nil {
		return nil, err
	}
	if err := readable(r.NS); err != nil {
		return nil, err
	}
	defer op.examined(&r.call)
	return op.Query.ExplainFind(op.Ctx, r.Find, &r.call, v)
}

func explainCount(op *Op, v query.Verbosity) (*query.Explanation, error) {
	r, err := op.parseCount(op.Args)
	if err != nil {
		return nil, err
	}
	defer op.examined(r.call)
	return op.Query.ExplainCount(op.Ctx, r.Count, r.call, v)
}

func explainDistinct(op *Op, v query.Verbosity) (*query.Explanation, error) {
	r, err := op.parseDistinct(op.Args)
	if err != nil {
		return nil, err
	}
	defer op.examined(r.call)
	return op.Query.ExplainDistinct(op.Ctx, r.Distinct, r.call, v)
}

func explainAggregate(op *Op, v query.Verbosity) (*query.Explanation, error) {
	r, err := op.parseAggregate(op.Args)
	if err == nil {
		err = r.mustHaveCursor()
	}
	if err == nil && op.WriteConcern.Given {
		err = mongoerr.New(mongoerr.FailedToParse, "Aggregation explain does not support the'writeConcern' option")
	}
	if err != nil {
		return nil, err
	}
	defer op.examined(r.call)
	return op.Query.ExplainAggregate(op.Ctx, r.Aggregate, r.call, v)
}

func explainUpdate(op *Op, v query.Verbosity) (*query.Explanation, error) {
	s, err := onlyOne(op.parseUpdates())
	if err == nil {
		err = s.refused
	}
	if err != nil {
		return nil, err
	}
	defer op.examined(s.call)
	return op.Query.ExplainUpdate(op.Ctx, s.Update, s.call, v)
}

func explainDelete(op *Op, v query.Verbosity) (*query.Explanation, error) {
	s, err := onlyOne(op.parseDeletes())
	if err == nil {
		err = s.refused
	}
	if err != nil {
		return nil, err
	}
	defer op.examined(s.call)
	return op.Query.ExplainDelete(op.Ctx, s.Delete, s.call, v)
}

// explainBulkWrite explains a bulkWrite of one op, which is an update or a delete.
func explainBulkWrite(op *Op, v query.Verbosity) (*query.Explanation, error) {
	b := &bulk{op: op}
	if _, err := b.parse(op.Args); err != nil {
		return nil, err
	}
	if len(b.ops) != 1 {
		return nil, mongoerr.New(mongoerr.InvalidLength, "explained bulkWrite ops must be of size 1")
	}
	o := b.ops[0]
	if o.kind == bulkInsert {
		return nil, mongoerr.New(mongoerr.IllegalOperation, "Cannot explain insert cmd for bulkWrite")
	}
	if err := writable(b.targets[o.target].ns); err != nil {
		return nil, err
	}
	if o.kind == bulkUpdate {
		s, err := b.update(o)
		if err == nil {
			err = cmp.Or(s.refused, s.check())
		}
		if err != nil {
			return nil, err
		}
		defer op.examined(s.call)
		return op.Query.ExplainUpdate(op.Ctx, s.Update, s.call, v)
	}
	s, err := b.delete(o)
	if err == nil {
		err = s.refused
	}
	if err != nil {
		return nil, err
	}
	defer op.examined(s.call)
	return op.Query.ExplainDelete(op.Ctx, s.Delete, s.call, v)
}

// onlyOne is the statement of a write that has one.
func onlyOne[S any](statements []S, _ bool, err error) (s S, _ error) {
	switch {
	case err != nil:
		return s, err
	case len(statements) != 1:
		return s, mongoerr.New(mongoerr.InvalidLength, "explained write batches must be of size 1")
	}
	return statements[0], nil
}

func explainFindAndModify(op *Op, v query.Verbosity) (*query.Explanation, error) {
	r, err := op.parseFindAndModify(op.Args)
	if err != nil {
		return nil, err
	}
	if err := writable(r.NS); err != nil {
		return nil, err
	}
	defer op.examined(r.call)
	return op.Query.ExplainFindAndModify(op.Ctx, r.FindAndModify, r.call, v)
}
