package command

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// whom is what usersInfo and rolesInfo ask for: some by their names, all of the database, or all.
type whom struct {
	names     []auth.Name
	exact     bool
	allOfDB   bool
	allOfEach bool
}

// readWhom reads the command's first argument; kind is "user" or "role".
func (op *Op) readWhom(kind string) (w whom) {
	a := op.Args
	v := a.Value(op.Name())
	one := func(v bson.Value) {
		n, err := readName(kind, op.DB, v)
		if err != nil {
			a.Fail(err)
		}
		if !slices.Contains(w.names, n) {
			w.names = append(w.names, n)
		}
	}
	switch {
	case v.IsNumber() && isOne(v):
		w.allOfDB = true
	case v.Type == bson.TypeObject && kind == "user" && v.Doc().FirstKey() == "forAllDBs":
		if w.allOfEach = v.Doc().Lookup("forAllDBs").Truthy() && v.Doc().Count() == 1; !w.allOfEach {
			a.Fail(mongoerr.New(mongoerr.BadValue, "UserName contains an unknown field named: 'forAllDBs"))
		}
	case v.Type == bson.TypeArray:
		w.exact = true
		n := 0
		for it := v.Doc().Iter(); it.Next() && a.Err() == nil; n++ {
			if n == maxNamed {
				a.Fail(mongoerr.New(mongoerr.BadValue, "%s may name %d at most", a.path, maxNamed))
			}
			one(it.Value())
		}
		if n == 0 {
			a.Fail(mongoerr.New(mongoerr.BadValue, "$and/$or/$nor must be a nonempty array"))
		}
	default:
		w.exact = true
		one(v)
	}
	return w
}

func isOne(v bson.Value) bool {
	n, exact := v.AsInt64()
	return exact && n == 1
}

// usersShown is how usersInfo shows users.
type usersShown struct {
	credentials, privileges, restrictions, custom bool
}

func usersInfo(op *Op) (bson.Doc, error) {
	a := op.Args
	w := op.readWhom("user")
	show := usersShown{credentials: a.SafeBool("showCredentials", false), privileges: a.SafeBool("showPrivileges", false),
		restrictions: a.SafeBool("showAuthenticationRestrictions", false), custom: a.SafeBool("showCustomData", true)}
	filter := a.Doc("filter")
	a.Ignore("authenticatedMechanism")
	if err := a.Done(); err != nil {
		return nil, err
	}
	detailed := show.privileges || show.restrictions
	if detailed && (filter != nil || !w.exact) {
		return nil, mongoerr.New(mongoerr.IllegalOperation, "Privilege or restriction details require exact-match usersInfo queries")
	}
	match := func(bson.Doc) (bool, error) { return true, nil }
	if filter != nil {
		var err error
		if match, err = op.Query.Filter(op.Ctx, filter, op.call()); err != nil {
			return nil, err
		}
	}
	var shown []bson.Value
	err := op.readAuth(func(s *authStore) error {
		users, err := s.users(w)
		for _, u := range users {
			if err != nil {
				return err
			}
			doc := show.plain(u)
			if detailed {
				doc, err = s.detailed(u, show)
			}
			ok := false
			if err == nil {
				ok, err = match(doc)
			}
			if ok {
				shown = append(shown, doc.Value())
			}
		}
		return err
	})
	return bson.Build().Value("users", bson.ArrayOf(shown...)).Doc(), err
}

// users are the documents of those, by name and database.
func (s *authStore) users(w whom) (docs []bson.Doc, err error) {
	if !w.exact {
		wanted := ofDatabase(s.op.DB)
		if w.allOfEach {
			wanted = func(bson.Doc) bool { return true }
		}
		docs, err = s.all(auth.UsersNS(), wanted)
	}
	for _, n := range w.names {
		d, err := s.user(n)
		if err != nil {
			return nil, err
		}
		if d != nil {
			docs = append(docs, d)
		}
	}
	slices.SortStableFunc(docs, func(a, b bson.Doc) int {
		return strings.Compare(text(a, "user")+"\x00"+text(a, "db"), text(b, "user")+"\x00"+text(b, "db"))
	})
	return docs, err
}

// text is a field that is a string, "" where it is none.
func text(d bson.Doc, key string) string {
	if v := d.Lookup(key); v.Type == bson.TypeString {
		return v.Str()
	}
	return ""
}

func mechanismsOf(user bson.Doc) bson.Value {
	var names []bson.Value
	if v := user.Lookup("credentials"); v.Type == bson.TypeObject {
		for it := v.Doc().Iter(); it.Next(); {
			names = append(names, bson.String(it.Key()))
		}
	}
	return bson.ArrayOf(names...)
}

// plain shows a user as it is stored, but for what nobody asked for.
func (show *usersShown) plain(user bson.Doc) bson.Doc {
	b := bson.Build()
	for it := user.Iter(); it.Next(); {
		switch it.Key() {
		case "authenticationRestrictions":
		case "credentials":
			if show.credentials {
				b.Value(it.Key(), it.Value())
			}
		case "customData":
			if show.custom {
				b.Value(it.Key(), it.Value())
			}
		default:
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Value("mechanisms", mechanismsOf(user)).Doc()
}

// detailed shows a user with all that it inherits.
func (s *authStore) detailed(user bson.Doc, show usersShown) (bson.Doc, error) {
	r, err := s.resolve(rolesOf(user))
	if err != nil {
		return nil, err
	}
	b := bson.Build()
	for _, key := range []string{"_id", "userId", "user", "db"} {
		if v := user.Lookup(key); !v.IsMissing() {
			b.Value(key, v)
		}
	}
	b.Value("mechanisms", mechanismsOf(user))
	if v := user.Lookup("credentials"); show.credentials && !v.IsMissing() {
		b.Value("credentials", v)
	}
	b.Value("roles", user.Lookup("roles"))
	if v := user.Lookup("customData"); show.custom && !v.IsMissing() {
		b.Value("customData", v)
	}
	b.Value("inheritedRoles", roleArray(r.All)).Value("inheritedPrivileges", privilegeArray(r.Grants.Privileges()))
	b.Value("inheritedAuthenticationRestrictions", inheritedRestrictions(r.Restrictions))
	if show.restrictions {
		own := user.Lookup("authenticationRestrictions")
		if own.IsMissing() {
			own = bson.ArrayOf()
		}
		b.Value("authenticationRestrictions", own)
	}
	return b.Doc(), nil
}

func privilegeArray(ps []privilege.Privilege) bson.Value {
	vs := make([]bson.Value, len(ps))
	for i, p := range ps {
		vs[i] = p.Doc().Value()
	}
	return bson.ArrayOf(vs...)
}

func inheritedRestrictions(rs []auth.Restrictions) bson.Value {
	vs := make([]bson.Value, len(rs))
	for i, r := range rs {
		vs[i] = r.Value()
	}
	return bson.ArrayOf(vs...)
}
