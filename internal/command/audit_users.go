package command

import (
	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
)

// What the audit log is told of the commands on users and roles: whom they were about, and what was given or taken. Each has succeeded, so
// its arguments are good.

func auditedName(op *Op, kind string) *bson.Builder {
	_, v := op.Args.first()
	return bson.Build().String(kind, v.Str()).String("db", op.DB)
}

// appendAsked appends fields of the command as they were given.
func (op *Op) appendAsked(b *bson.Builder, fields ...string) *bson.Builder {
	for _, f := range fields {
		if v := op.Args.Document().Lookup(f); !v.IsMissing() {
			b.Value(f, v)
		}
	}
	return b
}

// appendRoles appends the roles that the command names, each with its database.
func (op *Op) appendRoles(b *bson.Builder) *bson.Builder {
	list := op.Args.Document().Lookup("roles")
	if list.Type != bson.TypeArray {
		return b
	}
	var names []auth.Name
	for it := list.Doc().Iter(); it.Next(); {
		if n, err := readName("role", op.DB, it.Value()); err == nil {
			names = append(names, n)
		}
	}
	return b.Value("roles", roleArray(names))
}

func auditedCreateUser(op *Op) bson.Doc {
	b := op.appendAsked(auditedName(op, "user"), "customData")
	return op.appendAsked(op.appendRoles(b), "authenticationRestrictions").Doc()
}

func auditedUpdateUser(op *Op) bson.Doc {
	b := auditedName(op, "user").Bool("passwordChanged", !op.Args.Document().Lookup("pwd").IsMissing())
	return op.appendAsked(op.appendRoles(op.appendAsked(b, "customData")), "authenticationRestrictions").Doc()
}

func auditedUser(op *Op) bson.Doc { return op.appendRoles(auditedName(op, "user")).Doc() }

func auditedRole(op *Op) bson.Doc {
	return op.appendAsked(op.appendRoles(auditedName(op, "role")), "privileges", "authenticationRestrictions").Doc()
}

func auditedDB(op *Op) bson.Doc { return bson.Build().String("db", op.DB).Doc() }

func loginParam(user, db, mechanism string) bson.Doc {
	return bson.Build().String("user", cutText(user, maxAuditedName)).String("db", db).String("mechanism", cutText(mechanism, maxAuditedName)).Doc()
}

// logoutParam tells who was logged in, and that nobody is any more.
func logoutParam(reason string, was *auth.User) bson.Doc {
	b := bson.Build().String("reason", reason).Array("initialUsers")
	if was != nil {
		b.Object("0").String("user", was.Name.Name).String("db", was.DB).End()
	}
	return b.End().Array("updatedUsers").End().Doc()
}
