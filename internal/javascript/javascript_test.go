package javascript

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestCall reads cases of testdata: the function's source, and after each "->" a list of arguments.
func TestCall(t *testing.T) {
	datadriven.RunTest(t, "testdata/call.txt", func(t *testing.T, d *datadriven.TestData) string {
		source, calls, _ := strings.Cut(d.Input, "\n->")
		f, err := Compile(source)
		if err != nil {
			return fmt.Sprintf("%d %s\n", mongoerr.From(err).Code, err)
		}
		r := New(clock.NewFake(clock.Wall().Now()), nil)
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
func TestPredicate(t *testing.T) {
	datadriven.RunTest(t, "testdata/predicate.txt", func(t *testing.T, d *datadriven.TestData) string {
		source, docs, _ := strings.Cut(d.Input, "\n->")
		f, err := Compile(source)
		if err != nil {
			return fmt.Sprintf("%d %s\n", mongoerr.From(err).Code, err)
		}
		r := New(clock.NewFake(clock.Wall().Now()), nil)
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

func TestInterruptEndsLoop(t *testing.T) {
	stop := errors.New("enough")
	r := New(clock.Wall(), func() error { return stop })
	for _, endless := range []string{"function() { for (;;); }", "function() { sleep(20000); return 1; }"} {
		f, err := Compile(endless)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Call(f, bson.Missing); !errors.Is(err, stop) {
			t.Fatalf("got %v", err)
		}
	}
	one, _ := Compile("sleep(-1) || 1")
	r.interrupt = nil
	if v, err := r.Call(one, bson.Missing); err != nil || v.Double() != 1 {
		t.Fatalf("after an interrupt: %v %v", v, err)
	}
}

func BenchmarkCall(b *testing.B) {
	r := New(clock.Wall(), nil)
	f, _ := Compile("function(x) { return x * 2 }")
	for b.Loop() {
		if _, err := r.Call(f, bson.Missing, bson.Int32(2)); err != nil {
			b.Fatal(err)
		}
	}
}
