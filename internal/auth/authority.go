package auth

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/auth/role"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
	"github.com/ebbdb/ebb/internal/storage"
)

// Version changes whenever users or roles have changed, whoever has changed them.
type Version struct{ users, roles storage.Changes }

// Authority knows the users and roles of a server. It reads them where they are stored, and keeps what it has found until they
// change.
type Authority struct {
	// Warn is told what is wrong with what is stored; nil: nobody is. It is set before anybody asks.
	Warn   func(error)
	engine *query.Engine
	mu     struct {
		sync.Mutex // guards what was found of users when they were as version says
		version    Version
		users      map[Name]*User
	}
}

// maxCached is how many users are kept at once.
const maxCached = 10_000

// maxCachedName is how long a name may be to be kept, in bytes: anybody may ask for any.
const maxCachedName = 256

// maxRoles is how many roles a user can have, inherited ones among them.
const maxRoles = 10_000

// New returns the Authority over what an engine stores.
func New(engine *query.Engine) *Authority {
	a := &Authority{engine: engine}
	a.mu.users = map[Name]*User{}
	return a
}

// Version is how users and roles stand.
func (a *Authority) Version() Version {
	return Version{a.engine.Store.Changes(UsersNS()), a.engine.Store.Changes(RolesNS())}
}

// Find is a user; UserNotFound where there is none.
func (a *Authority) Find(ctx context.Context, name Name) (*User, error) {
	now := a.Version() // before anything is read: what changes meanwhile has another one
	if u, known := a.cached(name, now); known {
		if u == nil {
			return nil, notFound(name)
		}
		return u, nil
	}
	name = name.clone()
	u, err := a.load(ctx, name, now)
	if err == nil || mongoerr.Is(err, mongoerr.UserNotFound) {
		a.cache(name, u, now)
	}
	return u, err
}

// cached is what was found of a user, which is nil where there was none: so it takes as long to find nobody as to find somebody.
func (a *Authority) cached(name Name, now Version) (u *User, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.version != now {
		a.mu.version = now
		clear(a.mu.users)
	}
	u, known = a.mu.users[name]
	return u, known
}

func (a *Authority) cache(name Name, u *User, now Version) {
	if len(name.Name)+len(name.DB) > maxCachedName {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.version != now {
		return
	}
	if len(a.mu.users) >= maxCached {
		clear(a.mu.users)
	}
	a.mu.users[name] = u
}

// Forget has all users be read anew.
func (a *Authority) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.mu.users)
}

// HasUsers says whether there are any users.
func (a *Authority) HasUsers(ctx context.Context) (bool, error) { return a.hasAny(ctx, UsersNS()) }

// HasRoles says whether somebody has defined roles.
func (a *Authority) HasRoles(ctx context.Context) (bool, error) { return a.hasAny(ctx, RolesNS()) }

func (a *Authority) hasAny(ctx context.Context, ns namespace.NS) (bool, error) {
	doc, err := a.engine.AnySetting(ctx, ns)
	return doc != nil, err
}

// Now is the user as it stands now, which is u itself where nothing has changed. A user that was dropped is UserNotFound, even where
// there is another one of its name.
func (a *Authority) Now(ctx context.Context, u *User) (*User, error) {
	if u.IsInternal() || u.version == a.Version() {
		return u, nil
	}
	if u.vouched {
		return a.Vouched(ctx, u.Name, u.Roles)
	}
	now, err := a.Find(ctx, u.Name)
	if err == nil && now.ID != u.ID {
		err = notFound(u.Name)
	}
	return now, err
}

// Vouched is a user that is stored nowhere, and whose roles somebody vouches for, as the authority of a certificate does.
func (a *Authority) Vouched(ctx context.Context, name Name, roles []Name) (*User, error) {
	return a.complete(ctx, &User{Name: name.clone(), Roles: roles, version: a.Version(), vouched: true})
}

// complete gives a new user what its roles come to.
func (a *Authority) complete(ctx context.Context, u *User) (*User, error) {
	r, err := Resolve(u.Roles, a.storedRole(ctx))
	for _, why := range r.Unreadable {
		if a.Warn != nil {
			a.Warn(why)
		}
	}
	if err != nil {
		return nil, err
	}
	u.All, u.RolesValue, u.Grants = r.All, rolesValue(r.All), r.Grants
	u.Restrictions = append(u.Restrictions, r.Restrictions...)
	return u, nil
}

// storedRole finds the document of a role.
func (a *Authority) storedRole(ctx context.Context) func(Name) (bson.Doc, error) {
	return func(n Name) (bson.Doc, error) { return a.engine.StoredSetting(ctx, RolesNS(), bson.String(n.ID())) }
}

// Internal is the user that members of a replica set are to one another: it may do everything.
func Internal() *User {
	g, _ := role.Builtin("__system", "admin")
	n := []Name{{"__system", "admin"}}
	return &User{Name: Name{"__system", "local"}, Roles: n, All: n, RolesValue: rolesValue(n), Grants: g}
}

// IsInternal says whether u is that one.
func (u *User) IsInternal() bool { return u.Name.IsInternal() }

// IsInternal says whether it is that user's.
func (n Name) IsInternal() bool { return n == Name{"__system", "local"} }

func notFound(name Name) error {
	return mongoerr.New(mongoerr.UserNotFound, "Could not find user \"%s\" for db \"%s\"", name.Name, name.DB)
}

// load reads a user, and what its roles allow.
func (a *Authority) load(ctx context.Context, name Name, now Version) (*User, error) {
	doc, err := a.engine.StoredSetting(ctx, UsersNS(), bson.String(name.ID()))
	if err != nil {
		return nil, err
	}
	if doc == nil {
		return nil, notFound(name)
	}
	s, err := readUser(doc)
	if err != nil {
		return nil, err
	}
	if s.name != name {
		return nil, notFound(name)
	}
	u := &User{Name: name, ID: s.id, Credentials: s.credentials, Roles: s.roles, version: now}
	if len(s.restrictions) > 0 {
		u.Restrictions = []Restrictions{s.restrictions}
	}
	return a.complete(ctx, u)
}

// Resolved is what roles come to.
type Resolved struct {
	// All are the roles and those that they inherit, by database and name.
	All          []Name
	Grants       *privilege.Grants
	Restrictions []Restrictions
	// Unreadable says of roles that cannot be read why: they allow nothing.
	Unreadable []error
}

// Resolve follows roles through what they inherit. Roles that are not there allow nothing; circles end. stored is the document of
// a role, nil for none.
func Resolve(roles []Name, stored func(Name) (bson.Doc, error)) (Resolved, error) {
	r := Resolved{Grants: &privilege.Grants{}}
	seen := map[Name]bool{}
	for queue := slices.Clone(roles); len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		if seen[n] {
			continue
		}
		if seen[n] = true; len(seen) > maxRoles {
			return r, mongoerr.New(mongoerr.BadValue, "a user or role cannot have more than %d roles", maxRoles)
		}
		if g, ok := role.Builtin(n.Name, n.DB); ok {
			r.All = append(r.All, n)
			for _, p := range g.Privileges() {
				r.Grants.Add(p)
			}
			continue
		}
		doc, err := stored(n)
		if err != nil {
			return r, err
		}
		if doc == nil {
			continue
		}
		s, err := readRole(doc)
		if err != nil {
			r.Unreadable = append(r.Unreadable, fmt.Errorf("%s: %w", n, err))
			continue
		}
		if s.restrictions, err = storedRestrictions(doc); err != nil {
			return r, err // who cannot be checked is not let in
		}
		r.All = append(r.All, n)
		for _, p := range s.privileges {
			r.Grants.Add(p)
		}
		if len(s.restrictions) > 0 {
			r.Restrictions = append(r.Restrictions, s.restrictions)
		}
		queue = append(queue, s.roles...)
	}
	slices.SortFunc(r.All, CompareNames)
	return r, nil
}
