package command

import (
	"bytes"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/cursor"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/session"
)

func killSessionsCommands() []*Command {
	return []*Command{
		{Name: "killSessions", Needs: Needs{Nothing: true}, Doc: "Stops all that sessions do.", NoSession: true, Run: killSessions},
		{Name: "killAllSessions", Needs: Needs{OnCluster: actions(privilege.KillAnySession)}, Doc: "Stops all that the sessions of users do.", NoSession: true, Run: killAllSessions},
		{Name: "killAllSessionsByPattern", Needs: Needs{OnCluster: actions(privilege.KillAnySession)}, Doc: "Stops all that the sessions do that a pattern matches.", NoSession: true, Run: killAllSessionsByPattern},
	}
}

func killSessions(op *Op) (bson.Doc, error) {
	ids, err := op.sessionIDs(op.Name())
	if err != nil {
		return nil, err
	}
	chosen := map[string]bool{}
	for _, id := range ids {
		chosen[id] = true
	}
	own := op.ownUID()
	return bson.EmptyDoc, op.kill(func(id string) bool {
		return len(chosen) == 0 && (!op.Authorization || id[len(session.UUIDOf(id)):] == own) || chosen[id]
	})
}

// killAllSessions takes users; all sessions are killed when none is named.
func killAllSessions(op *Op) (bson.Doc, error) {
	a := op.Args.as("KillAllSessionsCmd")
	a.Required(op.Name())
	users := a.Array(op.Name())
	if err := a.Err(); err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for it := users.Iter(); it.Next(); {
		if it.Value().IsNullish() {
			continue
		}
		d, err := a.element(op.Name(), it)
		if err != nil {
			return nil, err
		}
		if err := checkPair(a.path+"."+op.Name(), d, "user", "db"); err != nil {
			return nil, err
		}
		uid := session.UID(auth.Name{Name: d.Lookup("user").Str(), DB: d.Lookup("db").Str()}.String())
		named[string(uid[:])] = true
	}
	return bson.EmptyDoc, op.kill(func(id string) bool { return len(named) == 0 || named[string(session.UIDOf(id))] })
}

// checkPair wants two texts and nothing else.
func checkPair(path string, d bson.Doc, one, other string) error {
	a := NewArgs(path, d)
	a.String(one)
	a.String(other)
	a.Required(one, other)
	return a.Done()
}

// sessionPattern is one element of killAllSessionsByPattern: a session, a user's digest, or all.
type sessionPattern struct {
	id  string
	uid []byte
	// actsFor says that it names whom to act as.
	actsFor bool
}

func (p sessionPattern) matches(id string) bool {
	return (p.uid == nil || bytes.Equal(p.uid, session.UIDOf(id))) && (p.id == "" || p.id == id)
}

func killAllSessionsByPattern(op *Op) (bson.Doc, error) {
	a := op.Args.as("KillAllSessionsByPatternCmd")
	a.Required(op.Name())
	array := a.Array(op.Name())
	if err := a.Err(); err != nil {
		return nil, err
	}
	var patterns []sessionPattern
	for it := array.Iter(); it.Next(); {
		d, err := a.element(op.Name(), it)
		if err != nil {
			return nil, err
		}
		p, err := readSessionPattern(a.path+"."+op.Name(), d)
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, p)
	}
	for _, p := range patterns {
		if p.actsFor && !op.May(privilege.Cluster(), privilege.Impersonate) {
			return nil, mongoerr.New(mongoerr.Unauthorized, "Not authorized to impersonate in killAllSessionsByPattern")
		}
	}
	return bson.EmptyDoc, op.kill(func(id string) bool {
		for _, p := range patterns {
			if p.matches(id) {
				return true
			}
		}
		return len(patterns) == 0
	})
}

func readSessionPattern(path string, d bson.Doc) (p sessionPattern, err error) {
	a := NewArgs(path, d)
	checkPairs(a, "users", "user")
	checkPairs(a, "roles", "role")
	p.actsFor = a.Has("users") || a.Has("roles")
	p.uid = a.digest("uid")
	if lsid := a.Doc("lsid"); lsid != nil {
		if p.id, err = wholeSessionID(path+".lsid", lsid); err != nil {
			a.Fail(err)
		}
	}
	return p, a.Done()
}

// checkPairs wants an array of documents with a name and its database.
func checkPairs(a *Args, key, name string) {
	for it := a.Array(key).Iter(); it.Next(); {
		d, err := a.element(key, it)
		if err == nil {
			err = checkPair(a.path+"."+key, d, name, "db")
		}
		if err != nil {
			a.Fail(err)
		}
	}
}

// wholeSessionID is the id of a session that is named with its user: whose it is does not go without saying here.
func wholeSessionID(path string, lsid bson.Doc) (string, error) {
	uuid, err := sessionUUID(path, lsid)
	if err != nil {
		return "", err
	}
	a := NewArgs(path, lsid)
	a.Required("uid")
	return session.OwnedID(uuid, a.digest("uid")), a.Err()
}

// kill stops the operations, transactions and cursors of the sessions chosen, but for the operation itself.
func (op *Op) kill(chosen func(id string) bool) error {
	op.Ops.Each(func(o *operation.Operation) {
		if o == op.Running || o.LSID == nil {
			return
		}
		if chosen(o.Session) {
			o.Kill(mongoerr.New(mongoerr.Interrupted, "operation was interrupted"))
		}
	})
	if err := op.Sessions.Abort(op.Ctx, chosen); err != nil {
		return err
	}
	op.Cursors.KillWhere(func(c *cursor.Cursor) bool { return c.LSID != "" && chosen(c.LSID) })
	return nil
}
