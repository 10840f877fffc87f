// Package planner chooses how to find a query's documents: by which index and within which bounds, or by looking at all of
// them. It is pure: queries and index definitions in, a plan out that can be printed and run. It knows nothing of stores.
package planner

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// Query is what documents are wanted.
type Query struct {
	Filter    *match.Filter
	Collation *collation.Collation
	// Env has the variables that the filter's $expr reads; nil when it reads none that are known.
	Env *expr.Env
	// Interrupt is asked now and then; its error ends the planning. Nil never ends it.
	Interrupt func() error
	// Order is the order they are wanted in; none is any.
	Order []OrderField
	// Hint is an index's name or key pattern, or {$natural: ±1}; missing when there is none.
	Hint bson.Value
	// Min and Max bound the hinted index's keys: from Min on, before Max.
	Min, Max bson.Doc
	// Near is a search by distance that stands beside the filter; nil when the filter says all.
	Near *match.GeoNear
	// TextScore says that the score of a $text is asked for.
	TextScore bool
	// Sort is Order for a plan to sort by, in Memory bytes; nil when whoever asks sorts by himself what does not come in Order.
	Sort   *sortpattern.Pattern
	Memory int64
	// SortLimit is how many of what is sorted are wanted at most, 0 for all; IDs has record ids go through the sort.
	SortLimit int64
	IDs       bool
	// Limit is how many are wanted behind the first Skip, 0 for all. Counts has the plan see to both.
	Skip, Limit int64
	Counts      bool
	// Fields are the paths that are read of the documents found, besides what the filter reads, to give them the shape
	// Projection; nil is all of a document.
	Fields     []string
	Projection bson.Doc
	// Told is what messages tell of the query.
	Told Told
	// Express says whether the plan may be an express one.
	Express ExpressMode
}

// OrderField is one field of a sort.
type OrderField struct {
	Path       string
	Descending bool
}

// Index is an index that a plan may use.
type Index struct {
	*index.Definition
	// Multikey has for each field a bit for each component of its path that is an array in some document.
	Multikey []uint64
	// Paths are those at which a wildcard index has met arrays.
	Paths *index.PathSet

	wild *wildPath // of one that stands for a path of a wildcard index
}

// IsMultikey says whether any document has more than one key.
func (x Index) IsMultikey() bool {
	for _, m := range x.Multikey {
		if m != 0 {
			return true
		}
	}
	return false
}

// Collection is what the planner knows of a collection.
type Collection struct {
	Indexes []Index
	// Collation is the collection's default: that of its _id index.
	Collation *collation.Collation
	// Clustered is the order of the records by _id, in the place of an index on it; nil where records have an order of their own.
	Clustered *index.Definition
	// RecordAt is the id of the record whose ts it is given, where records lie by that, as in the oplog; nil elsewhere.
	RecordAt func(ts uint64) []byte
	// Unkeyed: several documents may have the same _id, as in a time series, and nothing finds them by it.
	Unkeyed bool
	// Hides says that expired documents are hidden: keys alone do not tell whether a document is there.
	Hides bool
	// NoTableScan forbids to look at all documents for want of an index.
	NoTableScan bool
}

// compare orders values as x does.
func (x Index) compare(a, b bson.Value) int {
	if c := x.Collator(); c != nil {
		return bson.CompareWith(a, b, c)
	}
	return bson.Compare(a, b)
}
