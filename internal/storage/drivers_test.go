package storage

import (
	"context"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Drivers is what packages above storage do with a Store, which its tests ask for beside what the Store does itself. This package cannot
// import those; storage_test can, and says what they are (main_test.go).
type Drivers interface {
	Sweep(ctx context.Context, collection uint32, rule *policy.Rule, now int64) (done Swept, ok bool, err error)
	CountOrder(ctx context.Context, collection uint32, most int) (more bool, err error)
	IsCounting(collection uint32) bool
	Recluster(ctx context.Context, collection uint32, limit int) (moved int, more bool, err error)
	Reclustered(collection uint32) (order uint32, moved int64)
	Unclustered(ctx context.Context, collection uint32, limit int64) (n int64, err error)
	Vacuum(ctx context.Context, collection uint32, limit int) (removed int, more bool, err error)
	IsCompacting(collection uint32) bool
	// Bounds are what they do in one step.
	Bounds() *expiry.Limits
}

// Swept is what a sweep has deleted.
type Swept struct {
	Documents, Bytes, Keys int64
	Busy, Uncounted        bool
}

// NewDrivers makes the drivers of a store. TestMain sets it.
var NewDrivers func(*Store, kv.Engine, clock.Clock) (Sweeper, Drivers)

// openOn opens the store over an engine, with its drivers.
func (f *fixture) openOn(engine kv.Engine, o Options) (err error) {
	o.Sweeper = func(s *Store) (sweeper Sweeper) {
		sweeper, f.Drivers = NewDrivers(s, engine, o.Clock)
		return sweeper
	}
	f.Store, err = Open(context.Background(), engine, o)
	return err
}
