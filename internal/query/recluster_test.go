package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/namespace"
)

// TestScansWhileRecordsMove: cursors in all directions give each document once, while their collection gets a TTL index and
// another instead, and its records are brought into order between the batches.
func TestScansWhileRecordsMove(t *testing.T) {
	for _, how := range [][2]string{{"{$natural: 1}", "{}"}, {"{$natural: -1}", "{}"}, {"{_id: 1}", "{}"}, {"'l'", "{}"}, {"'k'", "{k: 1}"}, {"'k'", "{k: -1}"}} {
		for seed := range uint64(20) {
			scanWhileRecordsMove(t, how[0], how[1], rand.New(rand.NewPCG(seed, 3)))
		}
	}
}

func scanWhileRecordsMove(t *testing.T, hint, sort string, r *rand.Rand) {
	x := &tried{t: t, ns: namespace.NS{DB: "test", Coll: "c"}}
	defer x.open()()
	ctx := context.Background()
	_, err := x.engine.Store.CreateCollection(ctx, x.ns, bson.EmptyDoc)
	x.must(err)
	x.indexOf("{v: 2, name: 'k', key: {k: 1}}")
	x.indexOf("{v: 2, name: 'l', key: {l: 1}}")
	const many = 30
	for i := range many {
		doc := fmt.Sprintf("{_id: %d, k: %d, l: [%d, 7], d: Date(%d), e: Date(%d)}", i, i%3, i%2, testTime+r.Int64N(1000), testTime+r.Int64N(1000))
		_, _, err := x.engine.Insert(ctx, x.ns, []bson.Doc{bson.MustDoc(doc)}, true, x.call())
		x.must(err)
	}
	rows, err := x.engine.Find(ctx, Find{NS: x.ns, Sort: bson.MustDoc(sort), Hint: bson.MustParse(hint)}, x.call())
	x.must(err)
	defer rows.Close()
	came := map[string]int{}
	for n := 0; ; n++ {
		doc, err := rows.Next(ctx)
		x.must(err)
		if doc == nil {
			break
		}
		came[doc.Lookup("_id").String()]++
		rows.Park()
		switch n {
		case 2 + int(r.Int64N(5)):
			x.indexOf("{v: 2, name: 'd', key: {d: 1}, expireAfterSeconds: 1000}")
		case 15:
			x.indexOf("{v: 2, name: 'e', key: {e: 1}, expireAfterSeconds: 1000}")
			_, err = x.engine.DDL.DropIndexes(ctx, x.ns, func(c *catalog.Collection) ([]*index.Definition, error) { return pickNamed(c, "d"), nil })
			x.must(err)
		}
		coll := x.engine.Store.Catalog().Collection(x.ns)
		_, _, err = x.sweeps.Recluster(ctx, coll.ID, 1+r.IntN(8))
		x.must(err)
	}
	for i := range many {
		if n := came[fmt.Sprint(i)]; n != 1 {
			t.Errorf("by %s, sorted by %s: document %d came %d times", hint, sort, i, n)
		}
	}
}

func pickNamed(c *catalog.Collection, name string) (out []*index.Definition) {
	for _, d := range c.Indexes {
		if d.Name == name {
			out = append(out, d)
		}
	}
	return out
}

// TestScansOfWhatMovesAway: documents that move behind a cursor after each one that it gives come all the same, once.
func TestScansOfWhatMovesAway(t *testing.T) {
	for _, way := range []int64{1, -1} {
		x := &tried{t: t, ns: namespace.NS{DB: "test", Coll: "c"}}
		closed := x.open()
		ctx := context.Background()
		_, err := x.engine.Store.CreateCollection(ctx, x.ns, bson.EmptyDoc)
		x.must(err)
		x.indexOf("{v: 2, name: 'd', key: {d: 1}, expireAfterSeconds: 100000}")
		const many = 40
		for i := range int64(many) {
			_, _, err := x.engine.Insert(ctx, x.ns, []bson.Doc{bson.MustDoc(fmt.Sprintf("{_id: %d, d: Date(%d)}", i, testTime+i))}, true, x.call())
			x.must(err)
		}
		rows, err := x.engine.Find(ctx, Find{NS: x.ns, Hint: bson.MustParse(fmt.Sprintf("{$natural: %d}", way))}, x.call())
		x.must(err)
		came := map[string]int{}
		for n := int64(1); ; n++ {
			doc, err := rows.Next(ctx)
			x.must(err)
			if doc == nil {
				break
			}
			came[doc.Lookup("_id").String()]++
			rows.Park()
			for i := range int64(many) {
				at := testTime + (i-n*many)*way // before all places where anything has been, in the cursor's direction
				if n > 2 && way < 0 {
					at = testTime - (n*many - i) // from its second walk on it goes forward
				}
				_, err := x.engine.Update(ctx, Update{NS: x.ns, Filter: bson.MustDoc(fmt.Sprintf("{_id: %d}", i)), Change: bson.MustParse(fmt.Sprintf("{$set: {d: Date(%d)}}", at))}, x.call())
				x.must(err)
			}
		}
		for i := range many {
			if n := came[fmt.Sprint(i)]; n != 1 {
				t.Errorf("direction %d: document %d came %d times", way, i, n)
			}
		}
		x.must(rows.Close())
		closed()
	}
}
