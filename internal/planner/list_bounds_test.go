package planner

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
)

// TestListBounds: what is kept of a list for other indexes is what each of them would have found out by itself.
func TestListBounds(t *testing.T) {
	list := bson.Build().Object("a").Array("$in")
	for i := range minKeptList {
		list.Int32(bson.IndexKey(i), int32(i*31%257))
	}
	special := []bson.Value{bson.Null, bson.String("b"), bson.String("B"), bson.String("a"), bson.ArrayOf(bson.Int32(1), bson.Int32(2)), bson.ArrayOf(), bson.MinKey, bson.Double(math.NaN())}
	for i, v := range special {
		list.Value(bson.IndexKey(minKeptList+i), v)
	}
	query := list.End().End().Doc()
	for _, collation := range []string{"", `{locale: "en", strength: 1}`} {
		collated := ""
		if collation != "" {
			collated = ", collation: " + collation
		}
		filter, err := match.NewParser().Parse(query, match.Options{Allow: match.AllowMatch})
		if err != nil {
			t.Fatal(err)
		}
		var indexes []Index
		for i, spec := range []string{"{a: 1}", "{b: 1, a: -1}", "{a: 'hashed'}", "{'$**': 1}", "{a: 1, c: 1}"} {
			for _, with := range []string{"", ", sparse: true", collated} {
				if with == ", sparse: true" && spec == "{'$**': 1}" {
					continue
				}
				x := parseIndex(t, uint32(10*i+len(indexes)), fmt.Sprintf("{key: %s%s}", spec, with))
				indexes = append(indexes, x)
				x.Multikey = []uint64{1, 1}
				indexes = append(indexes, x)
			}
		}
		p := &planning{q: Query{Filter: filter}, root: filter.Root}
		compared := 0
		for range 2 {
			for _, x := range p.expand(indexes) {
				for _, d := range predicates(filter.Root) {
					for i := range x.Fields {
						if x.Fields[i].Path != d.path {
							continue
						}
						s, tight, ok := p.bounds(d, x, i)
						s2, tight2, ok2 := d.bounds(x, i, p.q.Collation)
						if !reflect.DeepEqual(s, s2) || tight != tight2 || ok != ok2 {
							t.Errorf("index %v: kept %v %v %v, by itself %v %v %v", x.Definition, s, tight, ok, s2, tight2, ok2)
						}
						compared++
					}
				}
			}
		}
		if compared < 2*len(indexes) || len(p.lists) < 2 {
			t.Errorf("%d bounds of %d indexes were compared, %d were kept", compared, len(indexes), len(p.lists))
		}
	}
}
