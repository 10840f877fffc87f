package vectorsearch

import (
	"math"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

const (
	// maxCandidates bounds numCandidates, and with that what a search finds that is not said to be exact.
	maxCandidates = 10_000
	// maxExact bounds what an exact one finds.
	maxExact = math.MaxInt32 - 17
)

// Query is the argument of $vectorSearch.
type Query struct {
	Index, Path string
	Limit       int64

	vector         Vector
	filter, parent bson.Doc // nil: nothing is asked for
	mean           bool     // of what an array has for a document, not the best
	nested         bool     // how those are joined was said
	explains       bool     // explainOptions are there
	source         bool     // what the index has stored is asked for
}

// ParseLimit is the limit of $vectorSearch, 0 where there is none. It is read before anything else is.
func ParseLimit(v bson.Value) (int64, error) {
	if v.IsMissing() {
		return 0, nil
	}
	if !v.IsNumber() {
		return 0, mongoerr.New(8575100, "Expected limit to be a number in $vectorSearch, but got %s", v.Type)
	}
	n, whole := v.AsInt64()
	switch {
	case !(v.AsDouble() >= 1):
		return 0, mongoerr.New(7912700, "$vectorSearch limit must be positive")
	case v.AsDouble() > math.MaxInt32:
		return 0, wrong(`"limit" overflowed an int32`)
	case !whole || v.Type == bson.TypeDecimal:
		return 0, wrong(`"limit" must be an integer`)
	}
	return n, nil
}

// ParseQuery reads the argument of $vectorSearch. explain says that it is to be explained, not run. Fields that are not known mean nothing.
func ParseQuery(spec bson.Doc, explain bool) (*Query, error) {
	q, get := &Query{}, func(name string) bson.Value {
		if v := spec.Lookup(name); v.Type != bson.TypeNull {
			return v
		}
		return bson.Missing
	}
	var err error
	for _, f := range []struct {
		name string
		to   *string
	}{{"index", &q.Index}, {"path", &q.Path}} {
		v := get(f.name)
		switch {
		case v.IsMissing():
			return nil, wrong(`"%s" is required`, f.name)
		case f.name == "path" && v.Type == bson.TypeString:
			q.Path = string([]byte(v.Str())) // whatever it is, it is no vector's unless the index says so
		default:
			if *f.to, err = text(f.name, v); err != nil {
				return nil, err
			}
		}
	}
	if err := q.readVector(get); err != nil {
		return nil, err
	}
	if q.Limit, err = ParseLimit(spec.Lookup("limit")); err != nil {
		return nil, err
	}
	if q.Limit == 0 {
		return nil, wrong(`"limit" is required`)
	}
	for _, read := range []func(func(string) bson.Value) error{q.readExact, q.readFilters, q.readNested, readPreference, q.readSource} {
		if err := read(get); err != nil {
			return nil, err
		}
	}
	return q, q.readExplain(get("explainOptions"), explain)
}

// readVector reads what is looked for.
func (q *Query) readVector(get func(string) bson.Value) error {
	v := get("queryVector")
	if !get("query").IsMissing() || !get("model").IsMissing() {
		if v.IsMissing() {
			return wrong(`"query" needs a field that is embedded automatically, and there is none: "queryVector" is required`)
		}
		return wrong(`only one of "queryVector" and "query", with "model", may be present`)
	}
	switch v.Type {
	case bson.TypeMissing:
		return wrong(`"queryVector" is required`)
	case bson.TypeBinary:
		return q.vector.readBinary(v.Clone())
	case bson.TypeArray:
	default:
		return wrong(`"queryVector" must be an array of numbers or a binary vector, and is of type %s`, v.Type)
	}
	q.vector.Kind = Float32
	for it := v.Doc().Iter(); it.Next(); {
		f, ok := number(it.Value())
		switch t := it.Value().Type; {
		case ok:
		case t == bson.TypeDouble || t == bson.TypeInt32 || t == bson.TypeInt64:
			return wrong(`"queryVector" cannot contain values that are not finite`)
		default:
			return wrong(`"queryVector" cannot contain a value of type %s`, t)
		}
		if len(q.vector.floats) == MaxDimensions {
			return wrong(`"queryVector" cannot have more than %d dimensions`, MaxDimensions)
		}
		q.vector.floats = append(q.vector.floats, f)
	}
	return nil
}

// readExact reads how exact the search has to be. It always is, but what goes with which is held to.
func (q *Query) readExact(get func(string) bson.Value) error {
	v, candidates := get("exact"), get("numCandidates")
	exact := false
	switch v.Type {
	case bson.TypeMissing:
	case bson.TypeBool:
		exact = v.Bool()
	default:
		return wrong(`"exact" must be a boolean`)
	}
	switch {
	case exact && !candidates.IsMissing():
		return wrong(`"numCandidates" must be omitted when "exact" is true`)
	case exact && q.Limit > maxExact:
		return wrong(`"limit" must be less than %d`, maxExact+1)
	case exact:
		return nil
	case candidates.IsMissing():
		return wrong(`"numCandidates" is required unless "exact" is true`)
	}
	n, whole := int64(0), false
	if candidates.IsNumber() && candidates.Type != bson.TypeDecimal {
		n, whole = candidates.AsInt64()
	}
	switch {
	case !whole && !candidates.IsNumber(), !whole && !(math.Abs(candidates.AsDouble()) > math.MaxInt32):
		return wrong(`"numCandidates" must be an integer`)
	case !whole || n > math.MaxInt32 || n < math.MinInt32:
		return wrong(`"numCandidates" does not fit in an int32`)
	case n < 1 || n > maxCandidates:
		return wrong(`"numCandidates" must be within bounds [1, %d]`, maxCandidates)
	case n < q.Limit:
		return wrong(`"numCandidates" must be greater than or equal to "limit"`)
	}
	return nil
}

func (q *Query) readFilters(get func(string) bson.Value) error {
	for _, f := range []struct {
		name string
		to   *bson.Doc
	}{{"filter", &q.filter}, {"parentFilter", &q.parent}} {
		switch v := get(f.name); v.Type {
		case bson.TypeMissing:
		case bson.TypeObject:
			*f.to = v.Doc()
		default:
			return wrong(`"%s" must be a document`, f.name)
		}
	}
	return nil
}

func (q *Query) readNested(get func(string) bson.Value) error {
	v := get("nestedOptions")
	if v.IsMissing() {
		return nil
	}
	if v.Type != bson.TypeObject {
		return wrong(`"nestedOptions" must be a document`)
	}
	q.nested = true
	for it := v.Doc().Iter(); it.Next(); {
		mode := it.Value()
		switch {
		case it.Key() != "scoreMode":
			return wrong(`Unrecognized field "nestedOptions.%s"`, it.Key())
		case mode.Type == bson.TypeNull:
		case mode.Type != bson.TypeString:
			return wrong(`"nestedOptions.scoreMode" must be a string`)
		case mode.Str() != "avg" && mode.Str() != "max":
			return wrong(`"nestedOptions.scoreMode" must be one of [avg, max]`)
		default:
			q.mean = mode.Str() == "avg"
		}
	}
	return nil
}

// readPreference reads which process should search. There is one.
func readPreference(get func(string) bson.Value) error {
	v := get("searchNodePreference")
	if v.IsMissing() {
		return nil
	}
	if v.Type != bson.TypeObject {
		return wrong(`"searchNodePreference" must be a document`)
	}
	switch key := v.Doc().Lookup("key"); key.Type {
	case bson.TypeMissing, bson.TypeNull:
		return wrong(`"searchNodePreference.key" is required`)
	case bson.TypeString:
		return nil
	}
	return wrong(`"searchNodePreference.key" must be a string`)
}

func (q *Query) readSource(get func(string) bson.Value) error {
	switch v := get("returnStoredSource"); v.Type {
	case bson.TypeMissing:
		return nil
	case bson.TypeBool:
		q.source = v.Bool()
		return nil
	}
	return wrong(`"returnStoredSource" must be a boolean`)
}

// readExplain reads which documents are to be explained.
func (q *Query) readExplain(v bson.Value, explain bool) error {
	if v.IsMissing() {
		return nil
	}
	if v.Type != bson.TypeObject {
		return wrong(`"explainOptions" must be a document`)
	}
	q.explains = true
	ids := bson.Missing
	for it := v.Doc().Iter(); it.Next(); {
		if it.Key() != "traceDocumentIds" {
			return wrong(`Unrecognized field "explainOptions.%s"`, it.Key())
		}
		ids = it.Value()
	}
	switch {
	case ids.IsMissing() && !explain:
		return nil
	case ids.IsMissing():
		return wrong(`"explainOptions.traceDocumentIds" is required`)
	case ids.Type != bson.TypeArray:
		return wrong(`"explainOptions.traceDocumentIds" must be an array`)
	case ids.Doc().IsEmpty():
		return wrong(`"explainOptions.traceDocumentIds" cannot be empty`)
	}
	for it := ids.Doc().Iter(); it.Next(); {
		if it.Value().Type == bson.TypeNull {
			return wrong(`"explainOptions.traceDocumentIds" cannot contain null`)
		}
	}
	return nil
}

// Demands is a filter in the language of queries that whatever the query finds meets, so that an ordinary index may find it: what is asked of
// fields where it is the same there. It is empty where that is nothing.
func (q *Query) Demands() bson.Doc {
	b := bson.Build().Array("$and")
	n := demands(b, 0, q.parent, demands(b, 0, q.filter, 0))
	if b.End(); n == 0 {
		return bson.EmptyDoc
	}
	return b.Doc()
}

// maxDemandDepth is how deep demands looks for conditions. Those below are not needed.
const maxDemandDepth = 8

// demands appends what a filter demands behind n elements of an array, and says how many there are then.
func demands(b *bson.Builder, depth int, filter bson.Doc, n int) int {
	add := func(path, operator string, v bson.Value) {
		b.Object(bson.IndexKey(n)).Object(path).Value(operator, v).End().End()
		n++
	}
	for it := filter.Iter(); it.Next(); {
		name, v := it.Key(), it.Value()
		switch {
		case name == "$and" && v.Type == bson.TypeArray && depth < maxDemandDepth:
			for each := v.Doc().Iter(); each.Next(); {
				if each.Value().Type == bson.TypeObject {
					n = demands(b, depth+1, each.Value().Doc(), n)
				}
			}
		case strings.HasPrefix(name, "$"):
		case v.Type != bson.TypeObject:
			if v.Type != bson.TypeNull { // which is not what is missing here
				add(name, "$eq", v)
			}
		default:
			for each := v.Doc().Iter(); each.Next(); {
				switch operator := each.Key(); operator {
				case "$eq", "$gt", "$gte", "$lt", "$lte", "$in":
					if each.Value().Type != bson.TypeNull {
						add(name, operator, each.Value())
					}
				}
			}
		}
	}
	return n
}
