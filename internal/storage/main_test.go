package storage_test

import (
	"context"
	"os"
	"testing"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/sweeper"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

func TestMain(m *testing.M) {
	storage.NewDrivers = func(s *storage.Store, engine kv.Engine, c clock.Clock) (storage.Sweeper, storage.Drivers) {
		d := drivers{sweeper.New(s, engine, c)}
		return d.Sweeper, d
	}
	os.Exit(m.Run())
}

// drivers is what the tests of storage ask of the packages above it.
type drivers struct{ *sweeper.Sweeper }

func (d drivers) Sweep(ctx context.Context, collection uint32, rule *policy.Rule, now int64) (storage.Swept, bool, error) {
	done, ok, err := d.Sweeper.Sweep(ctx, collection, rule, now)
	return storage.Swept(done), ok, err
}

func (d drivers) Bounds() *expiry.Limits { return &d.Limits }
