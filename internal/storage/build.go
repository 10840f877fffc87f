package storage

import (
	"context"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/build"
	"github.com/ebbdb/ebb/internal/storage/garbage"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/multikey"
)

// Build is new indexes of one collection on their way.
//
// # How it goes
//
// The indexes get their numbers, and a side table each, in a commit that notes them as garbage; so whatever ends the build,
// a crash included, leaves nothing. With the collection's lock held exclusively for that moment the build is published:
// whoever writes from then on notes in the side tables what happens to the entries (layout.SideRow). Then, while writers go on:
//
//   - the bulk pass reads all records there were, in one short view after the other, sorts the entries (build.Table) and
//     loads them into the index at once, around the log;
//   - rounds of catching up: each closes a generation of the side tables, under the lock for a moment, and applies its
//     rows, until a round finds few.
//
// The last round holds the lock exclusively. It also decides what was left open: records whose keys could not be computed,
// and keys of unique indexes that several records had. Then one commit puts the definitions into the catalogue and
// strikes the garbage out.
//
// Who holds the lock anyway (reIndex, collMod, a collection of few documents) builds without side tables; few entries are
// written by the very commit that publishes them.
//
// # Why that is right
//
// An entry that nobody touched since the build was published is in the bulk pass exactly if it is in the records, whichever
// of the views read them. Of one that was touched the side tables have the last operation, because two writers of one record
// never commit side by side, and a later generation begins when all writers of the one before have ended. Applying it makes
// the table right for that entry, whatever the bulk pass saw.
//
// Invariants:
//   - state.builds and a build's generation change only while the collection's lock is held exclusively; writers read them
//     while they hold it.
//   - Rows of a closed generation do not change any more.
//   - count is the number of entries in the table, after every commit of the builder.
//   - In a unique table a key that is in waiting is in the table too, with another record.
//   - The numbers of a build are handed to the collector by its own end, when neither it nor any writer uses them.
type Build struct {
	UUID           [16]byte
	NS             namespace.NS
	Collection     uint32
	CollectionUUID [16]byte
	// Definitions are the indexes, with the numbers they will have.
	Definitions []*index.Definition
	// Operation is the id of the operation that builds, for those who list it.
	Operation atomic.Int64

	store      *Store
	collection *collection // as it was at the beginning
	tables     []*buildTable
	ctx        context.Context
	cancel     context.CancelCauseFunc
	done       chan struct{} // closed at the end
	generation byte
	how        OnHidden // of what is hidden and may be in the way
	inline     bool     // the entries are written by the commit that publishes them
	grows      bool     // it ends when the disk has no room for more
	ready      bool     // that commit was made
	work       *build.Work
}

// buildTable is one index of a Build.
type buildTable struct {
	*build.Table
	index *tableIndex // as it will be
}

const (
	// buildMemoryBytes is how much a build keeps in memory to sort, of all its indexes together.
	buildMemoryBytes = 64 << 20
	// inlineDocuments and inlineBytes are up to which size of a collection its entries are written with the catalogue.
	inlineDocuments = 1000
	inlineBytes     = 1 << 20
)

func (s *Store) newBuild(ctx context.Context, c *collection, defs []*index.Definition) *Build {
	b := &Build{UUID: newUUID(), NS: c.NS, Collection: c.ID, CollectionUUID: c.UUID, Definitions: append([]*index.Definition(nil), defs...),
		store: s, collection: c, done: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	b.work = &build.Work{Ctx: b.ctx, Order: c.order, View: b.records, Writes: c.state.writes.Load, Alive: b.alive, Report: b.report, Pace: build.NewPace()}
	for i, d := range defs {
		d = d.WithForm(d.Kind.Form())
		b.Definitions[i] = d
		if !d.Kind.Built() {
			continue
		}
		ix := &tableIndex{Entries: layout.Entries{Definition: d, IDLength: c.idLength}, multikey: multikey.New(d), roots: d.Roots()}
		b.tables = append(b.tables, &buildTable{index: ix})
	}
	for _, t := range b.tables {
		t.Table = build.NewTable(t.index.Entries, c.Collection, build.Options{TempDir: s.options.TempDir, MemoryBytes: s.buildMemoryBytes / len(b.tables),
			Memory: s.options.Memory, Ask: func() error { return context.Cause(b.ctx) }, Arrays: t.index.multikey.SeeKeys})
		b.work.Tables = append(b.work.Tables, t.Table)
	}
	return b
}

// build makes the entries of new indexes from the collection's documents, for one who holds its lock exclusively. The
// caller puts the definitions that finish gives into the catalogue, or calls abandon; on an error nothing remains.
func (s *Store) build(ctx context.Context, c *collection, defs []*index.Definition, how OnHidden) (b *Build, err error) {
	b = s.newBuild(ctx, c, defs)
	b.how = how
	if len(b.tables) == 0 {
		b.inline = true
		return b, nil
	}
	if b.inline, err = s.isSmall(ctx, c); err != nil {
		return nil, err
	}
	if !b.inline {
		if err := b.begin(false); err != nil {
			return nil, err
		}
	}
	if err := b.fill(); err != nil {
		b.abandon()
		return nil, err
	}
	return b, nil
}

// fill is the bulk pass while nobody writes.
func (b *Build) fill() error {
	if err := b.makeWay(); err != nil {
		return err
	}
	if err := b.work.Scan(); err != nil || b.inline {
		return err
	}
	if err := b.load(); err != nil {
		return err
	}
	return b.work.Decide()
}

// load brings the sorted entries into the tables.
func (b *Build) load() error { return b.work.Load(b.store.engine) }

func (s *Store) isSmall(ctx context.Context, c *collection) (bool, error) {
	v, err := s.View(ctx)
	if err != nil {
		return false, err
	}
	defer v.Close()
	documents, bytes, err := v.read(c).counters()
	return documents <= s.inlineDocuments && bytes <= inlineBytes, err
}

// begin gives the indexes and their side tables numbers and notes them as garbage.
func (b *Build) begin(sides bool) error {
	return b.store.change(b.ctx, func(c *change) (err error) {
		if err := b.number(c); err != nil {
			return err
		}
		for _, t := range b.tables {
			c.note(garbage.OfIndex(t.ID))
			if !sides {
				continue
			}
			if t.Side, err = c.newIndexID(); err != nil {
				return err
			}
			c.note(garbage.OfIndex(t.Side))
		}
		return nil
	})
}

// number gives the indexes their numbers.
func (b *Build) number(c *change) error {
	tables := b.tables
	for i, d := range b.Definitions {
		id, err := c.newIndexID()
		if err != nil {
			return err
		}
		d = d.WithID(id)
		b.Definitions[i] = d
		if d.Kind.Built() {
			tables[0].Definition, tables[0].index.Definition = d, d
			tables = tables[1:]
		}
	}
	return nil
}

// finish puts what belongs to the entries into the change that puts the definitions, which it returns, into the catalogue.
// A nil build has nothing to finish.
func (b *Build) finish(c *change) ([]*index.Definition, error) {
	if b == nil {
		return nil, nil
	}
	if b.inline {
		if err := b.writeInto(c); err != nil {
			return nil, err
		}
	}
	documents, err := c.kv.Counter(layout.CounterKey(nil, layout.OfCollection, b.Collection, layout.CountDocuments))
	if err != nil {
		return nil, err
	}
	for _, t := range b.tables {
		c.keep(garbage.OfIndex(t.ID))
		if t.Side != 0 {
			c.discard(garbage.OfIndex(t.Side))
		}
		stored := &multikey.Stored{Bits: t.index.multikey.Seen(), Paths: t.index.multikey.SeenPaths()}
		stored.Set(c.kv, t.ID)
		c.ddl.Multikey[t.ID] = stored
		if surplus := t.Count - documents; surplus != 0 {
			c.kv.Add(layout.CounterKey(nil, layout.OfIndex, t.ID, layout.CountSurplus), surplus)
		}
	}
	return b.Definitions, nil
}

// writeInto makes the entries part of the change.
func (b *Build) writeInto(c *change) error {
	if err := b.number(c); err != nil {
		return err
	}
	if len(b.tables) == 0 {
		return nil
	}
	for _, t := range b.tables {
		next := t.Source(b.work.Step)
		for {
			key, value, ok, err := next()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			c.kv.Set(key, value)
		}
	}
	return b.work.Decide()
}

// abandon hands what was written so far to the collector; its notes are there already. A nil build left nothing.
func (b *Build) abandon() {
	if b == nil {
		return
	}
	b.close()
	if b.inline || b.ready {
		return
	}
	for _, t := range b.tables {
		b.store.garbage.Add(garbage.OfIndex(t.ID))
		if t.Side != 0 {
			b.store.garbage.Add(garbage.OfIndex(t.Side))
		}
	}
}

// close gives back what the build holds beside its numbers.
func (b *Build) close() {
	b.cancel(nil)
	b.work.Close()
}

// alive is why the build has to end, if it has to.
func (b *Build) alive() error {
	if b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	if b.grows {
		return b.store.room(0)
	}
	return nil
}

func aborted(why string) error {
	return mongoerr.New(mongoerr.IndexBuildAborted, "Index build aborted: %s", why)
}
