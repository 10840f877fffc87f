package update

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/projection"
)

// TestUpdatesAsk: an update that takes many steps for one document asks meanwhile whether the operation goes on.
func TestUpdatesAsk(t *testing.T) {
	const n = 400
	stop := errors.New("stop")
	list := func(of, between string, n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(of, "%d", fmt.Sprint(i)) + between)
		}
		return strings.TrimSuffix(b.String(), between)
	}
	doc := bson.MustDoc("{_id: 1, a: [" + list("%d", ", ", n) + "], d: [" + list("{x: %d}", ", ", 10*n) + "]}")
	for _, c := range []struct{ update, filters string }{
		{"{$set: {" + list("'d.$[e%d].y': 1", ", ", n) + "}}", list("{'e%d.x': %d}", ", ", n)},
		{"{$pull: {a: {$nin: [" + list("/a%d/", ", ", n) + "]}}}", ""},
		{"{$pull: {d: {$or: [" + list("{x: {$gt: 5000%d}}", ", ", n) + "]}}}", ""},
		{"{$push: {d: {$each: [], $sort: {x: -1, y: 1}}}}", ""},
		{"{$push: {a: {$each: [" + list("5", ", ", 10*n) + "], $sort: -1}}}", ""},
	} {
		exprs := expr.NewParser(expr.Options{})
		o := Options{Exprs: exprs}
		if c.filters != "" {
			o.ArrayFilters = bson.MustParse("[" + c.filters + "]").Doc().Values(nil)
		}
		u, err := NewParser(match.NewParser(), projection.NewParser(match.NewParser())).Parse(bson.MustParse(c.update), o)
		if err != nil {
			t.Fatal(err)
		}
		asked, env := 0, exprs.NewEnv()
		env.Interrupt = func() error { asked++; return nil }
		if _, _, err := u.Apply(nil, doc, Args{Env: env}); err != nil || asked == 0 {
			t.Errorf("%.40s… has asked %d times, %v", c.update, asked, err)
		}
		asked, env.Interrupt = 0, func() error { asked++; return stop }
		if _, _, err := u.Apply(nil, doc, Args{Env: env}); !errors.Is(err, stop) || asked != 1 {
			t.Errorf("%.40s…: %v, having asked %d times", c.update, err, asked)
		}
	}
}
