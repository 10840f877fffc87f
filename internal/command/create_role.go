package command

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/auth/role"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func roleCommands() []*Command {
	return []*Command{
		{Name: "createRole", Doc: "Makes a role.", WriteConcern: true, Needs: Needs{Also: needsCreateRole}, Audited: auditedRole, Run: createRole},
		{Name: "updateRole", Doc: "Changes a role.", WriteConcern: true, Needs: Needs{Also: needsUpdateRole}, Audited: auditedRole, Run: updateRole},
		{Name: "dropRole", Doc: "Removes a role.", WriteConcern: true, Needs: Needs{Also: needsDropRole}, Audited: auditedRole, Run: dropRole},
		{Name: "dropAllRolesFromDatabase", Doc: "Removes all roles of a database.", WriteConcern: true, Needs: Needs{Also: needsDropRole}, Audited: auditedDB, Run: dropAllRoles},
		{Name: "grantRolesToRole", Doc: "Has a role inherit others.", WriteConcern: true, Needs: Needs{Also: needsGrantRoles}, Audited: auditedRole, Run: grantRolesToRole},
		{Name: "revokeRolesFromRole", Doc: "Has a role inherit others no more.", WriteConcern: true, Needs: Needs{Also: needsRevokeRoles}, Audited: auditedRole, Run: revokeRolesFromRole},
		{Name: "grantPrivilegesToRole", Doc: "Adds privileges to a role.", WriteConcern: true, Needs: Needs{Also: needsGrantPrivileges}, Audited: auditedRole, Run: grantPrivilegesToRole},
		{Name: "revokePrivilegesFromRole", Doc: "Takes privileges away from a role.", WriteConcern: true, Needs: Needs{Also: needsRevokePrivileges}, Audited: auditedRole, Run: revokePrivilegesFromRole},
		{Name: "rolesInfo", Doc: "Tells of roles.", Needs: Needs{Also: needsRolesInfo}, Run: rolesInfo},
	}
}

func createRole(op *Op) (bson.Doc, error) {
	a := op.Args
	name := op.ownName()
	privileges, _ := op.privileges()
	roles, _ := op.roleNames("roles")
	restrictions, _ := op.restrictions()
	a.Required("privileges", "roles")
	if err := a.Done(); err != nil {
		return nil, err
	}
	bad := func(text string) error { return mongoerr.New(mongoerr.BadValue, "%s", text) }
	switch {
	case name.Name == "":
		return nil, bad("Role name must be non-empty")
	case name.DB == "local":
		return nil, bad("Cannot create roles in the local database")
	case name.DB == externalDB:
		return nil, bad("Cannot create roles in the $external database")
	case strings.Contains(name.Name, "\x00"):
		return nil, bad("Role name cannot contain NULL characters")
	case role.IsBuiltin(name.Name, name.DB):
		return nil, bad("Cannot create roles with the same name as a built-in role")
	}
	b := bson.Build().String("_id", name.ID()).String("role", name.Name).String("db", name.DB).
		Value("privileges", privilegeArray(privileges)).Value("roles", roleArray(roles))
	if !restrictions.IsMissing() {
		b.Value("authenticationRestrictions", restrictions)
	}
	doc := b.Doc()
	if err := op.ensureAuthCollection(auth.RolesNS(), "role"); err != nil {
		return nil, err
	}
	return bson.EmptyDoc, op.changeAuth(func(s *authStore) error {
		if err := s.checkInherits(name, roles); err != nil {
			return err
		}
		if err := checkPrivileges(name, privileges); err != nil {
			return err
		}
		return s.insert(auth.RolesNS(), doc, mongoerr.New(51002, "Role \"%s\" already exists", name))
	})
}

// checkInherits refuses roles that the role called name must not inherit.
func (s *authStore) checkInherits(name auth.Name, roles []auth.Name) error {
	for _, r := range roles {
		if r == name {
			return mongoerr.New(mongoerr.InvalidRoleModification, "Cannot grant role %s to itself.", name)
		}
		if name.DB != "admin" && r.DB != name.DB {
			return mongoerr.New(mongoerr.InvalidRoleModification, "Roles on the '%s' database cannot be granted roles from other databases", name.DB)
		}
	}
	if err := s.checkRoles(roles); err != nil {
		return mongoerr.Prefix("Cannot grant roles to '"+name.String()+"': ", err)
	}
	all, err := s.resolve(roles)
	if err != nil {
		return err
	}
	if slices.Contains(all.All, name) {
		return mongoerr.New(mongoerr.InvalidRoleModification, "Granting roles to %s would introduce a cycle in the role graph", name)
	}
	return nil
}

// checkPrivileges refuses privileges that the role called name must not have: one of a database reaches no further than that.
func checkPrivileges(name auth.Name, ps []privilege.Privilege) error {
	for _, p := range ps {
		if name.DB != "admin" && p.Resource.Database() != name.DB {
			return mongoerr.New(mongoerr.InvalidRoleModification, "Roles on the '%s' database cannot be granted privileges that target other databases or the cluster", name.DB)
		}
	}
	return nil
}

// changeRole puts what f makes of a role in its place.
func (op *Op) changeRole(name auth.Name, f func(s *authStore, old bson.Doc) (bson.Doc, error)) error {
	return op.changeAuth(func(s *authStore) error {
		old, err := s.role(name)
		if err != nil {
			return err
		}
		if old == nil {
			return mongoerr.New(mongoerr.RoleNotFound, "Could not find role: %s", name)
		}
		doc, err := f(s, old)
		if err != nil {
			return err
		}
		return s.replace(auth.RolesNS(), doc)
	})
}

func updateRole(op *Op) (bson.Doc, error) {
	name := op.ownName()
	privileges, hasPrivileges := op.privileges()
	roles, hasRoles := op.roleNames("roles")
	restrictions, restricts := op.restrictions()
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	if !hasPrivileges && !hasRoles && !restricts {
		return nil, mongoerr.New(mongoerr.BadValue, "Must specify at least one field to update in updateRole")
	}
	if role.IsBuiltin(name.Name, name.DB) {
		return nil, mongoerr.New(mongoerr.RoleNotFound, "Role %s not found", name)
	}
	return bson.EmptyDoc, op.changeRole(name, func(s *authStore, old bson.Doc) (bson.Doc, error) {
		var change []field
		if hasPrivileges {
			if err := checkPrivileges(name, privileges); err != nil {
				return nil, err
			}
			change = append(change, field{"privileges", privilegeArray(privileges)})
		}
		if hasRoles {
			if err := s.checkInherits(name, roles); err != nil {
				return nil, err
			}
			change = append(change, field{"roles", roleArray(roles)})
		}
		if restricts {
			change = append(change, field{"authenticationRestrictions", restrictions})
		}
		return with(old, change...), nil
	})
}

func checkNotBuiltin(name auth.Name) error {
	if role.IsBuiltin(name.Name, name.DB) {
		return mongoerr.New(mongoerr.InvalidRoleModification, "%s is a built-in role and cannot be modified", name)
	}
	return nil
}

func grantRolesToRole(op *Op) (bson.Doc, error) {
	return op.changeRolesOfRole(func(s *authStore, name auth.Name, have, roles []auth.Name) ([]auth.Name, error) {
		return adding(have, roles), s.checkInherits(name, roles)
	})
}

func revokeRolesFromRole(op *Op) (bson.Doc, error) {
	return op.changeRolesOfRole(func(_ *authStore, _ auth.Name, have, roles []auth.Name) ([]auth.Name, error) {
		return removing(have, roles), nil
	})
}

func (op *Op) changeRolesOfRole(change func(s *authStore, name auth.Name, have, roles []auth.Name) ([]auth.Name, error)) (bson.Doc, error) {
	name := op.ownName()
	roles, err := op.someRoles()
	if err == nil {
		err = checkNotBuiltin(name)
	}
	if err != nil {
		return nil, err
	}
	return bson.EmptyDoc, op.changeRole(name, func(s *authStore, old bson.Doc) (bson.Doc, error) {
		now, err := change(s, name, rolesOf(old), roles)
		return with(old, field{"roles", roleArray(now)}), err
	})
}

func grantPrivilegesToRole(op *Op) (bson.Doc, error) {
	return op.changePrivileges(func(name auth.Name, have *privilege.Grants, ps []privilege.Privilege) ([]privilege.Privilege, error) {
		for _, p := range ps {
			have.Add(p)
		}
		return have.Privileges(), checkPrivileges(name, ps)
	})
}

func revokePrivilegesFromRole(op *Op) (bson.Doc, error) {
	return op.changePrivileges(func(_ auth.Name, have *privilege.Grants, ps []privilege.Privilege) ([]privilege.Privilege, error) {
		left := have.Privileges()
		for _, p := range ps {
			for i := range left {
				if left[i].Resource == p.Resource {
					left[i].Actions.Remove(p.Actions)
				}
			}
		}
		return slices.DeleteFunc(left, func(p privilege.Privilege) bool { return p.Actions.IsEmpty() }), nil
	})
}

func (op *Op) changePrivileges(change func(name auth.Name, have *privilege.Grants, ps []privilege.Privilege) ([]privilege.Privilege, error)) (bson.Doc, error) {
	name := op.ownName()
	ps, _ := op.privileges()
	op.Args.Required("privileges")
	err := op.Args.Done()
	if err == nil && len(ps) == 0 {
		err = mongoerr.New(mongoerr.BadValue, "%s command requires a non-empty \"privileges\" array", op.Command.Name)
	}
	if err == nil {
		err = checkNotBuiltin(name)
	}
	if err != nil {
		return nil, err
	}
	return bson.EmptyDoc, op.changeRole(name, func(_ *authStore, old bson.Doc) (bson.Doc, error) {
		have, err := ownPrivileges(old)
		if err != nil {
			return nil, err
		}
		now, err := change(name, have, ps)
		return with(old, field{"privileges", privilegeArray(now)}), err
	})
}

// ownPrivileges are those of a stored role, without what it inherits.
func ownPrivileges(d bson.Doc) (*privilege.Grants, error) {
	g := &privilege.Grants{}
	list := d.Lookup("privileges")
	if list.Type != bson.TypeArray {
		return g, nil
	}
	for it := list.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			continue
		}
		p, _, err := privilege.Parse("privileges", it.Value().Doc())
		if err != nil {
			return nil, err
		}
		g.Add(p)
	}
	return g, nil
}

func dropRole(op *Op) (bson.Doc, error) {
	name := op.ownName()
	err := op.Args.Done()
	if err == nil {
		err = checkNotBuiltin(name)
	}
	if err != nil {
		return nil, err
	}
	return bson.EmptyDoc, op.changeAuth(func(s *authStore) error {
		d, err := s.role(name)
		if err != nil {
			return err
		}
		if d == nil {
			return mongoerr.New(mongoerr.RoleNotFound, "Could not find role: %s", name)
		}
		return s.dropRoles([]bson.Doc{d}, func(n auth.Name) bool { return n == name })
	})
}

func dropAllRoles(op *Op) (bson.Doc, error) {
	op.Args.Ignore(op.Name())
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	n := 0
	err := op.changeAuth(func(s *authStore) error {
		docs, err := s.all(auth.RolesNS(), ofDatabase(op.DB))
		if err != nil {
			return err
		}
		n = len(docs)
		return s.dropRoles(docs, func(n auth.Name) bool { return n.DB == op.DB && !role.IsBuiltin(n.Name, n.DB) })
	})
	return bson.Build().Int32("n", int32(n)).Doc(), err
}

// dropRoles removes roles, and takes them from the users and roles that have them.
func (s *authStore) dropRoles(docs []bson.Doc, gone func(auth.Name) bool) error {
	has := func(d bson.Doc) bool { return slices.ContainsFunc(rolesOf(d), gone) }
	holders, err := s.all(auth.UsersNS(), has)
	if err != nil {
		return err
	}
	for _, d := range holders {
		if err := s.replace(auth.UsersNS(), with(d, field{"roles", roleArray(slices.DeleteFunc(rolesOf(d), gone))})); err != nil {
			return err
		}
	}
	if holders, err = s.all(auth.RolesNS(), has); err != nil {
		return err
	}
	for _, d := range holders {
		if err := s.replace(auth.RolesNS(), with(d, field{"roles", roleArray(slices.DeleteFunc(rolesOf(d), gone))})); err != nil {
			return err
		}
	}
	for _, d := range docs {
		if err := s.remove(auth.RolesNS(), d.Lookup("_id")); err != nil {
			return err
		}
	}
	return nil
}
