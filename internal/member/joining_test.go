package member

import (
	"context"
	"errors"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/replset"
)

// TestWhoBeginsASetIsInterrupted: while a server is asked to join a set, who has it begin one waits in the database that gives way when it joins. The join would
// wait for him, and he for the join.
func TestWhoBeginsASetIsInterrupted(t *testing.T) {
	g := New(Options{Name: "rs"})
	joined, err := g.lockJoining(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupt(errDeposed())
	if err := g.Begin(ctx, &replset.Config{}, 0, nil); !errors.Is(err, context.Cause(ctx)) {
		t.Errorf("who begins a set was told: %v", err)
	}
	asked := invitation{kind: letterJoin, set: [12]byte{1}, name: bson.Build().String("name", "rs").Doc().Lookup("name")}
	if _, err := g.join(ctx, asked); !errors.Is(err, context.Cause(ctx)) {
		t.Errorf("who asks to join was told: %v", err)
	}
	if g.beginning.Load() {
		t.Error("the server is about to begin a set for ever")
	}
	joined()
	if unlock, err := g.lockJoining(t.Context()); err != nil {
		t.Error(err)
	} else {
		unlock()
	}
}
