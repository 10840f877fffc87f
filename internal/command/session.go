package command

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/session"
)

func sessionCommands() []*Command {
	return []*Command{
		{Name: "startSession", Needs: Needs{Nothing: true}, Doc: "Begins a session.", NoSession: true, Run: startSession},
		{Name: "refreshSessions", Needs: Needs{Nothing: true}, Doc: "Keeps sessions alive.", NoSession: true, Run: refreshSessions},
		{Name: "endSessions", Needs: Needs{Nothing: true}, Doc: "Ends sessions.", NoSession: true, Run: endSessions},
	}
}

func startSession(op *Op) (bson.Doc, error) {
	id, err := op.Sessions.Start(op.ownUID())
	if err != nil {
		return nil, err
	}
	return bson.Build().Object("id").Binary("id", 4, []byte(session.UUIDOf(id))).End().Int32("timeoutMinutes", op.sessionMinutes()).Doc(), nil
}

// mayHaveSessions says whether sessions are kept for whoever runs the command: not for who has not logged in where one has to, who could
// leave no room for those of others.
func (op *Op) mayHaveSessions() bool { return !op.Authorization || op.user() != nil }

func refreshSessions(op *Op) (bson.Doc, error) {
	ids, err := op.sessionIDs("refreshSessionsFromClient")
	if err == nil {
		err = op.Args.Done()
	}
	for _, id := range ids {
		if err != nil {
			break
		}
		err = op.Sessions.Use(id, op.Clock.Now())
	}
	return bson.EmptyDoc, err
}

func endSessions(op *Op) (bson.Doc, error) {
	ids, err := op.sessionIDs(op.Name())
	if err == nil {
		err = op.Args.Done()
	}
	if err != nil {
		return nil, err
	}
	op.Sessions.End(ids...)
	return bson.EmptyDoc, nil
}

// sessionIDs reads the command's own field, an array of {id: UUID(…)}, whose elements errors call by another name; null elements are passed over.
func (op *Op) sessionIDs(elements string) ([]string, error) {
	a := op.Args
	a.Required(op.Name())
	array := a.Array(op.Name())
	if err := a.Err(); err != nil {
		return nil, err
	}
	var ids []string
	for it := array.Iter(); it.Next(); {
		if it.Value().IsNullish() {
			continue
		}
		d, err := a.element(elements, it)
		if err != nil {
			return nil, err
		}
		id, err := op.sessionID(a.path+"."+elements, d)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// element is the document that an array of documents holds at it.
func (a *Args) element(key string, it bson.Iter) (bson.Doc, error) {
	if it.Value().Type != bson.TypeObject {
		return nil, a.wrongType(key+"."+it.Key(), it.Value().Type, []bson.Type{bson.TypeObject})
	}
	return it.Value().Doc(), nil
}
