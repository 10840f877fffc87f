package storage

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/build"
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Above is what packages above storage do with a Store, which its tests ask for beside what the Store does itself. This package cannot
// import those; storage_test can, and says what they are (main_test.go).
type Above interface {
	Sweep(ctx context.Context, collection uint32, rule *policy.Rule, now int64) (done Swept, ok bool, err error)
	CountOrder(ctx context.Context, collection uint32, most int) (more bool, err error)
	IsCounting(collection uint32) bool
	Recluster(ctx context.Context, collection uint32, limit int) (moved int, more bool, err error)
	Reclustered(collection uint32) (order uint32, moved int64)
	Unclustered(ctx context.Context, collection uint32, limit int64) (n int64, err error)
	Vacuum(ctx context.Context, collection uint32, limit int) (removed int, more bool, err error)
	IsCompacting(collection uint32) bool
	DeleteDueNow(ctx context.Context, c Collection, rule *policy.Rule, now int64, underLock bool) (deleted int64, err error)
	// Bounds are what they do in one step.
	Bounds() *expiry.Limits

	MakeIndexes(ctx context.Context, ns namespace.NS, parse func(*catalog.Collection) ([]*index.Definition, error), seen func(*build.Underway)) (Created, error)
	DefineIndexes(ctx context.Context, t *Txn, ns namespace.NS, parse func(*catalog.Collection) ([]*index.Definition, error)) (Created, error)
	DropIndexes(ctx context.Context, ns namespace.NS, pick func(*catalog.Collection) ([]*index.Definition, error)) (before int, err error)
	Modify(ctx context.Context, ns namespace.NS, modify func(*catalog.Collection) (*catalog.Collection, error)) error
	ModifyWith(ctx context.Context, ns namespace.NS, how ttlchange.OnHidden, modify func(*catalog.Collection) (*catalog.Collection, error)) (ttlchange.Loosened, error)
	RebuildIndexes(ctx context.Context, ns namespace.NS) (*catalog.Collection, error)
	StopHiding(ctx context.Context, how ttlchange.OnHidden, set func() error) (ttlchange.Loosened, error)
	Builds(collection uint32) []*build.Underway
	Truncate(ctx context.Context, keep oplog.Timestamp) (entries int64, more bool, err error)
	Resize(ctx context.Context, bytes int64) error
	OldestLogged(ctx context.Context) (oplog.Timestamp, error)
	Sessions(ctx context.Context, f func(session bson.Doc, wrote int64) error) error
	Reap(ctx context.Context, session bson.Doc) error
	// BuildLimits bound index builds.
	BuildLimits() *BuildLimits
}

// Swept is what a sweep has deleted.
type Swept struct {
	Documents, Bytes, Keys int64
	Busy, Uncounted, More  bool
	Left                   int64
}

// Created is what MakeIndexes did.
type Created struct {
	Before, After    int
	Collection       bool
	Indexes, Retimed []*index.Definition
	Hidden           ttlchange.Loosened
}

// BuildLimits are those of index builds.
type BuildLimits struct {
	MemoryBytes                  int
	InlineDocuments, InlineBytes int64
}

// NewAbove makes what works at a store from above. TestMain sets it.
var NewAbove func(*Store, kv.Engine) (Drivers, Above)

// openOn opens the store over an engine, with what works at it from above.
func (f *fixture) openOn(engine kv.Engine, o Options) (err error) {
	o.Drivers = func(s *Store) (d Drivers) {
		d, f.Above = NewAbove(s, engine)
		return d
	}
	if f.own != nil {
		f.Store, err = open(context.Background(), engine, f.own, o)
		return err
	}
	f.Store, err = Open(context.Background(), engine, o)
	return err
}

// CreateIndexes makes indexes.
func (f *fixture) CreateIndexes(ctx context.Context, ns namespace.NS, parse func(*catalog.Collection) ([]*index.Definition, error)) (Created, error) {
	return f.MakeIndexes(ctx, ns, parse, func(*build.Underway) {})
}

// deletion is how deleteDue goes about it.
type deletion bool

const (
	besideWriters deletion = false
	underLock     deletion = true
)

func (f *fixture) deleteDue(ctx context.Context, c *collection, rule *policy.Rule, now int64, how deletion) (deleted int64, err error) {
	return f.DeleteDueNow(ctx, f.handle(c), rule, now, bool(how))
}
