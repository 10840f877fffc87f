// Package auth is who somebody is, and what they may do: users, their roles, and the privileges that come of them. It reads
// them where they are stored, and knows neither connections nor which command needs what.
package auth

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
)

// Name is the name of a user or of a role: unique within the database that it is of.
type Name struct{ Name, DB string }

// String is "name@db".
func (n Name) String() string { return n.Name + "@" + n.DB }

// User is a user as it stood when somebody looked. It does not change.
type User struct {
	Name
	// Credentials is what a login is held against, as it is stored: a field a mechanism.
	Credentials bson.Doc
	// Roles are those that the user was granted; All are these and what they inherit.
	Roles, All []Name
	// Grants is what all of that allows.
	Grants *privilege.Grants
}
