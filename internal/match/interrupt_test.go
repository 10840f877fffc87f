package match

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
)

// TestMatchingAsks: a filter of n parts over an array of n elements takes n² steps, and asks meanwhile whether the operation goes on.
func TestMatchingAsks(t *testing.T) {
	const n = 400
	stop := errors.New("stop")
	list := func(of string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, of+", ", i)
		}
		return "[" + strings.TrimSuffix(b.String(), ", ") + "]"
	}
	doc := bson.MustDoc("{a: " + list("%d") + ", d: " + list("{x: %d}") + ", s: " + list("'s%d'") + "}")
	for _, filter := range []string{
		"{a: {$all: " + list("%d") + "}}",
		"{d: {$elemMatch: {$or: " + list("{x: -1, y: %d}") + "}}}",
		"{a: {$elemMatch: {$in: " + list("/a%d/") + "}}}",
		"{$or: " + list("{a: {$gt: 1000%d}}") + "}",
		"{$nor: " + list("{'d.x': {$gt: 1000%d}}") + "}",
		"{s: {$in: " + list("/a%d/") + "}}",
		"{$jsonSchema: {properties: {a: {items: {not: {anyOf: " + list("{minimum: 1000%d}") + "}}}}}}",
		"{$jsonSchema: {properties: {d: {items: {not: {required: ['x', 'y']}}}, a: {items: {not: {oneOf: " + list("{minimum: 1000%d}") + "}}}}}}",
	} {
		exprs := expr.NewParser(expr.Options{})
		f, err := NewParser().Parse(bson.MustDoc(filter), Options{Allow: AllowMatch, Exprs: exprs})
		if err != nil {
			t.Fatal(err)
		}
		asked, env := 0, exprs.NewEnv()
		env.Interrupt = func() error { asked++; return nil }
		if _, err := f.Match(env, doc); err != nil || asked < n*n/4/1024 {
			t.Errorf("%.40s… has asked %d times, %v", filter, asked, err)
		}
		asked, env.Interrupt = 0, func() error { asked++; return stop }
		if _, err := f.Match(env, doc); !errors.Is(err, stop) || asked != 1 {
			t.Errorf("%.40s…: %v, having asked %d times", filter, err, asked)
		}
	}
}

// TestMatchingLongStringsAsks: what is held against a string of megabytes asks each time, since a collation takes long for it.
func TestMatchingLongStringsAsks(t *testing.T) {
	exprs := expr.NewParser(expr.Options{})
	f, err := NewParser().Parse(bson.MustDoc("{s: {$gt: 'b'}}"), Options{Allow: AllowMatch, Exprs: exprs})
	if err != nil {
		t.Fatal(err)
	}
	doc := bson.Build().String("s", strings.Repeat("a", 2<<20)).Doc()
	asked, env := 0, exprs.NewEnv()
	env.Interrupt = func() error { asked++; return nil }
	const times = 5
	for range times {
		if _, err := f.Match(env, doc); err != nil {
			t.Fatal(err)
		}
	}
	if asked != times {
		t.Errorf("has asked %d times, not %d", asked, times)
	}
}

// TestParsingAsks: a filter of very many conditions is given up while it is read.
func TestParsingAsks(t *testing.T) {
	stop := errors.New("stop")
	exprs := expr.NewParser(expr.Options{Interrupt: func() error { return stop }})
	b := bson.Build().Array("$or")
	for i := range 2 * conditionsPerAsk {
		b.Value(bson.IndexKey(i), bson.Build().Int32("a", int32(i)).Doc().Value())
	}
	if _, err := NewParser().Parse(b.End().Doc(), Options{Allow: AllowMatch, Exprs: exprs}); !errors.Is(err, stop) {
		t.Error(err)
	}
}
