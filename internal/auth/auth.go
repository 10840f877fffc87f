// Package auth is who somebody is, and what they may do: users, their roles, and the privileges that come of them. It reads
// them where they are stored, and knows neither connections nor which command needs what.
package auth

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
)

// Name is the name of a user or of a role: unique within the database that it is of.
type Name struct{ Name, DB string }

// String is "name@db".
func (n Name) String() string { return n.Name + "@" + n.DB }

// clone is the name in memory of its own: a name that a client sent lies in its message, and goes with that.
func (n Name) clone() Name { return Name{strings.Clone(n.Name), strings.Clone(n.DB)} }

// ID is the _id of the document in which the user or the role is stored.
func (n Name) ID() string { return n.DB + "." + n.Name }

// UsersNS is where users are stored.
func UsersNS() namespace.NS { return namespace.NS{DB: "admin", Coll: "system.users"} }

// RolesNS is where the roles that somebody has defined are stored.
func RolesNS() namespace.NS { return namespace.NS{DB: "admin", Coll: "system.roles"} }

// User is a user as it stood when somebody looked. It does not change.
type User struct {
	Name
	// ID is the UUID that the user got when it was created: another user of the same name has another one.
	ID [16]byte
	// Credentials is what a login is held against, as it is stored: a field a mechanism.
	Credentials bson.Doc
	// Roles are those that the user was granted; All are these and what they inherit.
	Roles, All []Name
	// RolesValue is All as the variable $$USER_ROLES tells of it.
	RolesValue bson.Value
	// Grants is what all of that allows.
	Grants *privilege.Grants
	// Restrictions say from where the user may be used; all must be met.
	Restrictions []Restrictions

	version Version
	// vouched is a user that is stored nowhere: see Authority.Vouched.
	vouched bool
}

// CompareNames orders names by database and name.
func CompareNames(a, b Name) int {
	return cmp.Or(strings.Compare(a.DB, b.DB), strings.Compare(a.Name, b.Name))
}

// AllowedFrom says whether the user may be used by somebody from one address at another.
func (u *User) AllowedFrom(client, server netip.Addr) bool {
	for _, r := range u.Restrictions {
		if !r.Allow(client, server) {
			return false
		}
	}
	return true
}

// rolesValue is the value of $$USER_ROLES for a user with these roles.
func rolesValue(all []Name) bson.Value {
	b := bson.Build()
	for i, r := range all {
		b.Object(bson.IndexKey(i)).String("_id", r.ID()).String("role", r.Name).String("db", r.DB).End()
	}
	return b.Doc().ArrayValue()
}

// HasRole says whether the user has the role, be it by inheritance.
func (u *User) HasRole(n Name) bool { return slices.Contains(u.All, n) }
