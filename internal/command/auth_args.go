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

// maxNamed is how many users, roles or privileges one command may name.
const maxNamed = 10_000

// ownName is the name that the command's first argument gives.
func (op *Op) ownName() auth.Name {
	name, _ := op.Args.typed(op.Name(), bson.TypeString)
	if name.Type != bson.TypeString {
		return auth.Name{DB: op.DB}
	}
	return auth.Name{Name: strings.Clone(name.Str()), DB: strings.Clone(op.DB)}
}

// roleNames reads an array of names, each a string (of the command's database) or {role, db}; ok is false where it is missing.
func (op *Op) roleNames(key string) (names []auth.Name, ok bool) {
	a := op.Args
	list := a.Array(key)
	if list == nil {
		return nil, false
	}
	seen := map[auth.Name]bool{}
	for it := list.Iter(); it.Next(); {
		n, err := readName("role", op.DB, it.Value())
		if t := it.Value().Type; t != bson.TypeString && t != bson.TypeObject {
			err = mongoerr.New(mongoerr.BadValue, "Role name must be either a document or string")
		}
		if err != nil {
			a.Fail(err)
			return nil, true
		}
		if !seen[n] {
			seen[n] = true
			names = append(names, n)
		}
		if len(names) > maxNamed {
			a.Fail(mongoerr.New(mongoerr.BadValue, "'%s' may name %d roles at most", key, maxNamed))
			return nil, true
		}
	}
	return names, true
}

// readName reads a name; kind is "user" or "role". Besides a role's name a document may say anything: manuals have {role, db, collection: ""}.
func readName(kind, db string, v bson.Value) (n auth.Name, err error) {
	switch v.Type {
	case bson.TypeString:
		n = auth.Name{Name: strings.Clone(v.Str()), DB: strings.Clone(db)}
	case bson.TypeObject:
		if n, err = readNameDocument(kind, v.Doc()); err != nil {
			return n, err
		}
	default:
		return n, mongoerr.New(mongoerr.BadValue, "%s must be either a string or an object", nameType(kind))
	}
	if strings.Contains(n.DB, "\x00") || strings.Contains(n.Name, "\x00") {
		return n, mongoerr.New(mongoerr.BadValue, "User and role names cannot contain NULL characters")
	}
	return n, nil
}

// nameType is what messages call such a name.
func nameType(kind string) string {
	if kind == "user" {
		return "UserName"
	}
	return "RoleName"
}

func readNameDocument(kind string, d bson.Doc) (n auth.Name, err error) {
	named := nameType(kind)
	read := map[string]string{}
	for it := d.Iter(); it.Next(); {
		key, v := it.Key(), it.Value()
		_, again := read[key]
		switch {
		case key != kind && key != "db" && kind == "role":
		case key != kind && key != "db":
			return n, mongoerr.New(mongoerr.BadValue, "%s contains an unknown field named: '%s", named, key)
		case v.Type != bson.TypeString:
			return n, mongoerr.New(mongoerr.BadValue, "%s must contain a string field named: %s. But, has type %s", named, key, v.Type)
		case again:
			return n, mongoerr.New(mongoerr.BadValue, "%s has more than one field named: %s", named, key)
		default:
			read[key] = v.Str()
		}
	}
	for _, key := range []string{kind, "db"} {
		if _, given := read[key]; !given {
			return n, mongoerr.New(mongoerr.BadValue, "%s must contain a field named: %s", named, key)
		}
	}
	return auth.Name{Name: strings.Clone(read[kind]), DB: strings.Clone(read["db"])}, nil
}

// privileges reads the field of that name; ok is false where it is missing. What is said of one resource comes together.
func (op *Op) privileges() (ps []privilege.Privilege, ok bool) {
	a := op.Args
	list := a.Array("privileges")
	if list == nil {
		return nil, false
	}
	var g privilege.Grants
	var unknown []string
	n := 0
	for it := list.Iter(); it.Next(); n++ {
		path := a.path + ".privileges." + it.Key()
		if it.Value().Type != bson.TypeObject || n == maxNamed {
			a.Fail(mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected type 'object'", path, it.Value().Type))
			return nil, true
		}
		p, strange, err := privilege.Parse(path, it.Value().Doc())
		if err == nil {
			err = p.Resource.Check()
		}
		if err != nil {
			a.Fail(err)
			return nil, true
		}
		unknown = append(unknown, strange...)
		g.Add(p)
	}
	if len(unknown) > 0 {
		a.Fail(mongoerr.New(mongoerr.FailedToParse, "Unrecognized action privilege strings: %s", strings.Join(unknown[:min(len(unknown), 20)], ", ")))
	}
	return g.Privileges(), true
}

// restrictions reads authenticationRestrictions as they are stored: missing where they are, and where there are none.
func (op *Op) restrictions() (stored bson.Value, given bool) {
	a := op.Args
	list := a.Array("authenticationRestrictions")
	if list == nil {
		return bson.Missing, false
	}
	rs, err := auth.ParseRestrictions(a.path+".authenticationRestrictions", list)
	if err != nil {
		a.Fail(err)
	}
	if len(rs) == 0 {
		return bson.Missing, true
	}
	return list.ArrayValue(), true
}

func (s *authStore) hasRole(n auth.Name) (bool, error) {
	if role.IsBuiltin(n.Name, n.DB) {
		return true, nil
	}
	d, err := s.role(n)
	return d != nil, err
}

// rolesOf are those that a stored document names.
func rolesOf(d bson.Doc) (names []auth.Name) {
	list := d.Lookup("roles")
	if list.Type != bson.TypeArray {
		return nil
	}
	for it := list.Doc().Iter(); it.Next(); {
		if n, err := readName("role", "", it.Value()); err == nil {
			names = append(names, n)
		}
	}
	return names
}

// adding are names with others, each once.
func adding(names, others []auth.Name) []auth.Name {
	for _, n := range others {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// removing are names without others.
func removing(names, others []auth.Name) []auth.Name {
	return slices.DeleteFunc(names, func(n auth.Name) bool { return slices.Contains(others, n) })
}
