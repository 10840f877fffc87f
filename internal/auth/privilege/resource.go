package privilege

import (
	"strings"

	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// kind tells patterns of resources apart.
type kind uint8

const (
	nothing        kind = iota
	cluster             // the server as a whole
	anyResource         // everything there is
	anyNormal           // every database but local and config, and every collection in them but system.*
	database            // one database, and its collections but system.*
	collection          // a collection's name, in any database
	exactNamespace      // one collection
	anyBuckets          // the buckets of every time series
	bucketsInDB         // those of the time series of one database
	bucketsNamed        // those of the time series of one name, in any database
	exactBuckets        // those of one time series
)

// Resource is a pattern of what a privilege is about.
type Resource struct {
	kind     kind
	db, coll string
}

// The resources that a privilege may be about.
func Cluster() Resource                  { return Resource{kind: cluster} }
func Anything() Resource                 { return Resource{kind: anyResource} }
func AnyNormal() Resource                { return Resource{kind: anyNormal} }
func Database(db string) Resource        { return Resource{kind: database, db: db} }
func CollectionNamed(c string) Resource  { return Resource{kind: collection, coll: c} }
func Namespace(ns namespace.NS) Resource { return Resource{exactNamespace, ns.DB, ns.Coll} }
func AnyBuckets() Resource               { return Resource{kind: anyBuckets} }

// Check refuses names that no database, or no collection, can have; $external has users, and may be named. What is stored is not asked.
func (r Resource) Check() error {
	if r.db != "" && namespace.CheckDB(strings.ReplaceAll(r.db, "$", "_")) != nil {
		return mongoerr.New(mongoerr.FailedToParse, "%s is not a valid database name", r.db)
	}
	if r.coll != "" && (strings.Contains(r.coll, "$") || namespace.NS{DB: "any", Coll: r.coll}.Check() != nil) {
		return mongoerr.New(mongoerr.FailedToParse, "%s is not a valid collection name", r.coll)
	}
	return nil
}

// Collections is what {db, collection} stands for: an empty name is any.
func Collections(db, coll string) Resource {
	switch {
	case db == "" && coll == "":
		return AnyNormal()
	case coll == "":
		return Database(db)
	case db == "":
		return CollectionNamed(coll)
	}
	return Resource{exactNamespace, db, coll}
}

// Buckets is what {db, system_buckets} stands for: an empty name is any.
func Buckets(db, series string) Resource {
	switch {
	case db == "" && series == "":
		return AnyBuckets()
	case series == "":
		return Resource{kind: bucketsInDB, db: db}
	case db == "":
		return Resource{kind: bucketsNamed, coll: series}
	}
	return Resource{exactBuckets, db, series}
}

// IsCluster says whether it is the server as a whole.
func (r Resource) IsCluster() bool { return r.kind == cluster }

// IsNormal says whether it is one collection, no system.* one and none of local and config.
func (r Resource) IsNormal() bool {
	return r.kind == exactNamespace && isNormalDB(r.db) && !namespace.NS{DB: r.db, Coll: r.coll}.IsSystem()
}

// Database is the one database that the resource is of, "" where it is of none.
func (r Resource) Database() string { return r.db }

// bucketsPrefix stands before the name of a time series in its buckets' name.
const bucketsPrefix = "system.buckets."

// isNormalDB says whether AnyNormal covers the database.
func isNormalDB(db string) bool { return db != "local" && db != "config" }

// mayBeIn says whether the pattern covers something of the database.
func (r Resource) mayBeIn(db string) bool {
	switch r.kind {
	case anyResource, collection, anyBuckets, bucketsNamed:
		return true
	case anyNormal:
		return isNormalDB(db)
	case database, exactNamespace, bucketsInDB, exactBuckets:
		return r.db == db
	}
	return false
}

// maxCovering is the most patterns that can cover a resource.
const maxCovering = 8

// covering appends to at the patterns, of privileges that are granted, any of which gives what is asked for the resource.
func (r Resource) covering(at []Resource) []Resource {
	at = append(at, Anything())
	switch r.kind {
	case cluster, anyNormal, anyBuckets, collection:
		return append(at, r)
	case database:
		at = append(at, r)
		if isNormalDB(r.db) {
			at = append(at, AnyNormal())
		}
	case exactNamespace:
		at = append(at, r, CollectionNamed(r.coll))
		if series, ok := strings.CutPrefix(r.coll, bucketsPrefix); ok {
			return append(at, Buckets(r.db, series), Buckets("", series), Buckets(r.db, ""), AnyBuckets())
		}
		if (namespace.NS{DB: r.db, Coll: r.coll}).IsSystem() {
			return at
		}
		at = append(at, Database(r.db))
		if isNormalDB(r.db) {
			at = append(at, AnyNormal())
		}
	default:
		return append(at, r)
	}
	return at
}

// String is what MongoDB calls the resource in its messages.
func (r Resource) String() string {
	switch r.kind {
	case cluster:
		return "<cluster>"
	case anyResource:
		return "<any resource>"
	case anyNormal:
		return "<any normal resource>"
	case database:
		return "<database " + r.db + ">"
	case collection:
		return "<collection " + r.coll + " in any database>"
	case exactNamespace:
		return "<" + r.db + "." + r.coll + ">"
	case anyBuckets:
		return "<any system.buckets resource>"
	case bucketsInDB:
		return "<any system.buckets resource in " + r.db + ">"
	case bucketsNamed:
		return "<" + bucketsPrefix + r.coll + " in any database>"
	case exactBuckets:
		return "<" + r.db + "." + bucketsPrefix + r.coll + ">"
	}
	return "<nothing>"
}
