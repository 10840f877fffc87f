package command

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

func authStoreCommands() []*Command {
	return []*Command{
		{Name: "invalidateUserCache", Doc: "Has users and roles be read anew.",
			Needs: Needs{OnCluster: []privilege.Action{privilege.InvalidateUserCache}}, Run: invalidateUserCache},
		{Name: "_getUserCacheGeneration", Doc: "Tells whether users and roles are as they were.", AdminOnly: true,
			Needs: Needs{OnCluster: []privilege.Action{privilege.Internal}}, Run: getUserCacheGeneration},
		{Name: "_mergeAuthzCollections", Doc: "Adds users and roles that mongorestore has brought, or puts them in the place of others.", AdminOnly: true, WriteConcern: true,
			Needs: Needs{Also: needsMergeAuth}, Run: mergeAuth},
	}
}

func invalidateUserCache(op *Op) (bson.Doc, error) {
	op.Args.Ignore(op.Name())
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	op.Users.Forget()
	return bson.EmptyDoc, nil
}

// getUserCacheGeneration answers with an ObjectId that is the same as long as users and roles are.
func getUserCacheGeneration(op *Op) (bson.Doc, error) {
	if err := op.noArguments(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(fmt.Append(op.processID[:], op.Users.Version()))
	return bson.Build().ObjectID("cacheGeneration", [12]byte(sum[:12])).Doc(), nil
}

// needsMergeAuth: whoever restores users and roles may make and remove those of each database, and read where they come from.
func needsMergeAuth(op *Op) error {
	for _, a := range []privilege.Action{privilege.CreateUser, privilege.CreateRole, privilege.GrantRole, privilege.RevokeRole, privilege.DropUser, privilege.DropRole} {
		if !op.May(privilege.AnyNormal(), a) {
			return op.refusal()
		}
	}
	for _, key := range []string{"tempUsersCollection", "tempRolesCollection"} {
		from := text(op.Args.Document(), key)
		if from != "" && !op.May(privilege.Namespace(namespace.Split(from)), privilege.Find) {
			return op.refusal()
		}
	}
	return nil
}

// restoredAuth is one of the two collections into which mongorestore has put users or roles.
type restoredAuth struct {
	from, to namespace.NS
	key      string
}

// mergeAuth moves users and roles out of the collections into which mongorestore has put them. Those that are there stay as they are; with
// drop they are replaced, and those that are not among them go.
func mergeAuth(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Ignore(op.Name())
	users, _ := a.String("tempUsersCollection")
	roles, _ := a.String("tempRolesCollection")
	db, _ := a.String("db")
	a.Required("db", "drop")
	drop := a.SafeBool("drop", false)
	if err := a.Done(); err != nil {
		return nil, err
	}
	if users == "" && roles == "" {
		return nil, mongoerr.New(mongoerr.BadValue, "Must provide at least one of \"tempUsersCollection\" and \"tempRolesCollection\"")
	}
	var parts []restoredAuth
	if users != "" {
		parts = append(parts, restoredAuth{namespace.Split(strings.Clone(users)), auth.UsersNS(), "user"})
	}
	if roles != "" {
		parts = append(parts, restoredAuth{namespace.Split(strings.Clone(roles)), auth.RolesNS(), "role"})
	}
	for _, m := range parts {
		if m.from.DB != "admin" {
			return nil, mongoerr.New(mongoerr.BadValue, "The collections to merge users and roles from must be of the admin database")
		}
		if err := op.ensureAuthCollection(m.to, m.key); err != nil {
			return nil, err
		}
	}
	return bson.EmptyDoc, op.changeAuth(func(s *authStore) error {
		for _, m := range parts {
			if err := s.merge(m, db, drop); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *authStore) merge(m restoredAuth, db string, drop bool) error {
	wanted := func(bson.Doc) bool { return true }
	if db != "" {
		wanted = ofDatabase(db)
	}
	docs, err := s.all(m.from, wanted)
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	for _, d := range docs {
		name := auth.Name{Name: text(d, m.key), DB: text(d, "db")}
		if name.Name == "" || name.DB == "" || text(d, "_id") != name.ID() {
			return mongoerr.New(mongoerr.BadValue, "%s holds a document that is no %s", m.from, m.key)
		}
		kept[name.ID()] = true
		old, err := s.get(m.to, name)
		switch {
		case err != nil:
		case old == nil:
			err = s.insert(m.to, d, nil)
		case drop:
			err = s.replace(m.to, d)
		}
		if err != nil {
			return err
		}
	}
	if !drop {
		return nil
	}
	gone, err := s.all(m.to, func(d bson.Doc) bool { return wanted(d) && !kept[text(d, "_id")] })
	for _, d := range gone {
		if err == nil {
			err = s.remove(m.to, d.Lookup("_id"))
		}
	}
	return err
}
