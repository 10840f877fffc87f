package auth

import (
	"strings"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// storedUser is a document of system.users, and storedRole one of system.roles. What other servers keep there beside is passed over.
type storedUser struct {
	name         Name
	id           [16]byte
	credentials  bson.Doc
	roles        []Name
	restrictions Restrictions
}

type storedRole struct {
	roles        []Name
	privileges   []privilege.Privilege
	restrictions Restrictions
}

func readUser(d bson.Doc) (u storedUser, err error) {
	if u.name, err = storedName(d, "user"); err != nil {
		return u, err
	}
	if v := d.Lookup("userId"); v.Type == bson.TypeBinary {
		_, data := v.Binary()
		copy(u.id[:], data)
	}
	if v := d.Lookup("credentials"); v.Type == bson.TypeObject {
		u.credentials = v.Doc().Clone()
	}
	if u.roles, err = storedRoles(d); err != nil {
		return u, err
	}
	u.restrictions, err = storedRestrictions(d)
	return u, err
}

// readRole reads all of a role but its restrictions.
func readRole(d bson.Doc) (r storedRole, err error) {
	if r.roles, err = storedRoles(d); err != nil {
		return r, err
	}
	if v := d.Lookup("privileges"); v.Type == bson.TypeArray {
		for it := v.Doc().Iter(); it.Next(); {
			if it.Value().Type != bson.TypeObject {
				return r, broken("privileges")
			}
			p, _, err := privilege.Parse("privileges", it.Value().Doc())
			if err != nil {
				return r, err
			}
			r.privileges = append(r.privileges, p)
		}
	}
	return r, nil
}

func storedName(d bson.Doc, key string) (Name, error) {
	name, db := d.Lookup(key), d.Lookup("db")
	if name.Type != bson.TypeString || db.Type != bson.TypeString {
		return Name{}, broken(key)
	}
	return Name{strings.Clone(name.Str()), strings.Clone(db.Str())}, nil
}

func storedRoles(d bson.Doc) (names []Name, err error) {
	list := d.Lookup("roles")
	if list.Type != bson.TypeArray {
		return nil, broken("roles")
	}
	for it := list.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			return nil, broken("roles")
		}
		n, err := storedName(it.Value().Doc(), "role")
		if err != nil {
			return nil, err
		}
		names = append(names, n)
	}
	return names, nil
}

func storedRestrictions(d bson.Doc) (Restrictions, error) {
	v := d.Lookup("authenticationRestrictions")
	switch v.Type {
	case bson.TypeMissing:
		return nil, nil
	case bson.TypeArray:
		return ParseRestrictions("authenticationRestrictions", v.Doc())
	}
	return nil, broken("authenticationRestrictions") // who cannot be checked is not let in
}

func broken(field string) error {
	return mongoerr.New(mongoerr.UnsupportedFormat, "Invalid or missing field '%s' in the stored document", field)
}
