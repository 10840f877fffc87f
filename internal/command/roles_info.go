package command

import (
	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/auth/role"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func rolesInfo(op *Op) (bson.Doc, error) {
	a := op.Args
	w := op.readWhom("role")
	fragment, privileges := false, false
	switch v := a.Value("showPrivileges"); {
	case v.Type == bson.TypeString && v.Str() == "asUserFragment":
		fragment = true
	case v.Type == bson.TypeString:
		a.Fail(mongoerr.New(mongoerr.BadValue, "Failed to parse 'showPrivileges'. 'asUserFragment' is the only acceptable string value"))
	default:
		privileges = a.SafeBool("showPrivileges", false)
	}
	builtin := a.SafeBool("showBuiltinRoles", false)
	restrictions := a.SafeBool("showAuthenticationRestrictions", false)
	if err := a.Done(); err != nil {
		return nil, err
	}
	if fragment && !w.exact {
		return nil, mongoerr.New(mongoerr.IllegalOperation, "Cannot get user fragment for all roles in a database")
	}
	b := bson.Build()
	err := op.readAuth(func(s *authStore) error {
		if fragment {
			return s.appendFragment(b, w.names, restrictions)
		}
		names, err := s.rolesAskedFor(w, builtin)
		var shown []bson.Value
		for _, n := range names {
			if err != nil {
				return err
			}
			var d bson.Doc
			if d, err = s.describeRole(n, privileges, restrictions); d != nil {
				shown = append(shown, d.Value())
			}
		}
		b.Value("roles", bson.ArrayOf(shown...))
		return err
	})
	return b.Doc(), err
}

// rolesAskedFor are the roles by name, or all of the database: its own, and the built-in ones if they are wanted.
func (s *authStore) rolesAskedFor(w whom, builtin bool) (names []auth.Name, err error) {
	if w.exact {
		return w.names, nil
	}
	docs, err := s.all(auth.RolesNS(), ofDatabase(s.op.DB))
	for _, d := range docs {
		names = append(names, auth.Name{Name: text(d, "role"), DB: s.op.DB})
	}
	if builtin {
		for _, n := range role.Names(s.op.DB) {
			names = append(names, auth.Name{Name: n, DB: s.op.DB})
		}
	}
	return names, err
}

// describeRole tells of one role; nil where there is none.
func (s *authStore) describeRole(n auth.Name, privileges, restrictions bool) (bson.Doc, error) {
	own, direct, rules, isBuiltin, err := s.roleParts(n)
	if own == nil || err != nil {
		return nil, err
	}
	inherited, err := s.resolve(direct)
	if err != nil {
		return nil, err
	}
	b := bson.Build()
	if !isBuiltin {
		b.String("_id", n.ID())
	}
	b.String("role", n.Name).String("db", n.DB).Bool("isBuiltin", isBuiltin).Value("roles", roleArray(direct)).Value("inheritedRoles", roleArray(inherited.All))
	if privileges {
		all := &privilege.Grants{}
		for _, p := range append(own.Privileges(), inherited.Grants.Privileges()...) {
			all.Add(p)
		}
		b.Value("privileges", privilegeArray(own.Privileges())).Value("inheritedPrivileges", privilegeArray(all.Privileges()))
	}
	if restrictions {
		mine := rules
		if mine.IsMissing() {
			mine = bson.ArrayOf()
		} else if rs, err := auth.ParseRestrictions("authenticationRestrictions", mine.Doc()); err == nil {
			inherited.Restrictions = append([]auth.Restrictions{rs}, inherited.Restrictions...)
		}
		b.Value("authenticationRestrictions", mine).Value("inheritedAuthenticationRestrictions", inheritedRestrictions(inherited.Restrictions))
	}
	return b.Doc(), nil
}

// roleParts are a role's own privileges, the roles that it names and its restrictions; own is nil where there is no such role.
func (s *authStore) roleParts(n auth.Name) (own *privilege.Grants, direct []auth.Name, rules bson.Value, isBuiltin bool, err error) {
	if g, ok := role.Builtin(n.Name, n.DB); ok {
		return g, nil, bson.Missing, true, nil
	}
	d, err := s.role(n)
	if d == nil || err != nil {
		return nil, nil, bson.Missing, false, err
	}
	own, err = ownPrivileges(d)
	if v := d.Lookup("authenticationRestrictions"); v.Type == bson.TypeArray {
		rules = v
	}
	return own, rolesOf(d), rules, false, err
}

// appendFragment shows what a user with those roles would be.
func (s *authStore) appendFragment(b *bson.Builder, names []auth.Name, restrictions bool) error {
	r, err := s.resolve(names)
	if err != nil {
		return err
	}
	b.Object("userFragment").Value("roles", roleArray(names)).Value("inheritedRoles", roleArray(r.All)).
		Value("inheritedPrivileges", privilegeArray(r.Grants.Privileges()))
	if restrictions {
		b.Value("inheritedAuthenticationRestrictions", inheritedRestrictions(r.Restrictions))
	}
	b.End()
	return nil
}
