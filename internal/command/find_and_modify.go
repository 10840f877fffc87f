package command

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/query"
)

func findAndModifyCommands() []*Command {
	return []*Command{{Name: "findAndModify", RawData: true, Aliases: []string{"findandmodify"}, Needs: Needs{OnCollection: actions(privilege.Find), Also: needsFindAndModify}, WriteConcern: true, Written: []string{"update", "let"}, Run: findAndModify, Explain: explainFindAndModify,
		Doc: "Changes or removes one document and gives it back."}}
}

// findAndModifyRequest is a findAndModify as the client asked for it.
type findAndModifyRequest struct {
	query.FindAndModify
	call *query.Call
}

func findAndModify(op *Op) (bson.Doc, error) {
	r, err := op.parseFindAndModify(op.Args)
	if err != nil {
		return nil, err
	}
	if err := op.checkSystemWrite(r.NS, systemModify); err != nil {
		return nil, err
	}
	if err := writable(r.NS); err != nil {
		return nil, err
	}
	if err := op.checkStatementIDs(1); err != nil {
		return nil, err
	}
	op.executed = r.call
	done, err := op.Query.FindAndModify(op.Ctx, r.FindAndModify, r.call)
	op.examined(r.call)
	if err != nil {
		return nil, op.ofPlan("findAndModify", r.call, err)
	}
	op.countModified(r.Remove, done)
	return modifiedReply(r.Remove, done), nil
}

func (op *Op) parseFindAndModify(a *Args) (findAndModifyRequest, error) {
	r := findAndModifyRequest{call: op.change()}
	r.NS = a.Collection(op.DB)
	r.Filter = a.Doc("query")
	r.Sort = a.Doc("sort")
	r.Projection = a.Doc("fields")
	r.Hint = hint(a)
	r.Remove = a.SafeBool("remove", false)
	r.New = a.SafeBool("new", false)
	r.Upsert = a.SafeBool("upsert", false)
	r.Change = a.Value("update")
	r.ArrayFilters = arrayFilters(a)
	r.call.KeepTimestamps = a.SafeBool("bypassEmptyTsReplacement", false)
	r.call.Bypass = a.SafeBool("bypassDocumentValidation", false)
	r.call.Let = a.Doc("let")
	collate(a, a.Doc("collation"), r.call)
	r.call.Expected = a.collectionUUID(r.NS)
	a.noEncryption()
	a.Ignore("isTimeseriesNamespace", "runtimeConstants", "legacyRuntimeConstants", "sampleId",
		"originalQuery", "originalCollation", "allowShardKeyUpdatesWithoutFullShardKeyInQuery")
	if err := a.Done(); err != nil {
		return r, err
	}
	if err := readable(r.NS); err != nil {
		return r, err
	}
	return r, r.check(a.Has("arrayFilters"))
}

func (r *findAndModifyRequest) check(arrayFilters bool) error {
	update := !r.Change.IsMissing()
	message := ""
	switch {
	case update && r.Change.Type != bson.TypeObject && r.Change.Type != bson.TypeArray:
		return noChange()
	case !update && !r.Remove:
		message = "Either an update or remove=true must be specified"
	case update && r.Remove:
		message = "Cannot specify both an update and remove=true"
	case r.Remove && r.Upsert:
		message = "Cannot specify both upsert=true and remove=true "
	case r.Remove && r.New:
		message = "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document"
	case r.Change.Type == bson.TypeArray && arrayFilters:
		message = "Cannot specify arrayFilters and a pipeline update"
	default:
		return nil
	}
	return mongoerr.New(mongoerr.FailedToParse, "%s", message)
}

// arrayFilters reads the conditions of an update's $[identifiers].
func arrayFilters(a *Args) (filters []bson.Value) {
	for it := a.Array("arrayFilters").Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			a.Fail(a.wrongType("arrayFilters."+it.Key(), it.Value().Type, []bson.Type{bson.TypeObject}))
		}
		filters = append(filters, it.Value())
	}
	return filters
}

func (op *Op) countModified(remove bool, m query.Modified) {
	st := &op.Running.Stats
	switch {
	case remove && m.Found:
		st.Deleted.Store(1)
	case !m.UpsertedID.IsMissing():
		st.Upserted.Store(1)
	case m.Found:
		st.Matched.Store(1)
		if m.Changed {
			st.Modified.Store(1)
		}
	}
	if m.Value != nil {
		st.Returned.Store(1)
	}
}

func modifiedReply(remove bool, m query.Modified) bson.Doc {
	n := int32(0)
	if m.Found || !m.UpsertedID.IsMissing() {
		n = 1
	}
	b := bson.BuildOn(make([]byte, 0, len(m.Value)+128)).Object("lastErrorObject").Int32("n", n)
	if !remove {
		b.Bool("updatedExisting", m.Found)
	}
	if !m.UpsertedID.IsMissing() {
		b.Value("upserted", m.UpsertedID)
	}
	b.End()
	if m.Value == nil {
		return b.Null("value").Doc()
	}
	return b.Document("value", m.Value).Doc()
}
