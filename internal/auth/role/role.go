// Package role is the roles that every server has, and what they allow. It knows nothing of users, nor of the roles that
// somebody has defined.
package role

import (
	"slices"

	"github.com/ebbdb/ebb/internal/auth/privilege"
)

// grant is actions on what lies within the database that a role is of.
type grant struct {
	on      func(db string) privilege.Resource
	actions []privilege.Action
}

// builtin is one row.
type builtin struct {
	name string
	// adminOnly roles are of the admin database alone; the others are of each.
	adminOnly bool
	// inherits are roles of the same database, and elsewhere those of others.
	inherits  []string
	elsewhere []inherited
	grants    []grant
}

type inherited struct{ name, db string }

// Builtin is what the built-in role of a database allows; ok is false where there is no such role.
func Builtin(name, db string) (g *privilege.Grants, ok bool) {
	b := find(name, db)
	if b == nil {
		return nil, false
	}
	g = &privilege.Grants{}
	b.add(g, db)
	return g, true
}

// IsBuiltin says whether a database has the built-in role.
func IsBuiltin(name, db string) bool { return find(name, db) != nil }

func find(name, db string) *builtin {
	table := rows()
	i := slices.IndexFunc(table, func(b builtin) bool { return b.name == name })
	if i < 0 || table[i].adminOnly && db != "admin" || db == "" {
		return nil
	}
	return &table[i]
}

// add adds what the role and those that it inherits allow. The table has no circles.
func (b *builtin) add(g *privilege.Grants, db string) {
	for _, name := range b.inherits {
		find(name, db).add(g, db)
	}
	for _, r := range b.elsewhere {
		find(r.name, r.db).add(g, r.db)
	}
	for _, p := range b.grants {
		g.Add(privilege.On(p.on(db), p.actions...))
	}
}

// Names are the built-in roles of a database, by the alphabet.
func Names(db string) (names []string) {
	for _, b := range rows() {
		if !b.adminOnly || db == "admin" {
			names = append(names, b.name)
		}
	}
	slices.Sort(names)
	return names
}
