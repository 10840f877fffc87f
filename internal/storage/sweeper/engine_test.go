package sweeper_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
)

// limited is an engine that neither deletes ranges in transactions nor takes over tables, and fails when it is asked to.
type limited struct {
	kv.Engine
	t *testing.T
}

func (l limited) Capabilities() kv.Capabilities {
	c := l.Engine.Capabilities()
	c.RangeDeletes, c.Tables = false, false
	return c
}

func (l limited) Begin() (kv.Txn, error) { return l.limit(l.Engine.Begin()) }

func (l limited) BeginBlind() (kv.Txn, error) { return l.limit(l.Engine.BeginBlind()) }

func (l limited) limit(t kv.Txn, err error) (kv.Txn, error) {
	if err != nil {
		return nil, err
	}
	return limitedTxn{t, l.t}, nil
}

func (limited) Replace([]byte) (kv.Replacement, error) {
	return nil, errors.New("this engine does not replace")
}

type limitedTxn struct {
	kv.Txn
	t *testing.T
}

func (t limitedTxn) DeleteRange(start, end []byte) {
	t.t.Errorf("a transaction deletes a range: %q to %q", start, end)
}

// watched is an engine that has something done when it loads, or when a replacement is sealed, once, and counts replacements.
type watched struct {
	kv.Engine
	atLoad, atSeal   func()
	begun, discarded int
}

func (w *watched) Load(ctx context.Context, next func() (key, value []byte, ok bool, err error)) error {
	once(&w.atLoad)
	return w.Engine.Load(ctx, next)
}

func (w *watched) Replace(start []byte) (kv.Replacement, error) {
	r, err := w.Engine.Replace(start)
	if err != nil {
		return nil, err
	}
	w.begun++
	return &watchedReplacement{Replacement: r, engine: w}, nil
}

type watchedReplacement struct {
	kv.Replacement
	engine *watched
	ended  bool
}

func (r *watchedReplacement) Seal(end []byte) error {
	once(&r.engine.atSeal)
	return r.Replacement.Seal(end)
}

func (r *watchedReplacement) Discard() {
	if !r.ended {
		r.ended = true
		r.engine.discarded++
	}
	r.Replacement.Discard()
}

func once(f *func()) {
	if do := *f; do != nil {
		*f = nil
		do()
	}
}
