package command

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/auth/role"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/wire"
)

// people is an Authority of users who are made up.
type people map[auth.Name]*auth.User

func (p people) Find(_ context.Context, name auth.Name) (*auth.User, error) {
	if u := p[name]; u != nil {
		found := *u
		found.Name = name // as one who is found by it has it
		return &found, nil
	}
	return nil, mongoerr.New(mongoerr.UserNotFound, "Could not find user %s", name)
}

func (people) Forget() {}

func (people) Version() auth.Version { return auth.Version{} }

func (p people) Vouched(_ context.Context, name auth.Name, roles []auth.Name) (*auth.User, error) {
	return &auth.User{Name: name, Roles: roles}, nil
}

func (p people) HasUsers(context.Context) (bool, error) { return len(p) > 0, nil }
func (p people) HasRoles(context.Context) (bool, error) { return false, nil }

func (p people) Now(ctx context.Context, u *auth.User) (*auth.User, error) {
	if u.IsInternal() {
		return u, nil
	}
	return p.Find(ctx, u.Name)
}

// guarded is the harness of a server that has people log in.
type guarded struct {
	*harness
	people people
}

func newGuarded(t testing.TB, h *harness) *guarded {
	g := &guarded{h, people{}}
	h.server.Authorization, h.server.Users = true, g.people
	return g
}

// is has the user who is called so be of those roles, "role@db", and of those privileges.
func (g *guarded) is(name auth.Name, roles []auth.Name, also ...privilege.Privilege) *auth.User {
	u := &auth.User{Name: name, Roles: roles, All: roles, Grants: &privilege.Grants{}}
	for _, r := range roles {
		builtin, ok := role.Builtin(r.Name, r.DB)
		if !ok {
			g.t.Fatalf("there is no role %s", r)
		}
		for _, p := range builtin.Privileges() {
			u.Grants.Add(p)
		}
	}
	for _, p := range also {
		u.Grants.Add(p)
	}
	g.people[name] = u
	return u
}

// user makes a user of a database own, who logs in on a connection of the same name.
func (g *guarded) user(name string, roles ...auth.Name) *Conn {
	return g.userWith(name, roles)
}

func (g *guarded) userWith(name string, roles []auth.Name, also ...privilege.Privilege) *Conn {
	c := g.conn(name)
	c.become(g.is(auth.Name{Name: name, DB: "own"}, roles, also...))
	return c
}

// as sends a command as a user.
func (g *guarded) as(user, db, command string) bson.Doc {
	g.t.Helper()
	return g.send(g.t.Context(), user, db, bson.MustDoc(command)).Body
}

// allowed sends a command that must work.
func (g *guarded) allowed(user, db, command string) bson.Doc {
	g.t.Helper()
	reply := g.as(user, db, command)
	if !reply.Lookup("ok").Truthy() || !reply.Lookup("writeErrors").IsMissing() {
		g.t.Fatalf("%s as %s: %s", command, user, reply)
	}
	return reply
}

// refused sends a command that the user may not run.
func (g *guarded) refused(user, db, command string) string {
	g.t.Helper()
	reply := g.as(user, db, command)
	if !isRefusal(reply) {
		g.t.Errorf("%s as %s is not refused: %s", command, user, reply)
	}
	return reply.Lookup("errmsg").String()
}

func isRefusal(reply bson.Doc) bool {
	code := reply.Lookup("code")
	return code.Type == bson.TypeInt32 && mongoerr.Code(code.Int32()) == mongoerr.Unauthorized
}

func roleIn(name, db string) auth.Name { return auth.Name{Name: name, DB: db} }

// sequence sends a command with one document in a document sequence.
func (g *guarded) sequence(user, command, name, document string) bson.Doc {
	g.t.Helper()
	body, doc := bson.Build().Fields(bson.MustDoc(command)).String("$db", "own").Doc(), bson.MustDoc(document)
	var b bytes.Buffer
	number := func(n int) { b.Write(binary.LittleEndian.AppendUint32(nil, uint32(n))) }
	section := 4 + len(name) + 1 + len(doc)
	number(16 + 4 + 1 + len(body) + 1 + section)
	number(1)
	number(0)
	number(2013)
	number(0)
	b.WriteByte(0)
	b.Write(body)
	b.WriteByte(1)
	number(section)
	b.WriteString(name + "\x00")
	b.Write(doc)
	codec, err := wire.NewCodec(nil)
	if err != nil {
		g.t.Fatal(err)
	}
	m, err := codec.NewReader(&b).ReadMessage()
	if err != nil {
		g.t.Fatal(err)
	}
	defer m.Release()
	return g.server.Handle(g.t.Context(), g.conn(user), Request{Body: m.Body, Sequences: m.Sequences}).Body.Clone()
}
