package accumulator

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/sortpattern"
	"github.com/ebbdb/ebb/internal/testseed"
)

// numbers are rows of one number each, and count how often these are evaluated.
type numbers struct {
	of    []bson.Value
	evals int
}

func (n *numbers) Len() int { return len(n.of) }

func (n *numbers) Eval(i int, _ []expr.Expr, dst []bson.Value) error {
	n.evals++
	dst[0] = n.of[i]
	return nil
}

func (n *numbers) SortValue(i int) (bson.Value, error) { return n.of[i], nil }
func (n *numbers) SameSort(i, j int) (bool, error)     { return i == j, nil }

// TestExtremesOfLeavingWindows looks at each document twice, however the values go up and down and however long windows are.
func TestExtremesOfLeavingWindows(t *testing.T) {
	const n = 1000
	p := NewParser(expr.NewParser(expr.Options{}), nil, nil)
	at := map[string]func(i int) int{
		"rising": func(i int) int { return i }, "falling": func(i int) int { return -i }, "equal": func(int) int { return 7 }, "mixed": func(i int) int { return i * 7919 % n },
	}
	for _, op := range []string{"$min", "$max"} {
		for name, f := range at {
			rows := &numbers{}
			for i := range n {
				rows.of = append(rows.of, bson.Int64(int64(f(i))))
			}
			spec := bson.Build().String(op, "$x").Object("window").Array("documents").String("0", "current").String("1", "unbounded").End().End().Doc()
			w, err := p.Window("x", spec.Value(), WindowScope{Sorted: true})
			if err != nil {
				t.Fatal(err)
			}
			win, err := w.New()
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				if _, err := win.Next(rows, Frame{i, i, n}); err != nil {
					t.Fatal(err)
				}
			}
			if rows.evals > 2*n {
				t.Errorf("%s of %s values has looked at %d documents of %d", op, name, rows.evals, n)
			}
		}
	}
}

// documents are numbers for functions that look at the whole document, too.
type documents struct{ numbers }

func (d *documents) Eval(i int, es []expr.Expr, dst []bson.Value) error {
	if err := d.numbers.Eval(i, es, dst[:1]); err != nil {
		return err
	}
	if len(dst) > 1 {
		dst[1] = bson.Build().Value("x", d.of[i]).Doc().Value()
	}
	return nil
}

// TestLeavingWindowsLookOnce: a window that moves on looks at a document a bounded number of times, however long it is.
func TestLeavingWindowsLookOnce(t *testing.T) {
	const n = 1000
	p := NewParser(expr.NewParser(expr.Options{}), nil, nil)
	pattern, err := sortpattern.Parse(bson.MustDoc("{x: 1}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{
		"$minN: {n: 2, input: '$x'}", "$maxN: {n: 2, input: '$x'}", "$firstN: {n: 2, input: '$x'}", "$lastN: {n: 2, input: '$x'}",
		"$top: {sortBy: {x: 1}, output: '$x'}", "$bottom: {sortBy: {x: 1}, output: '$x'}", "$topN: {n: 2, sortBy: {x: 1}, output: '$x'}",
		"$bottomN: {n: 2, sortBy: {x: 1}, output: '$x'}", "$integral: {input: '$x'}", "$median: {input: '$x', method: 'approximate'}",
		"$percentile: {input: '$x', p: [0.1, 0.9], method: 'approximate'}", "$derivative: {input: '$x'}", "$addToSet: '$x'",
	} {
		for _, back := range []int{10, n / 2} {
			rows := &documents{}
			for i := range n {
				rows.of = append(rows.of, bson.Int64(int64(i*7919%n)))
			}
			w, err := p.Window("x", bson.MustDoc(fmt.Sprintf("{%s, window: {documents: [%d, 0]}}", spec, -back)).Value(), WindowScope{Sort: pattern, Sorted: true})
			if err != nil {
				t.Fatal(err)
			}
			win, err := w.New()
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				if _, err := win.Next(rows, Frame{i, max(0, i-back), i + 1}); err != nil {
					t.Fatal(err)
				}
			}
			if rows.evals > 3*n {
				t.Errorf("%s over %d has looked at %d documents of %d", spec, back, rows.evals, n)
			}
		}
	}
}

// TestSetsOfLeavingWindows: what a window's set shows is what a new one of the same values does, the order and each value's type included.
func TestSetsOfLeavingWindows(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.Of(t), 4))
	p := NewParser(expr.NewParser(expr.Options{}), nil, nil)
	value := func() bson.Value {
		switch n := r.IntN(6); r.IntN(4) {
		case 0:
			return bson.Double(float64(n))
		case 1:
			return bson.Missing
		default:
			return bson.Int32(int32(n))
		}
	}
	array := func() bson.Value {
		var vs []bson.Value
		for range r.IntN(4) {
			if v := value(); !v.IsMissing() {
				vs = append(vs, v)
			}
		}
		return bson.ArrayOf(vs...)
	}
	for op, c := range map[string]struct {
		of            func() bson.Value
		leaving, anew maker
	}{
		"$addToSet": {value, newLeavingAddToSet(p), newAddToSet(p)},
		"$setUnion": {array, newLeavingUnion(p), newSetUnion(p)},
	} {
		f, _ := c.leaving(bson.Missing)
		set := f.(Remover)
		var window []bson.Value
		for range 2000 {
			if len(window) > 0 && r.IntN(2) == 0 {
				if !set.Remove(window[:1]) {
					t.Fatalf("%s does not take out %s", op, window[0])
				}
				window = window[1:]
			} else {
				v := c.of()
				window = append(window, v)
				if err := set.Add([]bson.Value{v}); err != nil {
					t.Fatal(err)
				}
			}
			anew, _ := c.anew(bson.Missing)
			for _, v := range window {
				_ = anew.Add([]bson.Value{v})
			}
			got, _ := set.Value()
			if want, _ := anew.Value(); got.String() != want.String() {
				t.Fatalf("%s: %s, not %s", op, got, want)
			}
		}
		for _, v := range window {
			set.Remove([]bson.Value{v})
		}
		if s := set.(*leavingSet); s.held != 0 || len(s.members) != 0 || s.order.Len() != 0 {
			t.Errorf("%s: %d bytes of %d values are left", op, s.held, len(s.members))
		}
	}
}
