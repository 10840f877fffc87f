package expr

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

func TestSmoke(t *testing.T) {
	p := NewParser(Options{})
	for in, want := range map[string]string{
		`{$and: [1, "$a"]}`:                     `true`,
		`{$eq: ["$b.c", [1, 2]]}`:               `true`,
		`{x: "$a", y: ["$nope"]}`:               `{ x: 1, y: [ null ] }`,
		`{$or: [{$lt: [1, 2]}, "$$ROOT.nope"]}`: `true`,
	} {
		e, err := p.Parse(bson.MustParse(in), nil)
		if err != nil {
			t.Fatal(in, err)
		}
		env := p.NewEnv()
		env.Root = bson.MustDoc(`{a: 1, b: [{c: 1}, {c: 2}]}`)
		v, err := e.Eval(env)
		if err != nil || v.Text() != want {
			t.Errorf("%s: %s %v, want %s", in, v.Text(), err, want)
		}
	}
}
