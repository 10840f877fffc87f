package expr

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/testheap"
)

// times is n times an expression, in one list.
func times(n int, e string) string { return "[" + strings.Repeat(e+", ", n-1) + e + "]" }

// TestMemoryIsBounded has expressions hold many large values at once, which ends soon, and make many one after another,
// which does not hurt.
func TestMemoryIsBounded(t *testing.T) {
	const mega = 1 << 20
	doc := bson.Build().String("s", strings.Repeat("x", 8*mega)).Array("n")
	for i := range 100_000 {
		doc.Int32(bson.IndexKey(i), int32(i))
	}
	root := doc.End().Doc()
	const text, numbers = `{$concat: ["$s", "a"]}`, `{$range: [0, 200000]}`
	for _, c := range []struct {
		expr string
		want mongoerr.Code // 0 for none
	}{
		{`{$size: {$concatArrays: ` + times(400, `"$n"`) + `}}`, mongoerr.BSONObjectTooLarge},
		{`{$concatArrays: ["$n", "$n", "$n", null]}`, 0},
		{`{$size: {$concatArrays: ` + times(80, `{$concatArrays: ["$n", "$n"]}`) + `}}`, mongoerr.ExceededMemoryLimit},
		{`{$size: {$setUnion: ` + times(10, `"$n"`) + `}}`, 0},
		{`{$setEquals: ` + times(10, `"$n"`) + `}`, 0},
		{`{$size: {$setIntersection: ` + times(10, `"$n"`) + `}}`, 0},
		{`{$size: {$setIntersection: ` + times(10, numbers) + `}}`, 0},
		{times(150, text), mongoerr.ExceededMemoryLimit},
		{`{$max: ` + times(150, text) + `}`, mongoerr.ExceededMemoryLimit},
		{`{$max: ` + times(150, `"$s"`) + `}`, 0},
		{`{$split: ["$s", "x"]}`, mongoerr.BSONObjectTooLarge},
		{`{$mergeObjects: ` + times(150, `{a: "$s"}`) + `}`, mongoerr.ExceededMemoryLimit},
		{`{$sum: ` + times(150, `{$strLenBytes: `+text+`}`) + `}`, 0},
		{`{$sum: ` + times(50, `{$let: {vars: {v: `+text+`}, in: {$strLenBytes: "$$v"}}}`) + `}`, 0},
		{`{$reduce: {input: {$range: [0, 50]}, initialValue: 0, in: {$add: ["$$value", {$strLenBytes: ` + text + `}]}}}`, 0},
		{`{$strLenBytes: {$reduce: {input: {$range: [0, 50]}, initialValue: "", in: ` + text + `}}}`, 0},
		{strings.Repeat(`{$let: {vars: {v: `+text+`}, in: {$concat: [{$substrBytes: ["$$v", 0, 1]}, `, 30) + `"b"` + strings.Repeat(`]}}}`, 30), mongoerr.ExceededMemoryLimit},
		{strings.Repeat(`{$eq: [`+text+`, `, 30) + `"b"` + strings.Repeat(`]}`, 30), mongoerr.ExceededMemoryLimit},
	} {
		p := testParser()
		e, err := p.Parse(bson.MustParse(c.expr), nil)
		if err != nil {
			t.Fatal(err)
		}
		env := p.NewEnv()
		env.Root = root
		for range 2 { // what has ended with an error, too, leaves nothing for the next time
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := e.Eval(env)
			runtime.ReadMemStats(&after)
			if got := codeOf(err); got != c.want {
				t.Errorf("%.80s…: %v", c.expr, err)
			}
			if n := (after.TotalAlloc - before.TotalAlloc) / mega; c.want != 0 && n > 500 { // the race detector has pools lose some of it
				t.Errorf("%.80s… took %d MB until it ended", c.expr, n)
			}
			if env.live != 0 || len(env.stack) != 0 {
				t.Errorf("%.80s… leaves %d bytes and %d values", c.expr, env.live, len(env.stack))
			}
		}
	}
}

func codeOf(err error) mongoerr.Code {
	if err == nil {
		return 0
	}
	return mongoerr.From(err).Code
}

// TestElementsAreCounted ends operators that do nothing but take arrays apart.
func TestElementsAreCounted(t *testing.T) {
	stop := errors.New("stop")
	for _, text := range []string{`{$setEquals: ` + times(1000, `"$n"`) + `}`, `{$mergeObjects: ` + times(1000, `"$o"`) + `}`} {
		doc := bson.Build().Array("n")
		for i := range 1000 {
			doc.Int32(bson.IndexKey(i), int32(i))
		}
		doc.End().Object("o")
		for i := range 1000 {
			doc.Int32(bson.IndexKey(i), int32(i))
		}
		p := testParser()
		e, err := p.Parse(bson.MustParse(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		env := p.NewEnv()
		env.Root, env.Interrupt = doc.End().Doc(), func() error { return stop }
		if _, err := e.Eval(env); !errors.Is(err, stop) {
			t.Errorf("%.30s…: %v", text, err)
		}
	}
}

// TestConstantsAreBounded: what is computed while an expression is parsed is dropped where it is much more than what was
// written, and computed anew when documents come, within the limits that hold then.
func TestConstantsAreBounded(t *testing.T) {
	const range12MB = `{$range: [0, 1000000]}`
	vars := strings.Builder{}
	for i := range 12 {
		fmt.Fprintf(&vars, "v%d: %s, ", i, range12MB)
	}
	p := testParser()
	before := testheap.Bytes()
	e, err := p.Parse(bson.MustParse(`{$let: {vars: {`+vars.String()+`}, in: {$size: "$$v11"}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if after := testheap.Bytes(); after > before+2*maxComputedBytes {
		t.Errorf("the expression holds %d bytes", after-before)
	}
	if _, err := e.Eval(p.NewEnv()); codeOf(err) != mongoerr.ExceededMemoryLimit {
		t.Errorf("evaluated: %v", err)
	}

	p = testParser()
	for range 8 { // what has been used up by others is not held
		if e, err = p.Parse(bson.MustParse(`{$size: `+range12MB+`}`), nil); err != nil {
			t.Fatal(err)
		}
		if _, constant := Constant(e); !constant {
			t.Fatal("not computed")
		}
	}
	if _, err := p.Let(bson.MustDoc(`{`+vars.String()+`}`), nil); codeOf(err) != mongoerr.ExceededMemoryLimit {
		t.Errorf("let: %v", err)
	}
}

// TestArrayBytes has sizes of arrays computed as they come to.
func TestArrayBytes(t *testing.T) {
	for _, n := range []int{0, 1, 9, 10, 11, 99, 100, 101, 1000, 12345} {
		vs := make([]bson.Value, n)
		for i := range vs {
			vs[i] = bson.String("")
		}
		if got, want := arrayBytes(n, emptyStringBytes), len(bson.ArrayOf(vs...).Data); got != want {
			t.Errorf("%d empty strings are %d bytes, not %d", n, want, got)
		}
	}
}
