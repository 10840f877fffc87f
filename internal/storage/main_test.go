package storage_test

import (
	"context"
	"os"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/build"
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/indexddl"
	"github.com/ebbdb/ebb/internal/storage/memberlog"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/storage/sweeper"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

func TestMain(m *testing.M) {
	storage.NewAbove = func(s *storage.Store, engine kv.Engine) (storage.Drivers, storage.Above) {
		d := indexddl.New(s, engine)
		return d, above{d, d.Sweeper, s}
	}
	os.Exit(m.Run())
}

// above is what the tests of storage ask of the packages above it.
type above struct {
	ddl
	*sweeper.Sweeper
	store *storage.Store
}

type ddl = *indexddl.DDL

func (a above) Sweep(ctx context.Context, collection uint32, rule *policy.Rule, now int64) (storage.Swept, bool, error) {
	done, ok, err := a.Sweeper.Sweep(ctx, collection, rule, now)
	return storage.Swept(done), ok, err
}

func (a above) DeleteDueNow(ctx context.Context, c storage.Collection, rule *policy.Rule, now int64, underLock bool) (int64, error) {
	return a.DeleteDue(ctx, c, rule, now, sweeper.Deletion(underLock))
}

func (a above) Truncate(ctx context.Context, keep oplog.Timestamp) (int64, bool, error) {
	return memberlog.Truncate(ctx, a.store, keep)
}

func (a above) Resize(ctx context.Context, bytes int64) error {
	return memberlog.Resize(ctx, a.store, bytes)
}

func (a above) OldestLogged(ctx context.Context) (oplog.Timestamp, error) {
	return memberlog.Oldest(ctx, a.store)
}

func (a above) Sessions(ctx context.Context, f func(session bson.Doc, wrote int64) error) error {
	return memberlog.Sessions(ctx, a.store, f)
}

func (a above) Reap(ctx context.Context, session bson.Doc) error {
	return memberlog.Reap(ctx, a.store, session)
}

func (a above) Bounds() *expiry.Limits { return &a.Sweeper.Limits }

func (a above) MakeIndexes(ctx context.Context, ns namespace.NS, parse func(*catalog.Collection) ([]*index.Definition, error), seen func(*build.Underway)) (storage.Created, error) {
	made, err := a.CreateIndexesSeen(ctx, ns, ttlchange.OnHidden{}, parse, seen)
	return storage.Created(made), err
}

func (above) DefineIndexes(ctx context.Context, t *storage.Txn, ns namespace.NS, parse func(*catalog.Collection) ([]*index.Definition, error)) (storage.Created, error) {
	made, err := indexddl.DefineIndexes(ctx, t, ns, parse)
	return storage.Created(made), err
}

func (a above) BuildLimits() *storage.BuildLimits { return (*storage.BuildLimits)(&a.ddl.Limits) }
