package query

import (
	"context"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
)

// askedContext counts how often it is asked whether its operation has ended.
type askedContext struct {
	context.Context
	times int
}

func (a *askedContext) Done() <-chan struct{} {
	a.times++
	return a.Context.Done()
}

// TestSortsOfFindsAsk: what a find does for one document, as looking for the first of very many elements, asks whether the find
// goes on.
func TestSortsOfFindsAsk(t *testing.T) {
	x := &tried{t: t, ns: namespace.NS{DB: "test", Coll: "c"}}
	defer x.open()()
	const elements = 200_000
	doc := bson.Build().Int32("_id", 1).Array("a")
	for i := range elements {
		doc.Int32(bson.IndexKey(i), int32(i))
	}
	_, _, err := x.engine.Insert(context.Background(), x.ns, []bson.Doc{doc.End().Doc()}, true, x.call())
	x.must(err)
	for _, sort := range []string{"{b: 1}", "{a: 1}"} {
		ctx := &askedContext{Context: context.Background()}
		rows, err := x.engine.Find(ctx, Find{NS: x.ns, Sort: bson.MustDoc(sort)}, x.call())
		x.must(err)
		_, err = rows.Next(ctx)
		x.must(err)
		rows.Close()
		if many := ctx.times > elements/2000; many != (sort == "{a: 1}") {
			t.Errorf("sorted by %s: asked %d times", sort, ctx.times)
		}
	}
}
