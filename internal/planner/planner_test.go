package planner

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// TestPlans reads testdata: "indexes" lists specifications, each with the paths that are multikey behind it; "plan" is a
// query ({filter, sort, hint, min, max, collation}), and prints the access, its bounds and whether it orders.
func TestPlans(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var c Collection
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			switch td.Cmd {
			case "indexes":
				c = Collection{}
				for i, line := range strings.Split(td.Input, "\n") {
					c.Indexes = append(c.Indexes, parseIndex(t, uint32(i), line))
				}
				return "ok\n"
			case "plan":
				return planText(t, c, bson.MustDoc(td.Input))
			case "trees":
				var b strings.Builder
				for _, line := range strings.Split(td.Input, "\n") {
					fmt.Fprintf(&b, "%s\n%s", line, treesText(t, c, bson.MustDoc(line)))
				}
				return b.String()
			}
			return "unknown command " + td.Cmd
		})
	})
}

func parseIndex(t testing.TB, id uint32, line string) Index {
	line, paths, _ := strings.Cut(line, " multikey ")
	spec := bson.MustDoc(line)
	if spec.Lookup("name").IsMissing() {
		spec = bson.Build().Fields(spec).String("name", fmt.Sprintf("x%d", id)).Doc()
	}
	d, err := index.NewParser(match.NewParser()).Parse(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := Index{Definition: d.WithID(id), Multikey: make([]uint64, len(d.Fields))}
	if d.Wild != nil {
		x.Paths = x.Paths.With(strings.Fields(strings.ReplaceAll(paths, "[]", "\x00"))...)
		return x
	}
	for _, p := range strings.Fields(paths) {
		for i, f := range d.Fields {
			if n := len(strings.Split(p, ".")); f.Path == p || strings.HasPrefix(f.Path, p+".") {
				x.Multikey[i] |= 1 << (n - 1)
			}
		}
	}
	return x
}

// parseQuery reads {filter, sort, skip, limit, hint, min, max, collation, fields}; with trees the plan sorts and counts.
func parseQuery(t *testing.T, q bson.Doc) Query {
	query := Query{Hint: q.Lookup("hint"), Min: object(q, "min"), Max: object(q, "max")}
	var err error
	if spec := object(q, "collation"); spec != nil {
		if query.Collation, err = collation.Parse(spec); err != nil {
			t.Fatal(err)
		}
	}
	filter := object(q, "filter")
	if filter == nil {
		filter = bson.EmptyDoc
	}
	if query.Filter, err = match.NewParser().Parse(filter, match.Options{Collation: query.Collation, Allow: match.AllowAll, Exprs: expr.NewParser(expr.Options{})}); err != nil {
		t.Fatal(err)
	}
	for it := object(q, "sort").Iter(); it.Next(); {
		query.Order = append(query.Order, OrderField{it.Key(), it.Value().AsDouble() < 0})
	}
	return query
}

func treesText(t *testing.T, c Collection, q bson.Doc) string {
	query := parseQuery(t, q)
	if spec := object(q, "sort"); spec != nil {
		var err error
		if query.Sort, err = sortpattern.Parse(spec); err != nil {
			t.Fatal(err)
		}
	}
	query.Counts = true
	if v := q.Lookup("skip"); !v.IsMissing() {
		query.Skip = v.TruncInt64()
	}
	if v := q.Lookup("limit"); !v.IsMissing() {
		query.Limit = v.TruncInt64()
	}
	if v := q.Lookup("fields"); v.Type == bson.TypeArray {
		for it := v.Doc().Iter(); it.Next(); {
			query.Fields = append(query.Fields, it.Value().Str())
		}
	}
	plans, err := Candidates(c, query)
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	for i, p := range plans {
		if i > 0 {
			b.WriteString("  or\n")
		}
		treeText(&b, p.Root, 1)
	}
	return b.String()
}

func treeText(b *strings.Builder, n Node, depth int) {
	b.WriteString(strings.Repeat("  ", depth) + n.Stage())
	switch n := n.(type) {
	case *IndexScan:
		if n.Backward {
			b.WriteString(" backward")
		}
		for i, f := range n.Index.Fields {
			fmt.Fprintf(b, " %s: %s", f.Path, strings.Join(boundTexts(n.Bounds[i], f.Descending != n.Backward), " "))
		}
		if n.Behind != nil {
			fmt.Fprintf(b, " checked from field %d", n.From)
		}
	case *Sort:
		fmt.Fprintf(b, " %s limit %d", SortSpec(n.Pattern), n.Limit)
	case *Limit:
		fmt.Fprintf(b, " %d", n.N)
	case *Skip:
		fmt.Fprintf(b, " %d", n.N)
	}
	if f := FilterOf(n); f != nil {
		fmt.Fprintf(b, " filter %s", f.Print())
	}
	b.WriteByte('\n')
	for _, child := range n.Children() {
		treeText(b, child, depth+1)
	}
}

func planText(t *testing.T, c Collection, q bson.Doc) string {
	p, err := Choose(c, parseQuery(t, q))
	if err != nil {
		e := mongoerr.From(err)
		return fmt.Sprintf("error %d %s\n", e.Code, e.Code.Name())
	}
	var b strings.Builder
	b.WriteString(p.Summary())
	if s := p.Scan(); s != nil {
		if s.Backward {
			b.WriteString(" backward")
		}
		for i, f := range s.Index.Fields {
			fmt.Fprintf(&b, "\n  %s: %s", f.Path, strings.Join(boundTexts(s.Bounds[i], f.Descending != s.Backward), " "))
		}
	}
	if s, ok := p.Root.(*CollScan); ok && s.Backward {
		b.WriteString(" backward")
	}
	if !p.Ordered {
		b.WriteString("\n  sort")
	}
	return b.String() + "\n"
}

func object(d bson.Doc, key string) bson.Doc {
	if v := d.Lookup(key); v.Type == bson.TypeObject {
		return v.Doc()
	}
	return nil
}

// TestManyAlternativesMelt has the memory that planning an $or takes grow with its branches, not with their square.
func TestManyAlternativesMelt(t *testing.T) {
	const branches = 4000
	c := Collection{Indexes: []Index{parseIndex(t, 0, `{key: {n: 1, k: 1}}`)}}
	or := bson.Build().Array("$or")
	for i := range branches {
		or.Object(bson.IndexKey(i)).Int32("n", int32(i)).Int32("k", int32(i%2)).End()
	}
	filter, err := match.NewParser().Parse(or.End().Doc(), match.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	plans, err := Candidates(c, Query{Filter: filter})
	runtime.ReadMemStats(&after)
	if err != nil || len(plans) != 1 {
		t.Fatal(len(plans), err)
	}
	if or, ok := plans[0].Root.(*Fetch).Child.(*Or); !ok || len(or.Inputs) != 2 || len(or.Inputs[0].(*IndexScan).Bounds[0]) != branches/2 {
		t.Errorf("the plan is not two scans: %#v", plans[0].Root)
	}
	if each := (after.TotalAlloc - before.TotalAlloc) / branches; each > 20_000 {
		t.Errorf("%d bytes a branch", each)
	}
}

// BenchmarkManyAlternatives plans an $or of thousands of branches, each of which several compound indexes find.
func BenchmarkManyAlternatives(b *testing.B) {
	c := Collection{}
	for i, line := range []string{`{key: {n: 1}}`, `{key: {n: 1, k: 1, _id: 1}}`, `{key: {k: 1, n: 1}}`} {
		c.Indexes = append(c.Indexes, parseIndex(b, uint32(i), line))
	}
	for _, branches := range []int{300, 3000} {
		or := bson.Build().Array("$or")
		for i := range branches {
			or.Object(bson.IndexKey(i)).Object("n").Array("$in")
			for k := range 100 {
				or.Int32(bson.IndexKey(k), int32(i+k))
			}
			or.End().End().Int32("k", int32(i)).End()
		}
		filter, err := match.NewParser().Parse(or.End().Doc(), match.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(branches), func(b *testing.B) {
			for b.Loop() {
				if _, err := Candidates(c, Query{Filter: filter}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestPlansOfManyBranches: the more branches an $or has, the fewer ways to find them all are considered.
func TestPlansOfManyBranches(t *testing.T) {
	c := Collection{Indexes: []Index{parseIndex(t, 1, `{key: {a: 1}}`), parseIndex(t, 2, `{key: {b: 1}}`)}}
	for branches, want := range map[int]int{2: 3, 100: maxOrSolutions, maxOrBranches / 4: 4, maxOrBranches: 1} {
		or := bson.Build().Array("$or")
		for i := range branches {
			or.Object(bson.IndexKey(i)).Int32("a", int32(i)).Int32("b", int32(i)).End()
		}
		filter, err := match.NewParser().Parse(or.End().Doc(), match.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if plans, err := Candidates(c, Query{Filter: filter}); err != nil || len(plans) != want {
			t.Errorf("%d plans for %d branches, not %d: %v", len(plans), branches, want, err)
		}
	}
}

// TestRacedPlans: plans that are large take part in no race of many.
func TestRacedPlans(t *testing.T) {
	large := &Plan{Root: &Or{}}
	for range maxRacedNodes / 3 {
		large.Root.(*Or).Inputs = append(large.Root.(*Or).Inputs, &IndexScan{})
	}
	small := &Plan{Root: &IndexScan{}}
	for want, plans := range map[int][]*Plan{0: nil, 1: {large}, 2: {large, large, large, small}, 3: {small, large, large, large}, 4: {small, small, small, small}} {
		if got := len(raced(plans)); got != want {
			t.Errorf("%d of %d plans race, not %d", got, len(plans), want)
		}
	}
}
