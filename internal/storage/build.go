package storage

import (
	"context"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
)

// buildBatchBytes is about how much one transaction of an index build writes.
const buildBatchBytes = 4 << 20

// build is new indexes of one collection on their way. Their numbers are noted as garbage from before the first entry is
// written until the commit that puts them into the catalogue, so that whatever ends the build in between leaves nothing.
type build struct {
	store       *Store
	collection  *collection
	definitions []*index.Definition
	tables      []writtenTable // those that keep entries
}

// build fills new indexes with the entries of the collection's documents. The caller holds the collection's lock and puts
// the definitions into the catalogue in a change that calls finish, or calls abandon; on an error nothing remains.
func (s *Store) build(ctx context.Context, c *collection, defs []*index.Definition) (*build, error) {
	b := &build{store: s, collection: c}
	empty, err := s.isEmpty(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := b.begin(ctx, defs, empty); err != nil {
		return nil, err
	}
	if empty || len(b.tables) == 0 {
		return b, nil
	}
	if err := b.fill(ctx); err != nil {
		b.abandon()
		return nil, err
	}
	return b, nil
}

func (s *Store) isEmpty(ctx context.Context, c *collection) (bool, error) {
	v, err := s.View(ctx)
	if err != nil {
		return false, err
	}
	defer v.Close()
	cursor, err := v.read(c).Unhidden().Scan(RecordScan{})
	if err != nil {
		return false, err
	}
	defer cursor.Close()
	return !cursor.Next(), cursor.Err()
}

// begin gives the indexes their numbers; where there is something to build, they are noted as garbage.
func (b *build) begin(ctx context.Context, defs []*index.Definition, empty bool) error {
	return b.store.change(ctx, func(c *change) error {
		for _, d := range defs {
			id, err := c.newIndexID()
			if err != nil {
				return err
			}
			d = d.WithID(id).WithForm(d.Kind.Form())
			b.definitions = append(b.definitions, d)
			if !d.Kind.Built() {
				continue
			}
			b.tables = append(b.tables, writtenTable{tableIndex: &tableIndex{
				entries: entries{d, b.collection.idLength}, multikey: newMultikey(d),
			}})
			if !empty {
				c.note(garbage{ofIndex, id})
			}
		}
		return nil
	})
}

// fill writes the entries of all records.
func (b *build) fill(ctx context.Context) error {
	if err := b.clearTheWay(ctx); err != nil {
		return err
	}
	v, err := b.store.View(ctx)
	if err != nil {
		return err
	}
	defer v.Close()
	cursor, err := v.read(b.collection).Unhidden().Scan(RecordScan{})
	if err != nil {
		return err
	}
	defer cursor.Close()
	for more := true; more; {
		if more, err = b.fillSome(ctx, cursor); err != nil {
			return err
		}
	}
	return cursor.Err()
}

// clearTheWay deletes expired documents that are hidden: they are in no index's way.
func (b *build) clearTheWay(ctx context.Context) error {
	all, now := b.store.options.HideExpired(), b.store.Now()
	for i := range b.collection.rules.All() {
		if rule := &b.collection.rules.All()[i]; rule.Hides(all) {
			if err := b.store.expireLocked(ctx, b.collection, rule, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// fillSome writes a batch of entries; more is false when the cursor has come to its end.
func (b *build) fillSome(ctx context.Context, cursor *RecordCursor) (more bool, err error) {
	t, err := b.store.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer t.Rollback()
	w := &Writer{Reader: t.view.read(b.collection), txn: t, tables: b.tables}
	for t.Size() < b.store.buildBatchBytes {
		if more = cursor.Next(); !more {
			break
		}
		if err := w.enter(cursor.Record()); err != nil {
			return false, err
		}
	}
	return more, t.Commit(ctx, kv.Buffered)
}

// enter adds a record's entries to all tables.
func (w *Writer) enter(rec Record) error {
	if err := w.freshKeys(rec.Doc); err != nil {
		return err
	}
	for i := range w.tables {
		t := &w.tables[i]
		if holdsIDs(t.Definition) {
			if err := w.refuseTaken(t, rec.ID); err != nil {
				return err
			}
		}
		w.moveEntries(t, Record{}, rec)
	}
	return nil
}

// refuseTaken is DuplicateKey when another record has one of the fresh keys.
func (w *Writer) refuseTaken(t *writtenTable, self RecordID) error {
	for j := range t.fresh.count() {
		ids, err := w.holders(t, t.fresh.Key(j))
		if err != nil {
			return err
		}
		if len(ids) > 0 && string(ids[0]) != string(self) {
			return duplicateKey(w.c.Collection, t.Definition, t.fresh.Key(j), t.fresh.TypeBits(j))
		}
	}
	return nil
}

// finish puts what belongs to the entries into the change that puts the definitions into the catalogue. A nil build has
// nothing to finish.
func (b *build) finish(c *change) {
	if b == nil {
		return
	}
	for i := range b.tables {
		t := &b.tables[i]
		c.keep(garbage{ofIndex, t.ID})
		t.multikey.store(t.multikey.paths())
		setMultikey(c.kv, t.ID, t.multikey.paths())
		if paths := t.multikey.seenPaths.Load(); paths != nil {
			t.multikey.storePaths(paths)
			setMultikeyPaths(c.kv, t.ID, paths)
		}
		c.fresh[t.ID] = t.multikey
		if t.surplus != 0 {
			c.kv.Add(counterKey(nil, ofIndex, t.ID, countSurplus), t.surplus)
		}
	}
}

// abandon hands what was written so far to the collector; its notes are there already.
func (b *build) abandon() {
	if b == nil {
		return
	}
	for i := range b.tables {
		b.store.garbage.add(garbage{ofIndex, b.tables[i].ID})
	}
}
