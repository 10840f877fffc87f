package fulltext

import (
	"encoding/base64"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// Query is the argument of $search or $searchMeta.
type Query struct {
	// Index is the name of the index.
	Index string
	// Details says that the scores of documents are to be explained.
	Details bool
	// Synonyms shows the synonyms of mappings that the query names. It is set before New; nil: there are none.
	Synonyms SynonymSource

	asked     map[string][]string // what is searched for with synonyms, by the names of their mappings
	operator  operator
	facets    []*facet // nil: no collector
	total     bool     // the count is to be exact
	highlight *highlight
	order     []orderKey
	after     *token
	before    *token
	source    bool // what the index stores is to be returned
	within    string
}

const (
	defaultIndex     = "default"
	defaultThreshold = 1000
)

// ParseQuery reads the argument of a stage, $searchMeta where meta is set: that gives no documents. Whatever is wrong with it is told with the code
// of MongoDB's search process, 8, but for what the server itself looks at.
func ParseQuery(argument bson.Doc, meta bool) (*Query, error) {
	a := spec.New("", argument)
	q := &Query{Index: defaultIndex}
	if a.Has("index") {
		q.Index = a.Word("index")
	}
	a.Value("index")
	q.readCount(a)
	q.highlight = readHighlight(a)
	q.readOrder(a)
	q.readPages(a)
	q.Details, q.source = a.Bool("scoreDetails", false), a.Bool("returnStoredSource", false)
	a.Bool("concurrent", false)
	if sub := a.Inner("tracking"); sub != nil {
		sub.RequiredStr("searchTerms")
		sub.Done()
	}
	if sub := a.Inner("searchNodePreference"); sub != nil {
		if sub.Word("key"); !sub.Has("key") {
			sub.RefuseField("key", "is required")
		}
		sub.Done()
	}
	p := &parser{}
	if sub := a.Inner("returnScope"); sub != nil {
		q.within = sub.RequiredStr("path")
		p.scope = scopeName{q.within, "returnScope.path"}
		sub.Done()
		if !q.source && !meta {
			a.Refuse("Set returnStoredSource to true if returnScope is non-empty")
		}
	}
	q.readOperator(p, a)
	if v, ok := q.operator.(*vectorOperator); ok {
		v.allows(a)
	}
	a.Done()
	q.asked = p.asked
	return q, a.Err()
}

// readOperator reads what is searched for, by an operator or a collector.
func (q *Query) readOperator(p *parser, a *spec.Reader) {
	name := a.Only(operatorNames()...)
	collector := a.Inner("facet")
	switch {
	case name != "" && collector != nil:
		a.Refuse("Top-level operator is not allowed to be used with collector")
	case name == "" && collector == nil:
		a.Refuse("Query should contain either an operator [%s] or a collector [facet]", strings.Join(operatorNames(), ", "))
	case a.Err() != nil:
	case collector != nil:
		for _, o := range operators() {
			a.Value(o.name)
		}
		p.readCollector(collector, q)
	default:
		q.operator = p.named(a)
	}
}

func (q *Query) readCount(a *spec.Reader) {
	sub := a.Inner("count")
	if sub == nil {
		return
	}
	q.total = sub.Choice("type", "lowerBound", "lowerBound", "total") == "total"
	sub.Count("threshold", defaultThreshold)
	sub.Done()
}

func (q *Query) readPages(a *spec.Reader) {
	if a.Only("searchAfter", "searchBefore") == "" {
		a.Value("searchAfter")
		a.Value("searchBefore")
		return
	}
	q.after, q.before = readToken(a, "searchAfter"), readToken(a, "searchBefore")
}

// token says where in the results a document stands.
type token struct {
	id    bson.Value
	score float64
	keys  []bson.Value // of the order that the query says, null where there is none
}

// maxToken bounds what a token has at most.
const maxToken = 1 << 16

func readToken(a *spec.Reader, name string) *token {
	v := a.Value(name)
	switch {
	case v.IsMissing():
		return nil
	case v.Type != bson.TypeString:
		a.RefuseField(name, "must be a string")
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(v.Str())
	if err == nil && len(data) <= maxToken {
		if bson.Validate(data, maxDepth) == nil {
			doc := bson.Doc(data)
			id, score, keys := doc.Lookup("_id"), doc.Lookup("score"), doc.Lookup("keys")
			if !id.IsMissing() && score.Type == bson.TypeDouble && keys.Type == bson.TypeArray {
				return &token{id, score.Double(), keys.Doc().Values(nil)}
			}
		}
	}
	a.RefuseField(name, "Invalid format for token value")
	return nil
}

// String is the token as clients have it.
func (t *token) String() string {
	b := bson.Build().Value("_id", t.id).Double("score", t.score).Array("keys")
	for i, k := range t.keys {
		if k.IsMissing() {
			b.Null(bson.IndexKey(i))
		} else {
			b.Value(bson.IndexKey(i), k)
		}
	}
	return base64.StdEncoding.EncodeToString(b.End().Doc())
}
