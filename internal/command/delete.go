package command

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/query"
)

func deleteCommands() []*Command {
	return []*Command{{Name: "delete", RawData: true, Needs: Needs{OnCollection: actions(privilege.Remove)}, Doc: "Removes documents from a collection.", Kind: "remove", WriteConcern: true, Sequences: []string{"deletes"}, Run: runDelete, Explain: explainDelete}}
}

func runDelete(op *Op) (bson.Doc, error) {
	statements, ordered, err := op.parseDeletes()
	if err != nil {
		return nil, err
	}
	return op.runDeletes(statements, ordered)
}

func (op *Op) parseDeletes() (statements []deleteStatement, ordered bool, err error) {
	var let bson.Doc
	var expected *query.Expected
	return parseStatements(op, "deletes", func(a *Args, ns namespace.NS) {
		let = a.Doc("let")
		a.SafeBool("bypassDocumentValidation", false)
		expected = a.collectionUUID(ns)
		a.noEncryption()
		a.Ignore("isTimeseriesNamespace", "legacyRuntimeConstants", "runtimeConstants")
	}, func(ns namespace.NS, d bson.Doc) (deleteStatement, error) {
		s, err := op.parseDelete(ns, d)
		s.call.Let, s.call.Expected = let, expected
		return s, err
	})
}

// deleteStatement is one element of deletes, read.
type deleteStatement struct {
	query.Delete
	call *query.Call
	// source is the statement as it came.
	source bson.Doc
	// refused is why it is not carried out, nil as a rule.
	refused error
}

func (op *Op) parseDelete(ns namespace.NS, d bson.Doc) (deleteStatement, error) {
	a := NewArgs("delete.deletes", d)
	s := deleteStatement{call: op.change(), source: d}
	s.NS = ns
	s.Filter = a.Doc("q")
	limit := a.Value("limit")
	s.Hint = hint(a)
	s.refused = collateStatement(a, "collation", s.call)
	a.Ignore("sampleId")
	a.Required("q")
	switch n := limit.AsDouble(); { // of any type: what is no number is 0
	case limit.IsNullish():
		a.Fail(mongoerr.New(40414, "BSON field 'delete.deletes.limit' is missing but a required field").Unparsed())
	case n != 0 && n != 1:
		a.Fail(mongoerr.New(mongoerr.FailedToParse, "The limit field in delete objects must be 0 or 1. Got %s", bson.Double(n).Computed()).Unparsed())
	default:
		s.Multi = n == 0
	}
	return s, a.Done()
}

func (op *Op) runDeletes(statements []deleteStatement, ordered bool) (bson.Doc, error) {
	var deleted int64
	refused, err := runStatements(len(statements), ordered, func(i int) error {
		statements[i].call.Statement = i
		n, err := op.delete(&statements[i])
		if err != nil {
			return err // what it has deleted by then is not counted
		}
		deleted += n
		return nil
	})
	if err != nil {
		return nil, err
	}
	op.Running.Stats.Deleted.Store(deleted)
	b := op.build()
	op.writeReply(b, deleted, refused)
	return b.Doc(), nil
}

// delete runs one statement, and tells the slow log and the profiler of it.
func (op *Op) delete(s *deleteStatement) (n int64, err error) {
	if s.refused != nil {
		return 0, s.refused
	}
	if err := op.checkBlocked(s.NS.DB); err != nil {
		return 0, err
	}
	began := op.elapsed()
	n, _, err = op.Query.Delete(op.Ctx, s.Delete, s.call)
	op.counts.deletes.Add(1)
	op.examinedAlso(s.call)
	op.tally.scan(s.call.PlanSummary, false)
	op.statement("remove", s.NS, s.source, began, err, s.call, func(st *operation.Stats) {
		note(st, s.call)
		st.Deleted.Store(n)
	})
	return n, op.ofPlan("delete", s.call, err)
}
