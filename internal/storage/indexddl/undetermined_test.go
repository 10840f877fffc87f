package indexddl

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
	"github.com/ebbdb/ebb/internal/storage/build"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// lastCommit is an engine that does something before the commit that puts an index into the catalogue.
type lastCommit struct {
	kv.Engine
	before func()
}

func (e *lastCommit) Begin() (kv.Txn, error) {
	t, err := e.Engine.Begin()
	return &lastTxn{t, e, nil}, err
}

type lastTxn struct {
	kv.Txn
	engine *lastCommit
	means  kv.Meaning
}

func (t *lastTxn) Mean(m kv.Meaning) {
	t.means = m
	t.Txn.Mean(m)
}

func (t *lastTxn) Commit(ctx context.Context, d kv.Durability) error {
	if m, ok := t.means.(*meaning.Meaning); ok && m.DDL != nil && len(m.DDL.Events) > 0 && m.DDL.Events[0].Kind == meaning.IndexCreated {
		t.engine.before()
	}
	return t.Txn.Commit(ctx, d)
}

// TestBuildWhoseEndIsUndetermined: who builds an index is told that nobody knows what becomes of the commit that takes it into use, and gives up the build.
// That commit may be visible by the time when the build is cleared away: then its entries stay.
func TestBuildWhoseEndIsUndetermined(t *testing.T) {
	cluster := tikvtest.New(t)
	way := &tikvtest.HeldBack{Client: cluster.Client, Clock: clock.NewFake(epoch)}
	f := newFixtureOver(t, cluster.OpenOver(t, way, tikvkv.Options{Clock: way.Clock}))
	for i := range 20 {
		f.must(f.insert(fmt.Sprintf("{_id: %d, a: %d}", i, i)))
	}
	var release func()
	reached, locked := make(chan struct{}), make(chan func(), 1)
	f.engine = &lastCommit{f.engine, func() {
		release = way.Hold(t, f.engine)
		close(reached)
	}}
	f.reopen()
	c := f.tested()
	done := make(chan error, 1)
	go func() {
		_, err := f.beside(func(*build.Underway) {}, `{key: {a: 1}, name: "a"}`)
		done <- err
	}()
	<-reached
	go func() { // somebody waits for the lock that the build has, and is before its end
		unlock, err := c.Lock(t.Context())
		if err != nil {
			t.Error(err)
		}
		locked <- unlock
	}()
	way.Until(t, func() bool { return len(locked) > 0 })
	release()
	(<-locked)()
	if err := <-done; !errors.Is(err, kv.ErrUndetermined) {
		t.Errorf("who builds is told %v", err)
	}
	f.nothingLeft()
	if n := len(f.tested().Indexes); n != 2 {
		t.Errorf("there are %d indexes", n)
	}
	f.validate()
}
