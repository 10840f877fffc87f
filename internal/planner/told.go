package planner

import (
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// Told is what messages tell of a query besides its filter: whose it is, and what its user gave.
type Told struct {
	NS               namespace.NS
	Sort, Projection bson.Doc
}

// Refused is the error of a query that has no plan, or must not have the one that it has. It tells the whole query as MongoDB does, in which clients
// look for what is missing: Parse Server reads there which field needs an index.
func (q Query) Refused(code mongoerr.Code, why string) error {
	return mongoerr.New(code, "error processing query: %s %s", q.told(), why)
}

// unplanned is the error of a query that no plan serves.
func (q Query) unplanned(code mongoerr.Code, format string, args ...any) error {
	return q.Refused(code, "planner returned error :: caused by :: "+fmt.Sprintf(format, args...))
}

func (q Query) told() string {
	var b strings.Builder
	b.WriteString("ns=" + q.Told.NS.String())
	if q.Limit > 0 {
		fmt.Fprintf(&b, " limit=%d", q.Limit)
	}
	if q.Skip > 0 {
		fmt.Fprintf(&b, " skip=%d", q.Skip)
	}
	fmt.Fprintf(&b, "Tree: %sSort: %s\nProj: %s\n", match.Outline(q.whole()), shown(q.Told.Sort), shown(q.Told.Projection))
	if q.Collation != nil {
		fmt.Fprintf(&b, "Collation: %s\n", q.Collation.Doc())
	}
	return b.String()
}

// whole is all that q asks for.
func (q Query) whole() match.Node {
	var all []match.Node
	if q.Filter != nil {
		all = append(all, match.Conjuncts(q.Filter.Root)...)
	}
	if q.Near != nil {
		all = append(all, q.Near)
	}
	return &match.And{Children: all}
}

// maxShown is how many bytes of a sort or of a projection are told: either may be as large as a document.
const maxShown = 64 << 10

func shown(d bson.Doc) string {
	if d == nil {
		return "{}"
	}
	return d.Value().Beginning(maxShown)
}
