package build

import (
	"context"

	"github.com/ebbdb/ebb/internal/kv"
)

// loadedPairs is how many pairs go into one transaction where the engine takes over no tables.
const loadedPairs = 1000

// LoadPairs writes the pairs of an index that nobody reads yet, as kv.Engine.Load does; by that if it is there, or else by one
// transaction after the other. Then what an error leaves is garbage, which is noted already.
func LoadPairs(ctx context.Context, engine kv.Engine, next func() (key, value []byte, ok bool, err error)) error {
	if engine.Capabilities().Tables {
		return engine.Load(ctx, next)
	}
	for more := true; more; {
		t, err := engine.BeginBlind()
		if err != nil {
			return err
		}
		if more, err = setPairs(t, next); err != nil {
			t.Rollback()
			return err
		}
		if err := t.Commit(ctx, kv.Buffered); err != nil {
			return err
		}
	}
	return nil
}

// setPairs sets some; more is false when those were the last.
func setPairs(t kv.Txn, next func() (key, value []byte, ok bool, err error)) (more bool, err error) {
	for range loadedPairs {
		key, value, ok, err := next()
		if !ok || err != nil {
			return false, err
		}
		t.Set(key, value)
	}
	return true, nil
}
