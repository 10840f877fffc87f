package expr

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/testheap"
	"github.com/ebbdb/ebb/internal/testseed"
)

// generator makes expressions of the tables' operators: mostly of the right form, with operands of every type.
type generator struct {
	r    *rand.Rand
	ops  []Operator
	vars []string
	// heavy takes heavyLeaves.
	heavy bool
}

func leaves() []string {
	return []string{`1`, `-7`, `0`, `2147483647`, `NumberLong("9223372036854775807")`, `1.5`, `-0.0`, `NaN`, `Infinity`, `1e308`, `NumberDecimal("1.10")`,
		`NumberDecimal("NaN")`, `NumberDecimal("9.9E6144")`, `NumberDecimal("1E-6176")`, `"text"`, `""`, `"2024-02-29"`, `"day"`, `"UTC"`, `"int"`, `"a+"`, `null`,
		`true`, `[]`, `[1, 2, 3]`, `[[1, 2], [3, 4]]`, `{}`, `ISODate("2024-02-29T12:30:45Z")`, `Date(-9223372036854775808)`, `Date(9223372036854775807)`,
		`ObjectId("65e07bd50123456789abcdef")`, `Timestamp(5, 6)`, `BinData(0, "aGk=")`, `/a(b)?/i`, `MinKey`, `MaxKey`, `undefined`,
		`"$a"`, `"$b.c"`, `"$nope"`, `"$s"`, `"$d"`, `"$$ROOT"`, `"$$NOW"`, `"$$REMOVE"`, `"$arr"`, `"$arr.k"`}
}

func (g *generator) leaves() []string {
	if g.heavy {
		return heavyLeaves()
	}
	return leaves()
}

func (g *generator) pick(from []string) string { return from[g.r.IntN(len(from))] }

func (g *generator) value(depth int) bson.Value {
	if depth == 0 || g.r.IntN(4) == 0 {
		if len(g.vars) > 0 && g.r.IntN(3) == 0 {
			return bson.String("$$" + g.pick(g.vars))
		}
		return bson.MustParse(g.pick(g.leaves()))
	}
	switch g.r.IntN(12) {
	case 0:
		return bson.Build().Value("x", g.value(depth-1)).Value("y", g.value(depth-1)).Doc().Value()
	case 1:
		return g.list(depth, g.r.IntN(4))
	}
	op := g.ops[g.r.IntN(len(g.ops))]
	return bson.Build().Value(op.Name, g.argument(op, depth)).Doc().Value()
}

func (g *generator) list(depth, n int) bson.Value {
	vs := make([]bson.Value, n)
	for i := range vs {
		vs[i] = g.value(depth - 1)
	}
	return bson.ArrayOf(vs...)
}

// argument suits the operator's shape most of the time.
func (g *generator) argument(op Operator, depth int) bson.Value {
	switch s := op.Shape.(type) {
	case unary:
		return g.list(depth, 1)
	case dyadic:
		return g.list(depth, 2)
	case nary:
		return g.list(depth, min(s.max, s.min+g.r.IntN(3)))
	case lazy:
		return g.list(depth, min(s.max, s.min+g.r.IntN(3)))
	case named:
		return g.fields(s, depth)
	}
	switch op.Name {
	case "$map", "$filter", "$reduce", "$let":
		return g.lambda(op.Name, depth)
	case "$switch":
		branch := bson.Build().Value("case", g.value(depth-1)).Value("then", g.value(depth-1)).Doc().Value()
		return bson.Build().Value("branches", bson.ArrayOf(branch)).Value("default", g.value(depth-1)).Doc().Value()
	case "$convert":
		to := bson.String(g.pick([]string{"int", "long", "double", "decimal", "string", "bool", "date", "objectId", "binData"}))
		return bson.Build().Value("input", g.value(depth-1)).Value("to", to).String("format", "auto").Value("onNull", g.value(depth-1)).Doc().Value()
	case "$sortArray":
		return bson.Build().Value("input", g.value(depth-1)).Int32("sortBy", 1).Doc().Value()
	case "$zip":
		return bson.Build().Value("inputs", g.list(depth, 2)).Doc().Value()
	case "$dateFromParts":
		return bson.Build().Int32("year", 2024).Value("month", g.value(depth-1)).Value("day", g.value(depth-1)).Doc().Value()
	case "$median":
		return bson.Build().Value("input", g.value(depth-1)).String("method", "approximate").Doc().Value()
	}
	return g.list(depth, 1+g.r.IntN(2))
}

func (g *generator) fields(s named, depth int) bson.Value {
	b := bson.Build()
	for _, p := range s.params {
		if p.missing != 0 || g.r.IntN(3) == 0 {
			v := g.value(depth - 1)
			switch p.name { // texts that the operator takes, or all ends early
			case "unit":
				v = bson.String(g.pick(unitNames()))
			case "timezone":
				v = bson.String(g.pick([]string{"UTC", "Europe/Berlin", "+05:30"}))
			case "format":
				v = bson.String(g.pick([]string{"%Y-%m-%d", "%H:%M:%S.%L %z", "%G-W%V-%u"}))
			}
			b.Value(p.name, v)
		}
	}
	return b.Doc().Value()
}

func (g *generator) lambda(op string, depth int) bson.Value {
	b := bson.Build()
	with := func(vars ...string) bson.Value {
		n := len(g.vars)
		g.vars = append(g.vars, vars...)
		v := g.value(depth - 1)
		g.vars = g.vars[:n]
		return v
	}
	switch op {
	case "$let":
		return b.Object("vars").Value("x", g.value(depth-1)).End().Value("in", with("x")).Doc().Value()
	case "$map":
		return b.Value("input", g.value(depth-1)).Value("in", with("this")).Doc().Value()
	case "$filter":
		return b.Value("input", g.value(depth-1)).Value("cond", with("this")).Doc().Value()
	}
	return b.Value("input", g.value(depth-1)).Value("initialValue", g.value(depth-1)).Value("in", with("this", "value")).Doc().Value()
}

// doc is a document whose fields have what their names promise, or anything.
func (g *generator) doc() bson.Doc {
	b := bson.Build()
	for it := bson.MustDoc(`{a: 5, b: {c: 2.5}, s: "some text", d: ISODate("2024-02-29T12:30:45.678Z"), arr: [{k: 1, v: "x"}, {k: 2}, 3, [4]]}`).Iter(); it.Next(); {
		switch g.r.IntN(4) {
		case 0:
			b.Value(it.Key(), bson.MustParse(g.pick(g.leaves())))
		case 1:
			b.Value(it.Key(), bson.ArrayOf(bson.MustParse(g.pick(g.leaves())), it.Value()))
		default:
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Doc()
}

// tryRandom evaluates one expression: never a panic, an error without MongoDB's code, or bytes that are no BSON; and what is
// written back parses again and has the same value.
func tryRandom(t *testing.T, seed uint64) (evaluated bool) {
	g := &generator{r: rand.New(rand.NewPCG(seed, 1)), ops: usable()}
	arg := g.value(4)
	defer func() {
		if x := recover(); x != nil {
			t.Fatalf("seed %d: %v panics: %v", seed, arg.Text(), x)
		}
	}()
	p := testParser()
	e, err := p.Parse(arg, nil)
	if err != nil {
		checkError(t, seed, arg, err)
		return false
	}
	env := p.NewEnv()
	env.Root = g.doc()
	v, err := e.Eval(env)
	if err != nil {
		checkError(t, seed, arg, err)
		return false
	}
	d := bson.Build().Value("v", v).Doc()
	if err := bson.Validate(d, bson.MaxDepth); err != nil {
		t.Fatalf("seed %d: %s gives no BSON: %v", seed, arg.Text(), err)
	}
	again, err := testParser().Parse(e.Value(), nil)
	if err != nil {
		t.Fatalf("seed %d: %s, written back as %s: %v", seed, arg.Text(), e.Value().Text(), err)
	}
	if w, err := again.Eval(env); err != nil || !bson.Identical(v, w) {
		t.Fatalf("seed %d: %s is %s, but written back as %s it is %s %v", seed, arg.Text(), v.Text(), e.Value().Text(), w.Text(), err)
	}
	return true
}

// usable leaves out JavaScript, which is slow to start.
func usable() []Operator {
	var out []Operator
	for _, op := range Operators() {
		if op.Name != "$function" {
			out = append(out, op)
		}
	}
	return out
}

func checkError(t *testing.T, seed uint64, arg bson.Value, err error) {
	if e, ok := err.(*mongoerr.Error); !ok || e.Code == 0 {
		t.Fatalf("seed %d: %s: an error without a code: %v", seed, arg.Text(), err)
	}
}

// tryFor makes the test longer: go test ./internal/expr -run RandomExpressions -timeout 0 -args -for 30m
var tryFor = flag.Duration("for", 0, "for how long to try random expressions")

const (
	fewest = 6000
	// maxTryTime is far more than any random expression takes.
	maxTryTime = time.Minute
	// maxHeapGrowth is what may be left behind when all are tried.
	maxHeapGrowth = 64 << 20
)

// TestRandomExpressions tries many: none panics, hangs, gives what is no BSON, or leaves memory behind.
func TestRandomExpressions(t *testing.T) {
	seed := testseed.Of(t)
	var at atomic.Uint64
	defer watch(seed, &at)()
	started, good, before := clock.Wall().Now(), uint64(0), int64(0)
	for n := uint64(0); n < fewest || clock.Since(clock.Wall(), started) < *tryFor; n++ {
		at.Store(n)
		if n == fewest/2 { // what is kept for good is there
			before = testheap.Bytes()
		}
		if tryRandom(t, seed+n) {
			good++
		}
	}
	n := at.Load() + 1
	t.Logf("seed %d: %d of %d have a value", seed, good, n)
	if good < n/10 {
		t.Errorf("only %d of %d expressions have a value: the generator is of no use", good, n)
	}
	if after := testheap.Bytes(); after > before+maxHeapGrowth {
		t.Errorf("seed %d: the heap has grown from %d to %d bytes over %d expressions", seed, before, after, n)
	}
}

// watch ends the process when one expression does not end.
func watch(seed uint64, at *atomic.Uint64) (stop func()) {
	done := make(chan struct{})
	go func() {
		for last := uint64(0); ; last = at.Load() {
			t := clock.Wall().NewTimer(maxTryTime)
			select {
			case <-done:
				t.Stop()
				return
			case <-t.C():
			}
			if at.Load() == last {
				panic(fmt.Sprintf("seed %d: no end within %s", seed+last, maxTryTime))
			}
		}
	}()
	return func() { close(done) }
}

func FuzzExpressions(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { tryRandom(t, seed) })
}

// TestDepthIsBounded nests deeper than documents can.
func TestDepthIsBounded(t *testing.T) {
	v := bson.Int32(1)
	for range 3 * MaxDepth {
		v = bson.Build().Value("$abs", v).Doc().Value()
	}
	if _, err := testParser().Parse(v, nil); !mongoerr.Is(err, mongoerr.Overflow) {
		t.Fatalf("got %v", err)
	}
}
