package accumulator

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/javascript"
	"github.com/ebbdb/ebb/internal/testseed"
)

// arguments is an argument for every accumulator of $group; each works over documents {v: <number>, a: <array>, d: <document>}.
func arguments() map[string]string {
	return map[string]string{
		"$sum": `"$v"`, "$avg": `"$v"`, "$min": `"$v"`, "$max": `"$v"`, "$first": `"$v"`, "$last": `"$v"`, "$push": `"$v"`,
		"$addToSet": `"$v"`, "$stdDevPop": `"$v"`, "$stdDevSamp": `"$v"`, "$count": `{}`, "$mergeObjects": `"$d"`,
		"$concatArrays": `"$a"`, "$setUnion": `"$a"`, "$firstN": `{input: "$v", n: 3}`, "$lastN": `{input: "$v", n: 3}`,
		"$minN": `{input: "$v", n: 3}`, "$maxN": `{input: "$v", n: 3}`, "$top": `{output: "$v", sortBy: {v: 1}}`,
		"$bottom": `{output: "$v", sortBy: {v: 1}}`, "$topN": `{output: "$v", sortBy: {v: 1}, n: 3}`,
		"$bottomN": `{output: "$v", sortBy: {v: 1}, n: 3}`, "$median": `{input: "$v", method: "approximate"}`,
		"$percentile": `{input: "$v", p: [0.1, 0.9], method: "approximate"}`,
		"$accumulator": `{init: "function() { return 0; }", accumulate: "function(s, v) { return s + 1; }", accumulateArgs: ["$v"],
			merge: "function(a, b) { return a + b; }", lang: "js"}`,
	}
}

func testSpec(t *testing.T, p *Parser, name string) *Spec {
	t.Helper()
	arg, ok := arguments()[name]
	if !ok {
		t.Fatalf("no argument for %s: add one", name)
	}
	s, err := p.Group("f", bson.MustParse("{"+name+": "+arg+"}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func randomDoc(r *rand.Rand) bson.Doc {
	b := bson.Build()
	n := r.IntN(12) - 4
	switch r.IntN(5) {
	case 0:
		b.Int32("v", int32(n))
	case 1:
		b.Int64("v", int64(n))
	case 2:
		b.Double("v", float64(n)/2)
	case 3:
		b.Value("v", bson.Decimal(bson.DecimalFromInt64(int64(n))))
	}
	b.Value("a", bson.ArrayOf(bson.Int32(int32(n)), bson.String("x")))
	return b.Object("d").Int32(string(rune('a'+r.IntN(3))), int32(n)).End().Doc()
}

type feeding struct {
	t    *testing.T
	env  *expr.Env
	spec *Spec
}

func (f feeding) start() Fold {
	init := bson.Missing
	if f.spec.Init != nil {
		f.env.Root = bson.EmptyDoc
		var err error
		if init, err = f.spec.Init.Eval(f.env); err != nil {
			f.t.Fatal(err)
		}
	}
	fold, err := f.spec.New(init)
	if err != nil {
		f.t.Fatal(err)
	}
	return fold
}

func (f feeding) args(d bson.Doc) []bson.Value {
	f.env.Reset()
	f.env.Root = d
	args := make([]bson.Value, len(f.spec.Args))
	for i, e := range f.spec.Args {
		v, err := e.Eval(f.env)
		if err != nil {
			f.t.Fatal(err)
		}
		args[i] = v
	}
	return args
}

func (f feeding) add(fold Fold, d bson.Doc) {
	if err := fold.Add(f.args(d)); err != nil {
		f.t.Fatal(err)
	}
}

func (f feeding) value(fold Fold) bson.Value {
	v, err := fold.Value()
	if err != nil {
		f.t.Fatal(err)
	}
	return v.Clone()
}

// TestPartials splits random documents anywhere: what the parts merge into is what all of them come to, also when values
// are read in between.
func TestPartials(t *testing.T) {
	seed := testseed.Of(t)
	r := rand.New(rand.NewPCG(seed, 1))
	exprs := expr.NewParser(expr.Options{Scripts: javascript.InProcess(clock.Wall())})
	p := NewParser(exprs, nil, nil)
	for _, op := range Operators() {
		if op.Group == nil {
			continue
		}
		f := feeding{t, exprs.NewEnv(), testSpec(t, p, op.Name)}
		for range 30 {
			var docs []bson.Doc
			whole, merged := f.start(), f.start()
			part := f.start()
			for range r.IntN(20) {
				d := randomDoc(r)
				docs = append(docs, d)
				f.add(whole, d)
				f.add(part, d)
				f.value(part)
				if r.IntN(4) == 0 {
					mustMerge(t, merged, part)
					part = f.start()
				}
			}
			mustMerge(t, merged, part)
			if got, want := f.value(merged), f.value(whole); !near(got, want) {
				t.Fatalf("seed %d: %s of %v merges into %s, not %s", seed, op.Name, docs, got.Text(), want.Text())
			}
			if whole.Size() <= 0 {
				t.Errorf("%s says it takes no memory", op.Name)
			}
		}
	}
}

func mustMerge(t *testing.T, into, part Fold) {
	if err := into.Merge(part.Partial().Clone()); err != nil {
		t.Fatal(err)
	}
}

// near allows doubles the last digits.
func near(a, b bson.Value) bool {
	if a.Type == bson.TypeDouble && b.Type == bson.TypeDouble {
		return math.Abs(a.Double()-b.Double()) <= 1e-12*(1+math.Abs(a.Double()))
	}
	return a.Text() == b.Text()
}

// TestRemove slides windows over random documents: what a Remover is left with is what a new one comes to.
func TestRemove(t *testing.T) {
	seed := testseed.Of(t)
	r := rand.New(rand.NewPCG(seed, 2))
	exprs := expr.NewParser(expr.Options{Scripts: javascript.InProcess(clock.Wall())})
	p := NewParser(exprs, nil, nil)
	makers := map[string]func(*Spec) Fold{
		"$stdDevPop":  func(*Spec) Fold { return &slidingDeviation{} },
		"$min":        func(*Spec) Fold { return &leavingExtreme{extreme: extreme{sign: 1}} },
		"$max":        func(*Spec) Fold { return &leavingExtreme{extreme: extreme{sign: -1}} },
		"$stdDevSamp": func(*Spec) Fold { return &slidingDeviation{deviation: deviation{bias: 1}} },
	}
	removers := 0
	for _, op := range Operators() {
		if op.Group == nil {
			continue
		}
		f := feeding{t, exprs.NewEnv(), testSpec(t, p, op.Name)}
		start := f.start
		if m := makers[op.Name]; m != nil {
			start = func() Fold { return m(f.spec) }
		}
		fold, ok := start().(Remover)
		if !ok {
			continue
		}
		removers++
		var in []bson.Doc
		for range 300 {
			if len(in) > 0 && r.IntN(5) < 2 {
				removed := fold.Remove(f.args(in[0]))
				in = in[1:]
				if !removed {
					fold = start().(Remover)
					for _, d := range in {
						f.add(fold, d)
					}
				}
			} else {
				in = append(in, randomDoc(r))
				f.add(fold, in[len(in)-1])
			}
			fresh := start()
			for _, d := range in {
				f.add(fresh, d)
			}
			if got, want := f.value(fold), f.value(fresh); !near(got, want) {
				t.Fatalf("seed %d: %s of %v slid into %s, not %s", seed, op.Name, in, got.Text(), want.Text())
			}
		}
	}
	if removers < 6 {
		t.Errorf("only %d accumulators can remove", removers)
	}
}

func BenchmarkSum(b *testing.B) {
	s := newTotal()
	v := bson.Double(1.25)
	b.ReportAllocs()
	for range b.N {
		s.add(v)
	}
}

// TestDigestKeepsItsEnds has many numbers digested, whole and by parts: the least and the greatest are exact, infinities
// lie beyond them, and what is between is near. Any number of percentiles is read from it.
func TestDigestKeepsItsEnds(t *testing.T) {
	const n = 5 * exactCount
	at := []float64{0, 1, 0.5, 1. / n, 1 - 1./n, 0.25}
	for _, infinities := range []bool{false, true} {
		whole, merged := newPercentile(at, true), newPercentile(at, true)
		part := newPercentile(at, true)
		for i := range n {
			v := bson.Double(float64(i*7919%n + 1)) // 7919 is prime, so each of 1..n comes once
			if infinities && i < 4 {
				v = bson.Double(math.Inf(i%2*2 - 1))
			}
			for _, p := range []*percentile{whole, part} {
				if err := p.Add([]bson.Value{v}); err != nil {
					t.Fatal(err)
				}
			}
			if i%(2*exactCount) == 0 || i == n-1 {
				mustMerge(t, merged, part)
				part = newPercentile(at, true)
			}
		}
		for _, p := range []*percentile{whole, merged} {
			v, err := p.Value()
			if err != nil {
				t.Fatal(err)
			}
			var got []float64
			for it := v.Doc().Iter(); it.Next(); {
				got = append(got, it.Value().Double())
			}
			least, greatest := 1., float64(n)
			if infinities {
				least, greatest = math.Inf(-1), math.Inf(1)
			}
			if got[0] != least || got[1] != greatest {
				t.Errorf("the ends are %v and %v, not %v and %v", got[0], got[1], least, greatest)
			}
			for i, want := range map[int]float64{2: n / 2, 5: n / 4} {
				if math.Abs(got[i]-want) > n/200 {
					t.Errorf("%v is at %v, not near %v", got[i], at[i], want)
				}
			}
			if !infinities && (got[3] < 1 || got[3] > 10 || got[4] > n || got[4] < n-10) {
				t.Errorf("%v and %v are beside the ends", got[3], got[4])
			}
		}
	}
}

func BenchmarkManyPercentiles(b *testing.B) {
	at := make([]float64, 1_000_000)
	for i := range at {
		at[i] = float64(i) / float64(len(at))
	}
	p := newPercentile(at, true)
	for i := range 4 * exactCount {
		if err := p.Add([]bson.Value{bson.Double(float64(i))}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := p.Value(); err != nil {
			b.Fatal(err)
		}
	}
}
