package tikvkv_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
)

// beginner begins a transaction when a Commit can be seen, while its Observer is told.
type beginner struct {
	engine kv.Engine
	begun  []kv.Txn
}

func (b *beginner) Now() int64         { return 0 }
func (b *beginner) Ordered(*kv.Commit) {}
func (b *beginner) Appears(*kv.Commit) {}
func (b *beginner) Visible(*kv.Commit) {
	t, err := b.engine.Begin()
	if err != nil {
		panic(err)
	}
	b.begun = append(b.begun, t)
}

// TestBeginBesideLate: who begins when a commit of which nobody knew can be seen, but before the Observer knows, goes by what was before, and is in conflict.
// Of other commits it is not.
func TestBeginBesideLate(t *testing.T) {
	c := tikvtest.New(t)
	way := &tikvtest.HeldBack{Client: c.Client, Clock: clock.NewFake(time.Unix(0, 0))}
	e := c.OpenOver(t, way, tikvkv.Options{Clock: way.Clock})
	b := &beginner{engine: e}
	e.Observe(b)
	way.Leave(t, e, func() error { return put(e, "a", "1") })()
	if err := put(e, "b", "2"); err != nil {
		t.Fatal(err)
	}
	e.Observe(nil)
	for i, want := range []error{kv.ErrConflict, nil} {
		b.begun[i].Set([]byte("c"), []byte("3"))
		if err := b.begun[i].Commit(context.Background(), kv.Synced); !errors.Is(err, want) {
			t.Errorf("transaction %d: %v, want %v", i, err, want)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
