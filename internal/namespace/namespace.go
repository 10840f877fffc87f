// Package namespace splits and names "database.collection". It knows nothing of which databases and collections exist.
package namespace

import (
	"strings"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

const (
	// MaxDBLength is the largest length of a database's name in bytes.
	MaxDBLength = 63
	// MaxLength is the largest length of a whole namespace in bytes.
	MaxLength = 255
)

// NS is the name of a collection with its database, or of a database alone when Coll is empty.
type NS struct{ DB, Coll string }

// Split parts "db.coll" at the first dot; without a dot all of it is the database.
func Split(s string) NS {
	db, coll, _ := strings.Cut(s, ".")
	return NS{db, coll}
}

// String is "db.coll", or "db" without a collection.
func (ns NS) String() string {
	if ns.Coll == "" {
		return ns.DB
	}
	return ns.DB + "." + ns.Coll
}

// Command is the namespace that MongoDB shows for commands without a collection: "db.$cmd".
func (ns NS) Command() string { return ns.DB + ".$cmd" }

// IsSystem says whether the collection is one of the server's own.
func (ns NS) IsSystem() bool { return strings.HasPrefix(ns.Coll, "system.") }

// CheckDB refuses names that no database may have.
func CheckDB(db string) error {
	switch {
	case db == "":
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid namespace specified ''")
	case len(db) > MaxDBLength:
		return mongoerr.New(mongoerr.InvalidNamespace, "db name must be at most %d characters, found: %d", MaxDBLength, len(db))
	case hasForbidden(db):
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid database name: '%s'", db)
	}
	return nil
}

// hasForbidden looks for characters that no database's name has.
func hasForbidden(db string) bool {
	for i := range len(db) {
		switch db[i] {
		case '/', '\\', '.', ' ', '"', '$', 0:
			return true
		}
	}
	return false
}

// Check refuses namespaces that no collection may have, the server's own ones excepted.
func (ns NS) Check() error {
	if err := CheckDB(ns.DB); err != nil {
		return err
	}
	switch c := ns.Coll; {
	case c == "":
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid namespace specified '%s.'", ns.DB)
	case strings.IndexByte(c, 0) >= 0:
		return mongoerr.New(mongoerr.InvalidNamespace, "namespaces cannot have embedded null characters")
	case c[0] == '.':
		return mongoerr.New(mongoerr.InvalidNamespace, "Collection names cannot start with '.': %s", c)
	case strings.Contains(c, "$") && c != "$cmd" && c != "$cmd.aggregate" && !(ns.DB == "local" && c == "oplog.$main"):
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid collection name: %s", c)
	}
	return nil
}

// CheckLength refuses names of user collections that are too long to be made.
func (ns NS) CheckLength() error {
	if n := len(ns.String()); n > MaxLength {
		return mongoerr.New(mongoerr.InvalidNamespace, "Fully qualified namespace is too long. Namespace: %s Max: %d", ns, MaxLength)
	}
	return nil
}
