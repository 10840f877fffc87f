package command

import (
	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
)

// What the commands on users and roles need. Granting a role needs grantRole on the role's database, whoever gets it.

// onOwnDB says whether the action may be done on the command's database.
func (op *Op) onOwnDB(a privilege.Action) bool { return op.May(privilege.Database(op.DB), a) }

// unless refuses what is not allowed.
func (op *Op) unless(allowed bool) error {
	if allowed {
		return nil
	}
	return op.refusal()
}

// mayOnRoles says whether the action may be done on the databases of the roles that the command names.
func (op *Op) mayOnRoles(a privilege.Action) bool {
	list := op.Args.Document().Lookup("roles")
	if list.Type != bson.TypeArray {
		return true
	}
	for it := list.Doc().Iter(); it.Next(); {
		n, err := readName("role", op.DB, it.Value())
		if err == nil && !op.May(privilege.Database(n.DB), a) {
			return false
		}
	}
	return true
}

// mayRestrict says whether the restrictions that the command sets, if any, may be set.
func (op *Op) mayRestrict() bool {
	return op.Args.Document().Lookup("authenticationRestrictions").IsMissing() || op.onOwnDB(privilege.SetAuthenticationRestriction)
}

func needsCreateUser(op *Op) error {
	return op.unless(op.onOwnDB(privilege.CreateUser) && op.mayOnRoles(privilege.GrantRole) && op.mayRestrict())
}

func needsUpdateUser(op *Op) error {
	d := op.Args.Document()
	own := op.isSelf()
	pwd := d.Lookup("pwd").IsMissing() || op.onOwnDB(privilege.ChangePassword) || own && op.onOwnDB(privilege.ChangeOwnPassword)
	custom := d.Lookup("customData").IsMissing() || op.onOwnDB(privilege.ChangeCustomData) || own && op.onOwnDB(privilege.ChangeOwnCustomData)
	mechanisms := d.Lookup("mechanisms").IsMissing() || !d.Lookup("pwd").IsMissing() || op.onOwnDB(privilege.ChangePassword) || own && op.onOwnDB(privilege.ChangeOwnPassword)
	roles := d.Lookup("roles").IsMissing() || op.mayRevokeAny() && op.mayOnRoles(privilege.GrantRole)
	return op.unless(pwd && custom && mechanisms && roles && op.mayRestrict())
}

// mayRevokeAny says whether roles of each database may be revoked: who sets what somebody has anew does not know what goes.
func (op *Op) mayRevokeAny() bool { return op.May(privilege.AnyNormal(), privilege.RevokeRole) }

// isSelf says whether the command names the user who runs it.
func (op *Op) isSelf() bool {
	_, v := op.Args.first()
	u := op.Conn.user.Load()
	return u != nil && v.Type == bson.TypeString && u.Name == auth.Name{Name: v.Str(), DB: op.DB}
}

func needsDropUser(op *Op) error { return op.unless(op.onOwnDB(privilege.DropUser)) }

func needsGrantRoles(op *Op) error { return op.unless(op.mayOnRoles(privilege.GrantRole)) }

func needsRevokeRoles(op *Op) error { return op.unless(op.mayOnRoles(privilege.RevokeRole)) }

func needsCreateRole(op *Op) error {
	return op.unless(op.onOwnDB(privilege.CreateRole) && op.mayOnRoles(privilege.GrantRole) && op.mayOnPrivileges(privilege.GrantRole) && op.mayRestrict())
}

func needsUpdateRole(op *Op) error {
	return op.unless(op.mayRevokeAny() && op.mayOnRoles(privilege.GrantRole) && op.mayOnPrivileges(privilege.GrantRole) && op.mayRestrict())
}

func needsDropRole(op *Op) error { return op.unless(op.onOwnDB(privilege.DropRole)) }

func needsGrantPrivileges(op *Op) error { return op.unless(op.mayOnPrivileges(privilege.GrantRole)) }

func needsRevokePrivileges(op *Op) error {
	return op.unless(op.mayOnPrivileges(privilege.RevokeRole))
}

// mayOnPrivileges says whether the action may be done where the privileges are that the command names: on their databases, and on admin
// for those that reach further than one.
func (op *Op) mayOnPrivileges(a privilege.Action) bool {
	list := op.Args.Document().Lookup("privileges")
	if list.Type != bson.TypeArray {
		return true
	}
	for it := list.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			continue
		}
		p, _, err := privilege.Parse("privileges", it.Value().Doc())
		if err != nil {
			continue // which is refused later
		}
		db := p.Resource.Database()
		if db == "" {
			db = "admin"
		}
		if !op.May(privilege.Database(db), a) {
			return false
		}
	}
	return true
}

// needsUsersInfo: everybody may ask for himself, and for his credentials, too.
func needsUsersInfo(op *Op) error {
	_, v := op.Args.first()
	if v.Type == bson.TypeObject && v.Doc().FirstKey() == "forAllDBs" {
		return op.unless(op.May(privilege.Cluster(), privilege.ViewUser))
	}
	if v.IsNumber() {
		return op.unless(op.onOwnDB(privilege.ViewUser))
	}
	self := op.Conn.user.Load()
	for _, n := range op.askedFor(v, "user") {
		own := self != nil && self.Name == n
		if !own && !op.May(privilege.Database(n.DB), privilege.ViewUser) {
			return op.refusal()
		}
	}
	return nil
}

// needsRolesInfo: everybody may ask for the roles that he has.
func needsRolesInfo(op *Op) error {
	_, v := op.Args.first()
	if v.IsNumber() {
		return op.unless(op.onOwnDB(privilege.ViewRole))
	}
	self := op.Conn.user.Load()
	for _, n := range op.askedFor(v, "role") {
		if self != nil && self.HasRole(n) || op.May(privilege.Database(n.DB), privilege.ViewRole) {
			continue
		}
		return op.refusal()
	}
	return nil
}

// askedFor are the names in a command's first argument, as far as they are names.
func (op *Op) askedFor(v bson.Value, kind string) (names []auth.Name) {
	add := func(v bson.Value) {
		if n, err := readName(kind, op.DB, v); err == nil {
			names = append(names, n)
		}
	}
	if v.Type != bson.TypeArray {
		add(v)
		return names
	}
	for it := v.Doc().Iter(); it.Next(); {
		add(it.Value())
	}
	return names
}
