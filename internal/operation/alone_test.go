package operation

import (
	"context"
	"testing"

	"github.com/ebbdb/ebb/internal/clock"
)

// TestFinishTellsWhoElseHasIt: an operation may be used again only when nobody was given it, nor something that ends with it.
func TestFinishTellsWhoElseHasIt(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(*Registry, *Operation, context.Context)
		alone bool
	}{
		"nobody":          {func(*Registry, *Operation, context.Context) {}, true},
		"looked at":       {func(r *Registry, _ *Operation, _ context.Context) { r.Each(func(*Operation) {}) }, true},
		"its error asked": {func(_ *Registry, _ *Operation, ctx context.Context) { _ = ctx.Err() }, true},
		"listed":          {func(r *Registry, _ *Operation, _ context.Context) { r.Running() }, false},
		"killed":          {func(r *Registry, o *Operation, _ context.Context) { r.Kill(o.ID) }, false},
		"waited for":      {func(_ *Registry, _ *Operation, ctx context.Context) { ctx.Done() }, false},
		"a context made":  {func(_ *Registry, _ *Operation, ctx context.Context) { _, cancel := context.WithCancel(ctx); cancel() }, false},
	} {
		r, o := NewRegistry(clock.Wall()), &Operation{}
		c.do(r, o, r.Start(t.Context(), o))
		if alone := r.Finish(o); alone != c.alone {
			t.Errorf("%s: alone is %v", name, alone)
		}
		o.Clear()
		if o.Killed() || r.Start(t.Context(), o).Err() != nil {
			t.Errorf("%s: what was cleared has not begun", name)
		}
		r.Finish(o)
	}
}
