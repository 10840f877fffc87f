package expr

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
)

// heavyLeaves are fields of heavyDoc, and numbers that make much of them.
func heavyLeaves() []string {
	return []string{`"$numbers"`, `"$strings"`, `"$text"`, `"$object"`, `"$nested"`, `"$pairs"`, `"$words"`, `1000000`, `2`, `"$binary"`, `","`, `"$documents"`}
}

// heavyDoc is about as large as a document may be.
func heavyDoc(bytes int) bson.Doc {
	part := bytes / 10
	b := bson.Build()
	array := func(name string, of func(i int) bson.Value) {
		b.Array(name)
		for i, start := 0, b.Len(); b.Len()-start < part; i++ {
			b.Value(bson.IndexKey(i), of(i))
		}
		b.End()
	}
	array("numbers", func(i int) bson.Value { return bson.Int32(int32(i * 7919 % 1000003)) })
	array("strings", func(i int) bson.Value { return bson.String(fmt.Sprint("s", i*7919%1000003)) })
	array("nested", func(i int) bson.Value { return bson.ArrayOf(bson.Int32(int32(i)), bson.String("b")) })
	array("pairs", func(i int) bson.Value { return bson.ArrayOf(bson.String(fmt.Sprint("k", i)), bson.Int32(int32(i))) })
	array("documents", func(i int) bson.Value {
		return bson.Build().String("k", fmt.Sprint("k", i)).Int32("v", int32(i)).Doc().Value()
	})
	b.String("text", strings.Repeat("a,b", part/3)).String("words", strings.Repeat("a", part)).Binary("binary", 0, make([]byte, part))
	b.Object("object")
	for i, start := 0, b.Len(); b.Len()-start < part; i++ {
		b.Int32(fmt.Sprint("f", i), int32(i))
	}
	return b.End().Doc()
}

const (
	// heavyTries is how often each operator is tried, alone and in a loop.
	heavyTries = 4
	// asksLeft is how often the operation goes on when asked.
	asksLeft = 5
	// longest is far more than may pass until an operator ends or asks: a second is what is allowed, on a machine with time.
	longest = 10 * time.Second
	// notable is what the log tells of.
	notable = 500 * time.Millisecond
)

// TestHeavyArguments: each operator, given as much as a document may hold, by itself or once for each of a million elements,
// ends soon, or asks soon whether the operation goes on.
func TestHeavyArguments(t *testing.T) {
	stop := errors.New("stop")
	doc := heavyDoc(14 << 20)
	r := rand.New(rand.NewPCG(1, 2))
	tried := 0
	for _, op := range Operators() {
		for n := range 2 * heavyTries {
			g := &generator{r: r, ops: []Operator{op}, heavy: true}
			if n%2 == 1 {
				g.vars = []string{"this"}
			}
			arg := bson.Build().Value(op.Name, g.argument(op, 1)).Doc().Value()
			if n%2 == 1 {
				arg = bson.Build().Object("$map").String("input", "$numbers").Value("in", arg).End().Doc().Value()
			}
			p := testParser()
			e, err := p.Parse(arg, nil)
			if err != nil {
				continue
			}
			tried++
			env := p.NewEnv()
			asked := 0
			env.Root, env.Interrupt = doc, func() error {
				if asked++; asked > asksLeft {
					return stop
				}
				return nil
			}
			start := clock.Wall().Now()
			_, err = e.Eval(env)
			if d := clock.Since(clock.Wall(), start); d > longest {
				t.Errorf("%s: %v, then %v", arg, d, err)
			} else if d > notable {
				t.Logf("%.200s: %v, then %.100v", arg, d, err)
			}
		}
	}
	if least := len(Operators()); tried < least {
		t.Errorf("only %d of %d operators were parsed: the generator is of no use", tried, least)
	}
}

// TestParsingAsks: what is much to read, or to compile, asks whether the operation goes on.
func TestParsingAsks(t *testing.T) {
	stop := errors.New("stop")
	for _, text := range []string{times(2*ticksPerAsk, `{$add: ["$a", 1]}`), times(2*patternsPerAsk, `{$regexMatch: {input: "$a", regex: "x{100}"}}`)} {
		asked := 0
		p := NewParser(Options{Interrupt: func() error { asked++; return stop }})
		if _, err := p.Parse(bson.MustParse(text), nil); !errors.Is(err, stop) || asked != 1 {
			t.Errorf("%.60s: asked %d times, %v", text, asked, err)
		}
	}
}
