package policy

import (
	"testing"

	"github.com/ebbdb/ebb/internal/index"
)

// TestChange: what a change of a rule means for documents that have expired, and for those that have not.
func TestChange(t *testing.T) {
	d := &index.Definition{ID: 5, Name: "a"}
	own := func(seconds, cell int64) *Rule { return &Rule{Kind: Series, Seconds: seconds, Cell: cell} }
	for i, c := range []struct {
		was, now      *Rule
		loosened, due bool // due: more may be
	}{
		{own(10, 0), own(10, 0), false, false},
		{own(10, 0), own(9, 0), false, true},
		{own(10, 0), own(11, 0), true, false},
		{own(10, 0), own(-1, 0), true, false},
		{own(-1, 0), own(-1, 0), false, false},
		{own(-1, 0), own(10, 0), false, true},
		{own(10, 5), own(10, 9), true, false},
		{own(10, 5), own(10, 4), false, true},
	} {
		after := NewRules(nil, c.now, c.now.Cell)
		if got := c.was.IsLoosened(after, false); got != c.loosened {
			t.Errorf("%d: loosened: %v", i, got)
		}
		if got := c.now.IsTighter(c.was); got != c.due {
			t.Errorf("%d: tighter: %v", i, got)
		}
		if now, ok := after.Counterpart(c.was); !ok || now.Seconds != c.now.Seconds || after.Namesake(c.was) != now {
			t.Errorf("%d: %+v stands where %+v stood", i, now, c.was)
		}
	}
	gone := &Rule{Kind: Field, Seconds: 10, Index: d}
	after := NewRules(nil, own(10, 0), 0)
	if _, there := after.Counterpart(gone); there || !gone.IsLoosened(after, false) || after.Namesake(gone) != nil || gone.IndexID() != 5 {
		t.Error("a rule whose index is gone is there")
	}
}
