package command

import (
	"math"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/query"
)

func countCommands() []*Command {
	return []*Command{
		{Name: "count", RawData: true, Needs: Needs{OnCollection: actions(privilege.Find)}, Doc: "Counts documents of a collection or view.", ReadConcern: true, Run: count, Explain: explainCount},
		{Name: "distinct", RawData: true, Needs: Needs{OnCollection: actions(privilege.Find)}, Doc: "Gives the different values of a field.", ReadConcern: true, Run: distinct, Explain: explainDistinct},
	}
}

func count(op *Op) (bson.Doc, error) {
	r, err := op.parseCount(op.Args)
	if err != nil {
		return nil, err
	}
	op.executed = r.call
	n, err := op.Query.Count(op.Ctx, r.Count, r.call)
	op.examined(r.call)
	if err != nil {
		return nil, err
	}
	return bson.Build().Number("n", n).Doc(), nil
}

type countRequest struct {
	query.Count
	call *query.Call
}

func (op *Op) parseCount(a *Args) (countRequest, error) {
	r := countRequest{call: op.call()}
	r.NS = a.Collection(op.DB)
	r.Filter = a.Doc("query")
	r.Hint = hint(a)
	r.Skip, _ = a.Limit("skip")
	r.Limit, r.HasLimit = countLimit(a)
	collate(a, a.Doc("collation"), r.call)
	r.call.Expected = a.collectionUUID(r.NS)
	a.noEncryption()
	a.Ignore("fields", "queryOptions", "mirrored", "includeQueryStatsMetrics")
	if err := a.Done(); err != nil {
		return r, err
	}
	return r, readable(r.NS)
}

// countLimit reads a count's limit, of which only the size counts. It must be a whole number, and null is none.
func countLimit(a *Args) (n int64, given bool) {
	v := a.Value("limit")
	if v.IsMissing() {
		return 0, false
	}
	n, exact := v.AsInt64()
	switch {
	case !v.IsNumber():
		a.Fail(mongoerr.New(mongoerr.BadValue, "limit value for count cannot be of type %s", v.Type))
	case !exact:
		a.Fail(mongoerr.New(mongoerr.FailedToParse, "Expected an integer, but found a number that is none: limit: %s", v))
	case n == math.MinInt64:
		a.Fail(mongoerr.New(mongoerr.BadValue, "limit value for count cannot be represented"))
	}
	return max(n, -n), true
}

func distinct(op *Op) (bson.Doc, error) {
	r, err := op.parseDistinct(op.Args)
	if err != nil {
		return nil, err
	}
	op.executed = r.call
	values, err := op.Query.Distinct(op.Ctx, r.Distinct, r.call)
	op.examined(r.call)
	if err != nil {
		if r.call.Executing {
			op.during = r.during()
		}
		return nil, err
	}
	b := appendAt(bson.Build().Value("values", values), op.readsAt())
	if r.call.OnView { // whose reply is made of an aggregate's
		b.Int32("ok", 1)
	}
	return b.Doc(), nil
}

type distinctRequest struct {
	query.Distinct
	call *query.Call
}

// during is what errors of its plan say. On a view an aggregation is run.
func (r *distinctRequest) during() string {
	if r.call.OnView {
		return duringAggregate + r.NS.String()
	}
	return "Executor error during distinct command on namespace: " + r.NS.String()
}

func (op *Op) parseDistinct(a *Args) (distinctRequest, error) {
	r := distinctRequest{call: op.call()}
	r.NS = a.Collection(op.DB)
	a.as("distinctCommandRequest")
	r.Key, _ = a.String("key")
	r.Filter = a.Doc("query")
	r.Hint = hint(a)
	collate(a, a.Doc("collation"), r.call)
	r.call.Expected = a.collectionUUID(r.NS)
	a.Ignore("mirrored", "querySettings", "includeQueryStatsMetrics")
	a.Required("key")
	if err := a.Done(); err != nil {
		return r, err
	}
	for i := 0; i < len(r.Key); i++ {
		if r.Key[i] == 0 {
			return r, mongoerr.New(31032, "Key field cannot contain an embedded null byte")
		}
	}
	return r, readable(r.NS)
}
