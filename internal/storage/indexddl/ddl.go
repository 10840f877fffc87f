package indexddl

import (
	"context"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/build"
	"github.com/ebbdb/ebb/internal/storage/catalogchange"
	"github.com/ebbdb/ebb/internal/storage/loosen"
	"github.com/ebbdb/ebb/internal/storage/sweeper"
)

// DDL changes the indexes and options of one store's collections.
type DDL struct {
	*loosen.Loosener
	// Sweeper is the one that it deletes with.
	Sweeper *sweeper.Sweeper
	// Limits bound index builds; nobody changes them while there are any.
	Limits Limits

	store   *storage.Store
	options storage.Options
	engine  kv.Engine
}

// Limits of index builds.
type Limits struct {
	// MemoryBytes is how much a build keeps in memory to sort, of all its indexes together.
	MemoryBytes int
	// InlineDocuments and InlineBytes are up to which size of a collection its entries are written with the catalogue.
	InlineDocuments, InlineBytes int64
}

// DefaultLimits are those of a server.
func DefaultLimits() Limits {
	return Limits{MemoryBytes: 64 << 20, InlineDocuments: 1000, InlineBytes: 1 << 20}
}

// Open opens a store and what works at it from above. Indexes of an older format are built anew before it returns. The store closes
// all of that.
func Open(ctx context.Context, engine kv.Engine, o storage.Options) (*storage.Store, *DDL, error) {
	var d *DDL
	o.Drivers = func(s *storage.Store) storage.Drivers {
		d = New(s, engine)
		return d
	}
	store, err := storage.Open(ctx, engine, o)
	if err != nil {
		return nil, nil, err
	}
	return store, d, nil
}

// New is a DDL of a store over the engine, for storage.Options.
func New(s *storage.Store, engine kv.Engine) *DDL {
	sweeps := sweeper.New(s, engine, s.Options().Clock)
	return &DDL{Loosener: loosen.New(s, sweeps), Sweeper: sweeps, Limits: DefaultLimits(), store: s, options: s.Options(), engine: engine}
}

// Forget gives back what is kept of a collection that was dropped, or was to be.
func (d *DDL) Forget(collection uint32) { d.Sweeper.Forget(collection) }

// Close gives back what is kept of all.
func (d *DDL) Close() { d.Sweeper.Close() }

// Builds are the index builds under way on a collection, oldest first.
func (d *DDL) Builds(collection uint32) []*build.Underway {
	c, ok := d.store.CollectionByID(collection)
	if !ok {
		return nil
	}
	return c.Builds()
}

// changeBuilt builds indexes of a collection whose locks are held exclusively, and has put put them, as they are then numbered, into the
// catalogue by the same change. Of what fails nothing remains.
func (d *DDL) changeBuilt(ctx context.Context, c storage.Collection, defs []*index.Definition, l *loosen.Change, put func(*catalogchange.Change, []*index.Definition) error) error {
	b, err := d.build(ctx, c, defs, l.How())
	if err != nil {
		return err
	}
	defer b.close()
	if err = d.publish(ctx, b, l, put); err != nil {
		b.abandon()
	}
	return err
}

// publish has put put the indexes that b has built into the catalogue.
func (d *DDL) publish(ctx context.Context, b *builder, l *loosen.Change, put func(*catalogchange.Change, []*index.Definition) error) error {
	return d.store.ChangeLast(ctx, func(ch *catalogchange.Change) error {
		ch.Renew, ch.Kept = l.Renews, l.Kept
		defs, err := b.finish(ch)
		if err != nil {
			return err
		}
		return put(ch, defs)
	})
}

// attended is f for as long as ctx has not ended: then nobody may be there any more whose f it is (storage.Apart).
func attended[T any](ctx context.Context, f func(*catalog.Collection) (T, error)) func(*catalog.Collection) (T, error) {
	return func(c *catalog.Collection) (none T, err error) {
		if ctx.Err() != nil {
			return none, context.Cause(ctx)
		}
		return f(c)
	}
}
