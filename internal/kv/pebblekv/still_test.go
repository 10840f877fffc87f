package pebblekv_test

import (
	"context"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
)

// TestStillEnds: who asks for a view that has all that was ordered waits for those in the line, no longer than its context lasts.
func TestStillEnds(t *testing.T) {
	e := open(t, "db", pebblekv.Options{FS: vfs.NewMem(), CommitKey: []byte("number")})
	e.Observe(still(1000))
	log := make(unanswered, 1)
	e.Lead(log)
	wrote := make(chan error, 1)
	go func() {
		txn, err := e.Begin()
		if err == nil {
			txn.Set([]byte("a"), []byte("1"))
			err = txn.Commit(context.Background(), kv.Synced)
		}
		wrote <- err
	}()
	<-log // it is in the line then
	killed := errors.New("killed")
	ctx, kill := context.WithCancelCause(t.Context())
	looked := make(chan error, 1)
	go func() {
		_, err := e.Still(ctx, func() { t.Error("it looks while a commit is on its way") })
		looked <- err
	}()
	kill(killed)
	if err := <-looked; !errors.Is(err, killed) {
		t.Errorf("who is killed while it waits is told %v", err)
	}
	if err := e.Confirm(1); err != nil {
		t.Fatal(err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	view, err := e.Still(t.Context(), func() {})
	if err != nil {
		t.Fatal(err)
	}
	if value, err := view.Get([]byte("a")); err != nil || string(value) != "1" {
		t.Errorf("it sees %s, %v", value, err)
	}
	if err := errors.Join(view.Close(), e.Close()); err != nil {
		t.Error(err)
	}
}

// unanswered is a log that tells nobody what becomes of what it gets.
type unanswered chan []byte

func (u unanswered) Append(encoded []byte) { u <- encoded }
