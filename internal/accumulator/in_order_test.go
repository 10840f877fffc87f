package accumulator

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/testseed"
)

// TestBestOfMany: the n best of random values, of which many are equal, are those that are in front when all are sorted, and
// each value's own document.
func TestBestOfMany(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.Of(t), 3))
	p := NewParser(expr.NewParser(expr.Options{}), nil, nil)
	type row struct{ x, place int }
	up := func(a, b row) int { return cmp.Compare(a.x, b.x) }
	down := func(a, b row) int { return cmp.Compare(b.x, a.x) }
	front := func(rows []row, n int) []row { return rows[:min(n, len(rows))] }
	back := func(rows []row, n int) []row { return rows[max(0, len(rows)-n):] }
	for name, c := range map[string]struct {
		spec  string
		order func(a, b row) int
		of    func([]row, int) []row
		place bool // is what shows, not x
	}{
		"$minN":         {"{$minN: {n: %d, input: '$x'}}", up, front, false},
		"$maxN":         {"{$maxN: {n: %d, input: '$x'}}", down, front, false},
		"$topN":         {"{$topN: {n: %d, output: '$p', sortBy: {x: 1}}}", up, front, true},
		"$topN down":    {"{$topN: {n: %d, output: '$p', sortBy: {x: -1}}}", down, front, true},
		"$bottomN":      {"{$bottomN: {n: %d, output: '$p', sortBy: {x: 1}}}", up, back, true},
		"$bottomN down": {"{$bottomN: {n: %d, output: '$p', sortBy: {x: -1}}}", down, back, true},
	} {
		for _, n := range []int{1, 3, 100, 5000} {
			s, err := p.Group("f", bson.MustParse(fmt.Sprintf(c.spec, n)), nil)
			if err != nil {
				t.Fatal(err)
			}
			f := feeding{t, expr.NewParser(expr.Options{}).NewEnv(), s}
			fold := f.start()
			var rows []row
			for i := range 3000 {
				rows = append(rows, row{r.IntN(700), i})
				f.add(fold, bson.Build().Int32("x", int32(rows[i].x)).Int32("p", int32(i)).Doc())
			}
			slices.SortStableFunc(rows, c.order)
			b := bson.Build().Array("")
			for i, best := range c.of(rows, n) {
				if c.place {
					b.Int32(bson.IndexKey(i), int32(best.place))
				} else {
					b.Int32(bson.IndexKey(i), int32(best.x))
				}
			}
			want := b.End().Doc().Index(0)
			if got := f.value(fold); bson.Compare(got, want) != 0 {
				t.Errorf("%s of %d: %.200s, not %.200s", name, n, got, want)
			}
			merged := f.start()
			if err := merged.Merge(fold.Partial()); err != nil {
				t.Fatal(err)
			}
			if got := f.value(merged); bson.Compare(got, want) != 0 {
				t.Errorf("%s of %d, merged: %.200s, not %.200s", name, n, got, want)
			}
		}
	}
}
