// Package diskspace tells what tables of keys, records or entries, take on disk, and gives back what nothing takes any more. It does not know
// whose tables they are.
package diskspace

import (
	"context"
	"fmt"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// Of estimates what the keys that begin with start take.
func Of(engine kv.Engine, start []byte) (int64, error) {
	n, err := engine.SizeOf(start, layout.After(start))
	if err != nil {
		return 0, fmt.Errorf("storage: measure: %w", err)
	}
	return n, nil
}

// ofAll is what several tables take.
func ofAll(engine kv.Engine, tables [][]byte) (n int64, err error) {
	for _, start := range tables {
		one, err := Of(engine, start)
		if err != nil {
			return 0, err
		}
		n += one
	}
	return n, nil
}

// Compact gives back the room that nothing in tables takes any more, and says how much that was. Each is what its keys begin with. All are measured
// before the first is compacted, since files hold keys of several.
func Compact(ctx context.Context, engine kv.Engine, tables [][]byte) (freed int64, err error) {
	before, err := ofAll(engine, tables)
	if err != nil {
		return 0, err
	}
	for _, start := range tables {
		if err := engine.Compact(ctx, start, layout.After(start)); err != nil {
			return 0, fmt.Errorf("storage: compact: %w", err)
		}
	}
	after, err := ofAll(engine, tables)
	return max(0, before-after), err
}
