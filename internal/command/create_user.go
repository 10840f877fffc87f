package command

import (
	"strings"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/scram"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/session"
)

func userCommands() []*Command {
	secret := []string{"pwd"}
	userField := knows("digestPassword", "customData", "roles", "authenticationRestrictions", "mechanisms")
	return []*Command{
		{Name: "createUser", Doc: "Makes a user.", WriteConcern: true, Sensitive: secret, Known: userField, Needs: Needs{Also: needsCreateUser}, Audited: auditedCreateUser, Run: createUser},
		{Name: "updateUser", Doc: "Changes a user.", WriteConcern: true, Sensitive: secret, Known: userField, Needs: Needs{Also: needsUpdateUser}, Audited: auditedUpdateUser, Run: updateUser},
		{Name: "dropUser", Doc: "Removes a user.", WriteConcern: true, Needs: Needs{Also: needsDropUser}, Audited: auditedUser, Run: dropUser},
		{Name: "dropAllUsersFromDatabase", Doc: "Removes all users of a database.", WriteConcern: true, Needs: Needs{Also: needsDropUser}, Audited: auditedDB, Run: dropAllUsers},
		{Name: "grantRolesToUser", Doc: "Grants roles to a user.", WriteConcern: true, Needs: Needs{Also: needsGrantRoles}, Audited: auditedUser, Run: grantRolesToUser},
		{Name: "revokeRolesFromUser", Doc: "Takes roles away from a user.", WriteConcern: true, Needs: Needs{Also: needsRevokeRoles}, Audited: auditedUser, Run: revokeRolesFromUser},
		{Name: "usersInfo", Doc: "Tells of users.", Needs: Needs{Also: needsUsersInfo}, Run: usersInfo},
	}
}

// externalDB is the database of the users whom others vouch for: a certificate authority, a directory.
const externalDB = "$external"

// userFields is what createUser and updateUser may say of a user.
type userFields struct {
	pwd          string
	hasPwd       bool
	digested     bool
	custom       bson.Doc
	roles        []auth.Name
	hasRoles     bool
	restrictions bson.Value
	restricts    bool
	mechanisms   []string
	hasMechs     bool
}

func (op *Op) userFields() (f userFields) {
	a := op.Args
	pwd, given := a.String("pwd")
	f.pwd, f.hasPwd = pwd, given
	f.digested = !a.SafeBool("digestPassword", true)
	f.custom = a.Doc("customData")
	f.roles, f.hasRoles = op.roleNames("roles")
	f.restrictions, f.restricts = op.restrictions()
	if list := a.Array("mechanisms"); list != nil {
		f.hasMechs = true
		for it := list.Iter(); it.Next(); {
			if it.Value().Type != bson.TypeString {
				a.Fail(a.wrongType("mechanisms."+it.Key(), it.Value().Type, []bson.Type{bson.TypeString}))
				break
			}
			f.mechanisms = append(f.mechanisms, it.Value().Str())
		}
	}
	return f
}

func createUser(op *Op) (bson.Doc, error) {
	name := op.ownName()
	f := op.userFields()
	op.Args.Required("roles")
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	if err := f.checkNew(name); err != nil {
		return nil, err
	}
	if name.DB == externalDB && op.separatesMembers() && op.Certificates.IsMemberName(name.Name) {
		return nil, mongoerr.New(mongoerr.BadValue, "Cannot create an x.509 user with a subjectname that would be recognized as an internal cluster member")
	}
	credentials, err := op.credentials(name, f)
	if err != nil {
		return nil, err
	}
	id := session.NewID()
	b := bson.Build().String("_id", name.ID()).Binary("userId", 4, id[:]).String("user", name.Name).String("db", name.DB).Document("credentials", credentials)
	if !f.restrictions.IsMissing() {
		b.Value("authenticationRestrictions", f.restrictions)
	}
	if f.custom != nil {
		b.Document("customData", f.custom)
	}
	doc := b.Value("roles", roleArray(f.roles)).Doc()
	if err := op.ensureAuthCollection(auth.UsersNS(), "user"); err != nil {
		return nil, err
	}
	return bson.EmptyDoc, op.changeAuth(func(s *authStore) error {
		if err := s.checkRoles(f.roles); err != nil {
			return err
		}
		return s.insert(auth.UsersNS(), doc, mongoerr.New(51003, "User \"%s\" already exists", name))
	})
}

// checkNew refuses what no new user may be.
func (f *userFields) checkNew(name auth.Name) error {
	bad := func(format string, args ...any) error { return mongoerr.New(mongoerr.BadValue, format, args...) }
	external := name.DB == externalDB
	switch {
	case name.DB == "local":
		return bad("Cannot create users in the local database")
	case strings.Contains(name.Name, "\x00"):
		return bad("Username cannot contain NULL characters")
	case !f.hasPwd && !external:
		return bad("Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db")
	case f.hasPwd && external:
		return bad("Cannot set the password for users defined on the '$external' database")
	case f.hasMechs && len(f.mechanisms) == 0:
		return bad("mechanisms field must not be empty")
	case name.Name == "":
		return bad("User document needs 'user' field to be non-empty")
	}
	return nil
}

// credentials are what logins of the user are held against.
func (op *Op) credentials(name auth.Name, f userFields) (bson.Doc, error) {
	if !f.hasPwd {
		return bson.Build().Bool("external", true).Doc(), nil
	}
	if f.pwd == "" {
		return nil, mongoerr.New(mongoerr.BadValue, "Password cannot be empty")
	}
	mechanisms, err := f.mechanismSet()
	if err != nil {
		return nil, err
	}
	b := bson.Build()
	for _, m := range scram.Mechanisms() {
		if !mechanisms[m] {
			continue
		}
		var made bson.Doc
		err := op.hash(op.Ctx, func() (err error) {
			made, err = op.makeCredentials(m, name, f)
			return err
		})
		if err != nil {
			return nil, err
		}
		b.Document(m, made)
	}
	return b.Doc(), nil
}

func (op *Op) makeCredentials(mechanism string, name auth.Name, f userFields) (bson.Doc, error) {
	switch {
	case mechanism == scram.SHA256 && f.digested:
		return nil, mongoerr.New(mongoerr.BadValue, "Use of SCRAM-SHA-256 requires undigested passwords")
	case mechanism == scram.SHA256:
		return scram.Make(mechanism, name.Name, f.pwd, op.iterations(mechanism))
	case f.digested:
		return scram.MakeDigested(f.pwd, op.iterations(mechanism))
	}
	return scram.Make(mechanism, name.Name, f.pwd, op.iterations(mechanism))
}

// mechanismSet is those that the user may log in by: all, unless the command names some.
func (f *userFields) mechanismSet() (map[string]bool, error) {
	set := map[string]bool{}
	if !f.hasMechs {
		for _, m := range scram.Mechanisms() {
			set[m] = true
		}
		return set, nil
	}
	for _, m := range f.mechanisms {
		if !scram.Known(m) {
			return nil, mongoerr.New(mongoerr.BadValue, "Unknown auth mechanism '%s'", m)
		}
		set[m] = true
	}
	return set, nil
}

func updateUser(op *Op) (bson.Doc, error) {
	name := op.ownName()
	f := op.userFields()
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	bad := func(text string) error { return mongoerr.New(mongoerr.BadValue, "%s", text) }
	switch {
	case f.hasMechs && len(f.mechanisms) == 0:
		return nil, bad("mechanisms field must not be empty")
	case f.hasPwd && name.DB == externalDB:
		return nil, bad("Cannot set the password for users defined on the '$external' database")
	case !f.hasPwd && !f.hasMechs && f.custom == nil && !f.hasRoles && !f.restricts:
		return nil, bad("Must specify at least one field to update in updateUser")
	}
	credentials := bson.Doc(nil)
	if f.hasPwd {
		var err error
		if credentials, err = op.credentials(name, f); err != nil {
			return nil, err
		}
	}
	return bson.EmptyDoc, op.changeUser(name, mongoerr.New(mongoerr.UserNotFound, "User %s not found", name), func(s *authStore, old bson.Doc) (bson.Doc, error) {
		return s.updatedUser(old, f, credentials)
	})
}

// changeUser puts what f makes of a user in its place.
func (op *Op) changeUser(name auth.Name, unknown error, f func(s *authStore, old bson.Doc) (bson.Doc, error)) error {
	return op.changeAuth(func(s *authStore) error {
		old, err := s.user(name)
		if err != nil {
			return err
		}
		if old == nil {
			return unknown
		}
		doc, err := f(s, old)
		if err != nil {
			return err
		}
		return s.replace(auth.UsersNS(), doc)
	})
}

func (s *authStore) updatedUser(old bson.Doc, f userFields, credentials bson.Doc) (bson.Doc, error) {
	var change []field
	switch {
	case credentials != nil:
		change = append(change, field{"credentials", credentials.Value()})
	case f.hasMechs:
		trimmed, err := trimCredentials(old, f.mechanisms)
		if err != nil {
			return nil, err
		}
		change = append(change, field{"credentials", trimmed.Value()})
	}
	if f.custom != nil {
		change = append(change, field{"customData", f.custom.Value()})
	}
	if f.restricts {
		change = append(change, field{"authenticationRestrictions", f.restrictions})
	}
	if f.hasRoles {
		if err := s.checkRoles(f.roles); err != nil {
			return nil, err
		}
		change = append(change, field{"roles", roleArray(f.roles)})
	}
	return with(old, change...), nil
}

// trimCredentials leaves those of the mechanisms alone; each must be there.
func trimCredentials(user bson.Doc, mechanisms []string) (bson.Doc, error) {
	have := bson.EmptyDoc
	if v := user.Lookup("credentials"); v.Type == bson.TypeObject {
		have = v.Doc()
	}
	wanted := map[string]bool{}
	for _, m := range mechanisms {
		if have.Lookup(m).IsMissing() {
			return nil, mongoerr.New(mongoerr.BadValue, "mechanisms field must be a subset of previously set mechanisms")
		}
		wanted[m] = true
	}
	b := bson.Build()
	for it := have.Iter(); it.Next(); {
		if wanted[it.Key()] {
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Doc(), nil
}

func dropUser(op *Op) (bson.Doc, error) {
	name := op.ownName()
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	return bson.EmptyDoc, op.changeAuth(func(s *authStore) error {
		doc, err := s.user(name)
		if err != nil {
			return err
		}
		if doc == nil {
			return mongoerr.New(mongoerr.UserNotFound, "User '%s' not found", name)
		}
		return s.remove(auth.UsersNS(), doc.Lookup("_id"))
	})
}

func dropAllUsers(op *Op) (bson.Doc, error) {
	op.Args.Ignore(op.Name())
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	n := 0
	err := op.changeAuth(func(s *authStore) error {
		docs, err := s.all(auth.UsersNS(), ofDatabase(op.DB))
		for _, d := range docs {
			if err == nil {
				err = s.remove(auth.UsersNS(), d.Lookup("_id"))
			}
		}
		n = len(docs)
		return err
	})
	return bson.Build().Int32("n", int32(n)).Doc(), err
}

func grantRolesToUser(op *Op) (bson.Doc, error) { return op.changeRolesOfUser(adding) }

func revokeRolesFromUser(op *Op) (bson.Doc, error) { return op.changeRolesOfUser(removing) }

func (op *Op) changeRolesOfUser(change func(have, roles []auth.Name) []auth.Name) (bson.Doc, error) {
	name := op.ownName()
	roles, err := op.someRoles()
	if err != nil {
		return nil, err
	}
	unknown := mongoerr.New(mongoerr.UserNotFound, "Could not find user \"%s\" for db \"%s\"", name.Name, name.DB)
	return bson.EmptyDoc, op.changeUser(name, unknown, func(s *authStore, old bson.Doc) (bson.Doc, error) {
		if err := s.checkRoles(roles); err != nil {
			return nil, err
		}
		return with(old, field{"roles", roleArray(change(rolesOf(old), roles))}), nil
	})
}

// someRoles reads the field roles, which must have some.
func (op *Op) someRoles() ([]auth.Name, error) {
	roles, _ := op.roleNames("roles")
	op.Args.Required("roles")
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	if len(roles) == 0 {
		return nil, mongoerr.New(mongoerr.BadValue, "%s command requires a non-empty \"roles\" array", op.Command.Name)
	}
	return roles, nil
}
