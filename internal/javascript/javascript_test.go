package javascript

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestMain makes this program a worker when it is told to.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == workerVerb {
		heap, err := strconv.ParseInt(os.Args[2], 10, 64)
		if err == nil {
			err = Work(os.Stdin, os.Stdout, heap)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const workerVerb = "worker"

// inWorkers is an Engine with workers of little memory.
func inWorkers(t testing.TB) *Engine { return governed(t, nil) }

// governed is one whose workers take their memory from g.
func governed(t testing.TB, g *memory.Governor) *Engine {
	program, err := Executable()
	if err != nil {
		t.Fatal(err)
	}
	e := InWorkers(clock.Wall(), Processes{Command: []string{program, workerVerb}, Memory: 1 << 30, Governor: g})
	t.Cleanup(e.Close)
	return e
}

// engines runs a test with each way to run functions.
func engines(t *testing.T, test func(*testing.T, *Engine)) {
	t.Run("process", func(t *testing.T) { test(t, InProcess(clock.Wall())) })
	t.Run("workers", func(t *testing.T) { test(t, inWorkers(t)) })
}

// TestCall reads cases of testdata: the function's source, and after each "->" a list of arguments.
func TestCall(t *testing.T) { engines(t, testCall) }

func testCall(t *testing.T, e *Engine) {
	datadriven.RunTest(t, "testdata/call.txt", func(t *testing.T, d *datadriven.TestData) string {
		source, calls, _ := strings.Cut(d.Input, "\n->")
		f, err := e.Compile(source, nil)
		if err != nil {
			return fmt.Sprintf("%d %s\n", mongoerr.From(err).Code, err)
		}
		r := e.Runtime(nil)
		var out strings.Builder
		for _, line := range strings.Split(calls, "\n->") {
			args := bson.MustParse("[" + line + "]").Doc().Values(nil)
			this := bson.Missing
			if len(args) > 0 {
				this = args[0]
			}
			v, err := r.Call(f, this, args...)
			if err != nil {
				fmt.Fprintf(&out, "%d %s\n", mongoerr.From(err).Code, err)
				continue
			}
			fmt.Fprintln(&out, v.Text())
		}
		return out.String()
	})
}

// TestPredicate reads cases of testdata: the source, and after each "->" a document; the answer is what holds.
func TestPredicate(t *testing.T) { engines(t, testPredicate) }

func testPredicate(t *testing.T, e *Engine) {
	datadriven.RunTest(t, "testdata/predicate.txt", func(t *testing.T, d *datadriven.TestData) string {
		source, docs, _ := strings.Cut(d.Input, "\n->")
		f, err := e.Compile(source, nil)
		if err != nil {
			return fmt.Sprintf("%d %s\n", mongoerr.From(err).Code, err)
		}
		r := e.Runtime(nil)
		var out strings.Builder
		for _, line := range strings.Split(docs, "\n->") {
			if yes, err := r.Predicate(f, bson.MustDoc(line)); err != nil {
				fmt.Fprintf(&out, "%d %s\n", mongoerr.From(err).Code, err)
			} else {
				fmt.Fprintln(&out, yes)
			}
		}
		return out.String()
	})
}

// TestInterruptEndsCalls: whatever a function does, in the interpreter or in a native function, it ends when the operation does.
func TestInterruptEndsCalls(t *testing.T) {
	engines(t, func(t *testing.T, e *Engine) {
		for _, endless := range []string{"function() { for (;;); }", "function() { sleep(20000); return 1; }"} {
			endsWhenAsked(t, e, endless)
		}
	})
	e := inWorkers(t)
	for _, endless := range []string{
		"function() { return String(7n ** 9999999n).length }",
		"var a = []; for (var i = 0; i < 300000; i++) a.push(i * 7919 % 300007); for (;;) a.sort(function(x, y) { return x - y })",
		"for (;;) Array(1000000).join('x')",
		"var a = []; for (var i = 0; i < 300000; i++) a.push('x' + i); for (;;) JSON.stringify(a)",
		"return /(a+)+\\1$/.test('a'.repeat(40) + 'b')",
	} {
		endsWhenAsked(t, e, endless)
	}
}

// endsWhenAsked fails by the test's own time limit when it does not.
func endsWhenAsked(t *testing.T, e *Engine, source string) {
	t.Helper()
	stop := errors.New("enough")
	var asked atomic.Int64
	r := e.Runtime(func() error {
		if asked.Add(1) > 10 {
			return stop
		}
		return nil
	})
	f, err := e.Compile(source, nil)
	if err != nil {
		t.Fatal(source, err)
	}
	if _, err := r.Call(f, bson.Missing); !errors.Is(err, stop) {
		t.Fatalf("%s: got %v", source, err)
	}
	one, err := e.Compile("sleep(-1) || 1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.interrupt = nil
	if v, err := r.Call(one, bson.Missing); err != nil || v.Double() != 1 {
		t.Fatalf("after an interrupt: %v %v", v, err)
	}
}

// TestInterruptEndsCompile: what the compiler computes ahead of time may take long, too.
func TestInterruptEndsCompile(t *testing.T) {
	stop := errors.New("enough")
	for _, source := range []string{"7n ** 9999999n ** 2n", "(9n ** 9n ** 9n) == this.a"} {
		if _, err := inWorkers(t).Compile(source, func() error { return stop }); !errors.Is(err, stop) {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// TestHostileSource: source that ends a Go program ends a worker at most, and what is asked next is answered.
func TestHostileSource(t *testing.T) {
	e := inWorkers(t)
	stop := errors.New("enough")
	var asked atomic.Int64
	enough := func() error {
		if asked.Add(1) > 50 {
			return stop
		}
		return nil
	}
	r := e.Runtime(enough)
	deep := strings.Repeat("(", 300_000)
	for name, source := range map[string]string{
		"brackets":      deep,
		"minus":         strings.Repeat("- ", 300_000) + "1",
		"not":           strings.Repeat("!", 900_000) + "1",
		"arrows":        "function() { return " + strings.Repeat("a=>", 300_000) + "1 }",
		"conditions":    strings.Repeat("1?1:", 200_000) + "1",
		"blocks":        strings.Repeat("{", 300_000) + strings.Repeat("}", 300_000),
		"arrays":        strings.Repeat("[", 300_000) + strings.Repeat("]", 300_000),
		"templates":     strings.Repeat("`${", 200_000),
		"sums":          strings.Repeat("1+", 300_000) + "this.a",
		"eval":          "function() { return eval('('.repeat(3000000)) }",
		"Function":      "function() { return Function('('.repeat(3000000))() }",
		"constructor":   "function() { return (function() {}).constructor('('.repeat(3000000))() }",
		"JSON.parse":    "function() { return JSON.parse('['.repeat(30000000)) }",
		"RegExp":        "function() { return new RegExp('('.repeat(3000000)) }",
		"RegExp nested": "function() { return new RegExp('(?='.repeat(3000000)) }",
		"stringify":     "function() { var a = []; for (var i = 0; i < 5000000; i++) a = [a]; return JSON.stringify(a) }",
		"join":          "function() { var a = []; for (var i = 0; i < 5000000; i++) a = [a]; return String(a) }",
		"flat":          "function() { var a = []; for (var i = 0; i < 5000000; i++) a = [a]; return a.flat(Infinity) }",
		"repeat":        "function() { return 'x'.repeat(1e13) }",
		"pad":           "function() { return 'x'.padStart(1e12) }",
		"array":         "function() { return new Array(4294967295).fill(1) }",
		"typed array":   "function() { return new Uint8Array(1e12) }",
		"sparse array":  "function() { var a = []; a[4294967294] = 1; return a.concat(a).sort() }",
		"sparse splice": "function() { var a = [1]; a[4294967290] = 1; a.splice(1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9); return a.length }",
		"doubling":      "function() { for (var s = 'xxxxxxxxxxxxxxxx'; ; ) s += s }",
		"pushing":       "function() { for (var a = []; ; ) a.push({a: 1}) }",
		"bigint":        "function() { for (var b = 3n; ; ) b *= b }",
		"proxy":         "function() { var p = {}; for (var i = 0; i < 1000000; i++) p = new Proxy(p, {}); return p.x }",
		"prototypes":    "function() { var p = {}; for (var i = 0; i < 3000000; i++) p = Object.create(p); return p.x }",
		"bound":         "function() { var f = function() {}; for (var i = 0; i < 3000000; i++) f = f.bind(1); return f() }",
		"deep result":   "function() { var a = {}; for (var i = 0; i < 3000000; i++) a = {a: a}; return a }",
		"long array":    "function() { return {length: 1e9, __proto__: Array.prototype} }",
		"huge array":    "function() { var a = []; a.length = 4294967295; return a }",
	} {
		start := clock.Wall().Now()
		asked.Store(0)
		f, err := e.Compile(source, enough)
		if err == nil {
			_, err = r.Call(f, bson.Missing)
		}
		t.Logf("%-14s %6d ms: %.100v", name, clock.Since(clock.Wall(), start).Milliseconds(), err)
		asked.Store(0)
		if err != nil && !errors.Is(err, stop) && !mongoerr.Is(err, mongoerr.JSInterpreterFailure) && !mongoerr.Is(err, 17279) && !mongoerr.Is(err, 17260) {
			t.Errorf("%s: %v", name, err)
		}
		alive, err := e.Compile("function() { return [1, 2].length }", nil)
		if err != nil {
			t.Fatalf("after %s: %v", name, err)
		}
		if v, err := r.Call(alive, bson.Missing); err != nil || v.AsDouble() != 2 {
			t.Fatalf("after %s: %v %v", name, v, err)
		}
	}
}

// TestWorkersAreShared: more Runtimes than workers get along, each with its own variables, and with what they were given.
func TestWorkersAreShared(t *testing.T) {
	e := inWorkers(t)
	f, err := e.Compile("function(n) { if (typeof mine != 'undefined' && mine != n) throw 'not mine'; mine = n; return given + n }", nil)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for n := range 3 * cap(e.pool.turns) {
		all.Go(func() {
			r := e.Runtime(nil)
			r.Global("given", bson.Int32(int32(1000*n)))
			for range 20 {
				if v, err := r.Call(f, bson.Missing, bson.Int32(int32(n))); err != nil || v.AsDouble() != float64(1001*n) {
					t.Errorf("%d: %v %v", n, v, err)
				}
			}
		})
	}
	all.Wait()
	if n := len(e.pool.mu.workers); n > cap(e.pool.turns) {
		t.Errorf("%d workers, of %d", n, cap(e.pool.turns))
	}
}

// TestVariablesStay: a Runtime that nobody disturbs keeps what functions left.
func TestVariablesStay(t *testing.T) {
	engines(t, func(t *testing.T, e *Engine) {
		r := e.Runtime(nil)
		f, err := e.Compile("function() { if (typeof n == 'undefined') n = 0; return ++n }", nil)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= 3; n++ {
			if v, err := r.Call(f, bson.Missing); err != nil || v.AsDouble() != float64(n) {
				t.Fatalf("%v %v", v, err)
			}
		}
	})
}

func TestEmit(t *testing.T) {
	engines(t, func(t *testing.T, e *Engine) {
		f, err := e.Compile("function() { for (var i = 0; i < this.n; i++) emit(i, 'x'.repeat(this.size)) }", nil)
		if err != nil {
			t.Fatal(err)
		}
		r := e.Runtime(nil)
		for _, c := range []struct{ n, size int }{{0, 1}, {3, 1}, {5000, 1000}} {
			n := 0
			doc := bson.Build().Int32("n", int32(c.n)).Int32("size", int32(c.size)).Doc()
			err := r.Emit(f, doc, func(key, value bson.Value) error {
				if key.AsDouble() != float64(n) || len(value.Str()) != c.size {
					t.Fatal(key, value)
				}
				n++
				return nil
			})
			if err != nil || n != c.n {
				t.Errorf("%v: %d, %v", c, n, err)
			}
		}
		full := errors.New("full")
		for range 2 { // and goes on after it
			if err := r.Emit(f, bson.MustDoc("{n: 5000, size: 1000}"), func(bson.Value, bson.Value) error { return full }); !errors.Is(err, full) {
				t.Error(err)
			}
		}
	})
}

// TestPlain: what may run in the server's own process.
func TestPlain(t *testing.T) {
	for source, want := range map[string]bool{
		"this.a == 1":                               true,
		"this.a > this.b && obj.c[0] != 'x'":        true,
		"function() { return this.a % 2 == 0; }":    true,
		"function(a, b) { return a + b * 2 - 1.5 }": true,
		"!(this.a.b.length >= 3) ? [1, 2] : null":   true,
		"this.a ** 9":                               false,
		"this.a--":                                  false,
		"this.a++":                                  false,
		"this.a = 1":                                false,
		"this.a += 1":                               false,
		"this.f()":                                  false,
		"this['f']()":                               false,
		"this.f(1)":                                 false,
		"(this.f)(1)":                               false,
		"this.a.repeat(9)":                          false,
		"sleep(1)":                                  false,
		"new Date":                                  false,
		"/a/.test(this.a)":                          false,
		"this.a / 2":                                false,
		"`a`":                                       false,
		"2n == this.a":                              false,
		"'\\x41' == this.a":                         false,
		"(a => a)":                                  false,
		"function() { for (;;); return 1 }":         false,
		"function() { return {a: 1} }":              false,
		"function() { return 1 } + 1":               false,
		"x == 1":                                    false,
		"this.a in this":                            false,
		"[...this.a]":                               false,
		strings.Repeat("(", 300):                    false,
		"this.a" + strings.Repeat("+this.a", 9):     false,
		"":                                          false,
	} {
		if got := plain(function(source)); got != want {
			t.Errorf("%q: %v", source, got)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	for name, e := range map[string]*Engine{"process": InProcess(clock.Wall()), "workers": inWorkers(b)} {
		for kind, source := range map[string]string{"plain": "function(x) { return x * 2 }", "any": "function(x) { var y = x * 2; return y }"} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				r := e.Runtime(nil)
				f, err := e.Compile(source, nil)
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					if _, err := r.Call(f, bson.Missing, bson.Int32(2)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// TestRuntimeMoves: whoever comes back to a worker that he has had, after he was with another, is understood there.
func TestRuntimeMoves(t *testing.T) {
	e := inWorkers(t)
	var fs []*Function
	for i := range 3 { // none of which is plain
		f, err := e.Compile(fmt.Sprintf("function() { for (;;) return %d }", i), nil)
		if err != nil {
			t.Fatal(err)
		}
		fs = append(fs, f)
	}
	r := e.Runtime(nil)
	call := func(i int) {
		t.Helper()
		if v, err := r.Call(fs[i], bson.Missing); err != nil || v.AsDouble() != float64(i) {
			t.Errorf("function %d: %s, %v", i, v, err)
		}
	}
	call(0)
	busy := make(chan struct{})
	taken, done := make(chan struct{}), make(chan error)
	go func() { // a function is checked, by the same worker
		done <- e.pool.do(nil, nil, func(*worker) error {
			close(taken)
			<-busy
			return nil
		})
	}()
	<-taken
	call(1) // so it is with another
	close(busy)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for i := range fs {
		call(i)
	}
}

// TestResetFails: whose worker went to one whose global variables cannot be made has his own again when he comes back.
func TestResetFails(t *testing.T) {
	e := inWorkers(t)
	f, err := e.Compile("function() { for (;;) return x }", nil)
	if err != nil {
		t.Fatal(err)
	}
	own := make([]*Runtime, cap(e.pool.turns)) // as many as there may be workers
	call := func(i int) {
		t.Helper()
		if v, err := own[i].Call(f, bson.Missing); err != nil || v.AsDouble() != float64(i) {
			t.Errorf("%d: %s, %v", i, v, err)
		}
	}
	for i := range own {
		own[i] = e.Runtime(nil)
		own[i].Global("x", bson.Int32(int32(i)))
		call(i)
	}
	bad := e.Runtime(nil)
	bad.Global("x", bson.Int32(-1))
	bad.Global("y", bson.MustParse("[Code('function(')]").Doc().Index(0))
	if _, err := bad.Call(f, bson.Missing); err == nil {
		t.Error("a function that is none was made a global variable")
	}
	for i := range own {
		call(i)
	}
}
