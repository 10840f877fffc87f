package command

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/query"
)

func updateCommands() []*Command {
	return []*Command{{Name: "update", RawData: true, Needs: Needs{OnCollection: actions(privilege.Update), Also: needsUpdate}, Doc: "Changes documents of a collection.", Kind: "update", WriteConcern: true, Written: []string{"updates", "let"}, Sequences: []string{"updates"}, Run: runUpdate, Explain: explainUpdate}}
}

func runUpdate(op *Op) (bson.Doc, error) {
	statements, ordered, err := op.parseUpdates()
	if err != nil {
		return nil, err
	}
	return op.runUpdates(statements, ordered)
}

func (op *Op) parseUpdates() (statements []updateStatement, ordered bool, err error) {
	var bypass, keepTimestamps bool
	var let bson.Doc
	var expected *query.Expected
	return parseStatements(op, "updates", func(a *Args, ns namespace.NS) {
		bypass = a.SafeBool("bypassDocumentValidation", false)
		let = a.Doc("let")
		keepTimestamps = a.SafeBool("bypassEmptyTsReplacement", false)
		expected = a.collectionUUID(ns)
		a.noEncryption()
		a.Ignore("isTimeseriesNamespace", "runtimeConstants", "allowShardKeyUpdatesWithoutFullShardKeyInQuery")
	}, func(ns namespace.NS, d bson.Doc) (updateStatement, error) {
		s, err := op.parseUpdate(ns, d)
		s.call.Let, s.call.Bypass, s.call.KeepTimestamps, s.call.Expected = let, bypass, keepTimestamps, expected
		return s, err
	})
}

// updateStatement is one element of updates, read.
type updateStatement struct {
	query.Update
	call *query.Call
	// source is the statement as it came.
	source bson.Doc
	// refused is why it is not carried out, nil as a rule.
	refused error
}

func (op *Op) parseUpdate(ns namespace.NS, d bson.Doc) (updateStatement, error) {
	a := NewArgs("update.updates", d)
	s := updateStatement{call: op.change(), source: d}
	s.NS = ns
	s.Filter = a.Doc("q")
	s.Change = a.Value("u")
	s.Multi = a.SafeBool("multi", false)
	s.Upsert = a.SafeBool("upsert", false)
	s.Sort = a.Doc("sort")
	s.Constants = a.Doc("c")
	s.Hint = hint(a)
	supplied := a.SafeBool("upsertSupplied", false)
	s.ArrayFilters = arrayFilters(a)
	s.refused = collateStatement(a, "collation", s.call)
	a.Ignore("sampleId", "allowShardKeyUpdatesWithoutFullShardKeyInQuery")
	a.Required("q")
	if s.Change.IsMissing() {
		a.Fail(mongoerr.New(40414, "BSON field 'update.updates.u' is missing but a required field").Unparsed())
	}
	if err := a.Done(); err != nil {
		return s, err
	}
	s.supply(supplied)
	return s, s.check()
}

// check finds what does not go together.
func (s *updateStatement) check() error {
	switch {
	case s.Change.Type != bson.TypeObject && s.Change.Type != bson.TypeArray:
		return noChange()
	case s.Change.Type == bson.TypeArray && !objectsOnly(s.Change.Doc()):
		return notStages()
	case s.Constants != nil && s.Change.Type != bson.TypeArray:
		return mongoerr.New(51198, "Constant values may only be specified for pipeline updates")
	case s.Sort != nil && s.Multi:
		return mongoerr.New(mongoerr.FailedToParse, "Cannot specify sort with multi=true")
	}
	return nil
}

// objectsOnly says whether all elements of an array are objects.
func objectsOnly(array bson.Doc) bool {
	for it := array.Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			return false
		}
	}
	return true
}

// noChange is the error of what is to be done by an update, and is neither operators, a document nor a pipeline.
func noChange() error {
	return mongoerr.New(mongoerr.FailedToParse, "Update argument must be either an object or an array").Unparsed()
}

func notStages() error {
	return mongoerr.New(mongoerr.TypeMismatch, "Each element of the 'pipeline' array must be an object").Unparsed()
}

// supply takes the document that an upsert inserts from the constants, when the client says that it is there.
func (s *updateStatement) supply(supplied bool) {
	if v := s.Constants.Lookup("new"); supplied && v.Type == bson.TypeObject {
		s.Insert = v.Doc()
	}
}

func (op *Op) runUpdates(statements []updateStatement, ordered bool) (bson.Doc, error) {
	var matched, modified int64
	var upserted []bson.Doc
	refused, err := runStatements(len(statements), ordered, func(i int) error {
		statements[i].call.Statement = i
		done, err := op.update(&statements[i])
		if err != nil {
			return err // what it has changed by then is not counted
		}
		matched += done.Matched
		modified += done.Modified
		if !done.UpsertedID.IsMissing() {
			matched++
			upserted = append(upserted, bson.Build().Int32("index", int32(i)).Value("_id", done.UpsertedID).Doc())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, s := range statements { // MongoDB counts stages by name, and does so last of all
		if s.Change.Type == bson.TypeArray {
			if err := op.Query.CheckStageNames(s.Change); err != nil {
				return nil, err
			}
		}
	}
	st := &op.Running.Stats
	st.Matched.Store(matched)
	st.Modified.Store(modified)
	st.Upserted.Store(int64(len(upserted)))
	b := op.build()
	op.writeReply(b, matched, refused)
	if op.WriteConcern.Unacknowledged { // drivers take a reply without nModified for no reply to an update
		return b.Int32("nModified", 0).Doc(), nil
	}
	if len(upserted) > 0 {
		b.Array("upserted")
		for i, d := range upserted {
			b.Document(bson.IndexKey(i), d)
		}
		b.End()
	}
	return b.Number("nModified", modified).Doc(), nil
}

// update runs one statement, and tells the slow log and the profiler of it.
func (op *Op) update(s *updateStatement) (query.Updated, error) {
	began := op.elapsed()
	if s.refused != nil {
		return query.Updated{}, s.refused
	}
	if err := op.checkBlocked(s.NS.DB); err != nil {
		return query.Updated{}, err
	}
	done, err := op.Query.Update(op.Ctx, s.Update, s.call)
	op.counts.updates.Add(1)
	op.examinedAlso(s.call)
	op.tally.scan(s.call.PlanSummary, false)
	op.statement("update", s.NS, s.source, began, err, s.call, func(st *operation.Stats) {
		note(st, s.call)
		st.Matched.Store(done.Matched)
		st.Modified.Store(done.Modified)
		if !done.UpsertedID.IsMissing() {
			st.Upserted.Store(1)
		}
	})
	return done, op.ofPlan("update", s.call, err)
}
