package tikvkv

import (
	"errors"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
)

// TestLate: who waits for a commit no longer is told what became of it, once, and by nobody who does not know.
func TestLate(t *testing.T) {
	gone := errors.New("the client has gone")
	for _, test := range []struct {
		name    string
		ends    []error
		visible []bool
	}{
		{"visible", []error{nil}, []bool{true}},
		{"in conflict", []error{kv.ErrConflict}, []bool{false}},
		{"nobody knows", []error{kv.ErrUndetermined}, nil},
		{"once", []error{kv.ErrUndetermined, nil, nil}, []bool{true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, p := &committer{}, &pending{done: make(chan struct{})}
			err := c.leave(p, gone)
			if !errors.Is(err, kv.ErrUndetermined) || !errors.Is(err, gone) {
				t.Errorf("it is told %v", err)
			}
			late, ok := errors.AsType[*kv.Late](err)
			if !ok {
				t.Fatalf("it is told %v", err)
			}
			for _, end := range test.ends {
				c.endAll([]*pending{p}, end)
			}
			for _, want := range test.visible {
				select {
				case visible := <-late.Visible:
					if visible != want {
						t.Errorf("it is said to be visible: %v", visible)
					}
				default:
					t.Error("it is not told")
				}
			}
			if len(late.Visible) > 0 {
				t.Error("it is told too much")
			}
		})
	}
}
