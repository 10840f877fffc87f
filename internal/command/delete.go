package command

import (
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/query"
)

func deleteCommands() []*Command {
	return []*Command{{Name: "delete", Doc: "Removes documents from a collection.", Kind: "remove", WriteConcern: true, Run: runDelete, Explain: explainDelete}}
}

func runDelete(op *Op) (bson.Doc, error) {
	statements, ordered, err := op.parseDeletes()
	if err != nil {
		return nil, err
	}
	return op.runDeletes(statements, ordered)
}

func (op *Op) parseDeletes() (statements []deleteStatement, ordered bool, err error) {
	a := op.Args
	ns := a.Collection(op.DB)
	docs, given := op.Sequence("deletes")
	ordered = a.Bool("ordered", true)
	let := a.Doc("let")
	a.SafeBool("bypassDocumentValidation", false)
	expected := a.collectionUUID(ns)
	a.Ignore("encryptionInformation", "isTimeseriesNamespace", "legacyRuntimeConstants", "runtimeConstants")
	if !given {
		a.Required("deletes")
	}
	if err := a.Done(); err != nil {
		return nil, ordered, err
	}
	if err := checkBatch(len(docs)); err != nil {
		return nil, ordered, err
	}
	statements = make([]deleteStatement, len(docs))
	for i, d := range docs {
		s, err := op.parseDelete(ns, d)
		if err != nil {
			return nil, ordered, err
		}
		s.call.Let, s.call.Expected = let, expected
		statements[i] = s
	}
	return statements, ordered, writable(ns)
}

// deleteStatement is one element of deletes, read.
type deleteStatement struct {
	query.Delete
	call *query.Call
	// source is the statement as it came.
	source bson.Doc
}

func (op *Op) parseDelete(ns namespace.NS, d bson.Doc) (deleteStatement, error) {
	a := NewArgs("delete.deletes", d)
	s := deleteStatement{call: op.change(), source: d}
	s.NS = ns
	s.Filter = a.Doc("q")
	limit := a.Value("limit")
	s.Hint = hint(a)
	collate(a, "collation", s.call)
	a.Ignore("sampleId")
	a.Required("q")
	switch n, exact := limit.AsInt64(); {
	case limit.IsNullish():
		a.Fail(mongoerr.New(40414, "BSON field 'delete.deletes.limit' is missing but a required field"))
	case !limit.IsNumber():
		a.Fail(a.wrongType("limit", limit.Type, []bson.Type{bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal}))
	case !exact || n != 0 && n != 1:
		a.Fail(mongoerr.New(mongoerr.FailedToParse, "The limit field in delete objects must be 0 or 1. Got %s", limit))
	default:
		s.Multi = n == 0
	}
	return s, a.Done()
}

func (op *Op) runDeletes(statements []deleteStatement, ordered bool) (bson.Doc, error) {
	var deleted int64
	var refused []query.WriteError
	for i, s := range statements {
		start := op.Clock.Now()
		n, _, err := op.Query.Delete(op.Ctx, s.Delete, s.call)
		op.counts.deletes.Add(1)
		op.examinedAlso(s.call)
		op.recordDelete(s, start, n, err)
		deleted += n
		if err != nil {
			if fatal(err) {
				return nil, err
			}
			refused = append(refused, query.WriteError{Index: i, Err: err})
			if ordered {
				break
			}
		}
	}
	op.Running.Stats.Deleted.Store(deleted)
	b := op.build()
	op.writeReply(b, deleted, refused)
	return b.Doc(), nil
}

// recordDelete hands one delete to the slow log and the profiler.
func (op *Op) recordDelete(s deleteStatement, start time.Time, n int64, err error) {
	op.statement("remove", s.NS, s.source, start, err, s.call, func(st *operation.Stats) {
		note(st, s.call)
		st.Deleted.Store(n)
	})
}
