package catalog

import (
	"strings"
	"unicode/utf8"

	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// systemCollections are the names under "system." that users may create, in any database.
var systemCollections = map[string]bool{
	"system.js": true, "system.profile": true, "system.users": true, "system.views": true,
}

// reservedCollections are further ones, by database.
var reservedCollections = map[string]map[string]bool{
	"admin":  {"system.roles": true, "system.version": true, "system.new_users": true, "system.backup_users": true, "system.keys": true},
	"config": {"system.sessions": true, "system.indexBuilds": true, "system.preimages": true},
	"local":  {"system.replset": true, "system.healthlog": true},
}

// bucketPrefix starts the names of the collections that time series keep their data in.
const bucketPrefix = "system.buckets."

// CheckCreate refuses names that no new collection or view may have, in c or anywhere: bad or too long ones, what is
// no text, the server's own, and those of a database whose name differs from an existing one by case alone.
func (c *Catalog) CheckCreate(ns namespace.NS) error {
	if err := ns.Check(); err != nil {
		return err
	}
	if err := ns.CheckLength(); err != nil {
		return err
	}
	if !utf8.ValidString(ns.String()) { // whoever lists collections could not read the reply
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid namespace specified %q: it is not UTF-8", ns)
	}
	if strings.Contains(ns.Coll, "$") {
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid collection name: %s", ns.Coll)
	}
	if ns.IsSystem() && !legalSystem(ns) {
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid system namespace: %s", ns)
	}
	return c.checkCase(ns.DB)
}

func legalSystem(ns namespace.NS) bool {
	return systemCollections[ns.Coll] || reservedCollections[ns.DB][ns.Coll] ||
		strings.HasPrefix(ns.Coll, bucketPrefix) && len(ns.Coll) > len(bucketPrefix)
}

func (c *Catalog) checkCase(db string) error {
	if c.databases[db] != nil {
		return nil
	}
	for existing := range c.databases {
		if strings.EqualFold(existing, db) {
			return mongoerr.New(mongoerr.DatabaseDifferCase,
				"db already exists with different case already have: [%s] trying to create [%s]", existing, db)
		}
	}
	return nil
}
