package indexddl

import (
	"context"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/build"
	"github.com/ebbdb/ebb/internal/storage/catalogchange"
	"github.com/ebbdb/ebb/internal/storage/garbage"
	"github.com/ebbdb/ebb/internal/storage/multikey"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

// builder builds new indexes of one collection.
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
//   - Rows of a closed generation do not change any more.
//   - Table.Count is the number of entries in the table, after every commit of the builder.
//   - In a unique table a key that somebody waits for is in the table too, with another record.
//   - The numbers of a build are handed to the collector by its own end, when neither it nor any writer uses them.
type builder struct {
	*build.Underway // as others see it

	ddl        *DDL
	collection storage.Collection // as it was at the beginning
	ctx        context.Context
	cancel     context.CancelCauseFunc
	how        ttlchange.OnHidden // of what is hidden and may be in the way
	inline     bool               // the entries are written by the commit that publishes them
	grows      bool               // it ends when the disk has no room for more
	ready      bool               // that commit was made
	work       *build.Work
}

func (d *DDL) newBuilder(ctx context.Context, c storage.Collection, defs []*index.Definition) *builder {
	b := &builder{ddl: d, collection: c}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	b.work = &build.Work{Ctx: b.ctx, Order: c.ExpiryOrder(), View: b.records, Writes: c.Commits, Alive: b.alive, Report: b.report, Pace: build.NewPace()}
	b.Underway = build.NewUnderway(c.Collection, defs, &b.work.Progress, b.cancel)
	built := 0
	for i, def := range defs {
		b.Definitions[i] = def.WithForm(def.FormToday())
		if def.Kind.Built() {
			built++
		}
	}
	for _, def := range b.Definitions {
		if !def.Kind.Built() {
			continue
		}
		seen := multikey.New(def)
		t := build.NewTable(c.NewEntries(def), c.Collection, build.Options{TempDir: d.options.TempDir, MemoryBytes: d.Limits.MemoryBytes / built,
			Memory: d.options.Memory, Ask: func() error { return context.Cause(b.ctx) }, Arrays: seen.SeeKeys})
		b.Tables = append(b.Tables, &build.IndexUnderway{Table: t, Multikey: seen})
		b.work.Tables = append(b.work.Tables, t)
	}
	return b
}

// build makes the entries of new indexes from the collection's documents, for one who holds its lock exclusively. The
// caller puts the definitions that finish gives into the catalogue, or calls abandon; on an error nothing remains.
func (d *DDL) build(ctx context.Context, c storage.Collection, defs []*index.Definition, how ttlchange.OnHidden) (b *builder, err error) {
	b = d.newBuilder(ctx, c, defs)
	b.how = how
	if len(b.Tables) == 0 {
		b.inline = true
		return b, nil
	}
	if b.inline, err = d.isSmall(ctx, c); err != nil {
		return nil, err
	}
	if !b.inline {
		if err := b.number(false); err != nil {
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
func (b *builder) fill() error {
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
func (b *builder) load() error { return b.work.Load(b.ddl.engine) }

// isSmall says whether the entries of a collection are few enough to be written with the catalogue.
func (d *DDL) isSmall(ctx context.Context, c storage.Collection) (bool, error) {
	v, err := d.store.View(ctx)
	if err != nil {
		return false, err
	}
	defer v.Close()
	r := c.Read(v)
	documents, err := r.Stored()
	if err != nil || documents > d.Limits.InlineDocuments {
		return false, err
	}
	bytes, err := r.Bytes()
	return bytes <= d.Limits.InlineBytes, err
}

// number gives the indexes their numbers, and with sides a side table each, and notes all of that as garbage.
func (b *builder) number(sides bool) error {
	return b.ddl.store.Change(b.ctx, func(ch *catalogchange.Change) (err error) {
		if err := b.numberBy(ch); err != nil {
			return err
		}
		for _, t := range b.Tables {
			ch.Note(garbage.OfIndex(t.ID))
			if !sides {
				continue
			}
			if t.Side, err = ch.NewIndexID(); err != nil {
				return err
			}
			ch.Note(garbage.OfIndex(t.Side))
		}
		return nil
	})
}

func (b *builder) numberBy(ch *catalogchange.Change) error {
	tables := b.Tables
	for i, def := range b.Definitions {
		id, err := ch.NewIndexID()
		if err != nil {
			return err
		}
		def = def.WithID(id)
		b.Definitions[i] = def
		if def.Kind.Built() {
			tables[0].Definition = def
			tables = tables[1:]
		}
	}
	return nil
}

// finish puts what belongs to the entries into the change that puts the definitions, which it returns, into the catalogue.
func (b *builder) finish(ch *catalogchange.Change) ([]*index.Definition, error) {
	if b.inline {
		if err := b.writeInto(ch); err != nil {
			return nil, err
		}
	}
	for _, t := range b.Tables {
		if t.Side != 0 {
			ch.Discard(garbage.OfIndex(t.Side))
		}
		stored := &multikey.Stored{Bits: t.Multikey.Seen(), Paths: t.Multikey.SeenPaths()}
		if err := ch.TakeIndex(b.Collection, t.ID, stored, t.Count); err != nil {
			return nil, err
		}
	}
	return b.Definitions, nil
}

// writeInto makes the entries part of the change.
func (b *builder) writeInto(ch *catalogchange.Change) error {
	if err := b.numberBy(ch); err != nil || len(b.Tables) == 0 {
		return err
	}
	for _, t := range b.Tables {
		next := t.Source(b.work.Step)
		for {
			key, value, ok, err := next()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			ch.Set(key, value)
		}
	}
	return b.work.Decide()
}

// abandon hands what was written so far to the collector; its notes are there already.
func (b *builder) abandon() {
	b.close()
	if b.inline || b.ready {
		return
	}
	for _, t := range b.Tables {
		b.ddl.store.Discard(garbage.OfIndex(t.ID))
		if t.Side != 0 {
			b.ddl.store.Discard(garbage.OfIndex(t.Side))
		}
	}
}

// close gives back what the build holds beside its numbers.
func (b *builder) close() {
	b.cancel(nil)
	b.work.Close()
}

// alive is why the build has to end, if it has to.
func (b *builder) alive() error {
	if b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	if b.grows {
		return b.ddl.store.Room()
	}
	return nil
}
