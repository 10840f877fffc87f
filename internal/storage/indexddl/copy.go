package indexddl

import (
	"context"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/build"
)

// copyBatchBytes is about how much one transaction of a copy writes, and copyBatch how many documents at most.
const (
	copyBatchBytes = 4 << 20
	copyBatch      = 10_000
)

// copying inserts records of one collection into another, some at once.
type copying struct {
	store *storage.Store
	to    namespace.NS
	// left is how many bytes of documents are still to come, and bound how many there is room for: the first ones, which would be deleted
	// again, are not copied.
	left, bound int64
	batch       []storage.Record
	bytes       int
}

// copyInserted inserts the documents of a collection, whose lock is held, into another, hidden ones too: in the order in which they were
// inserted or, where that is not known, of _id; and of these the last that are within bound bytes, but always one.
func (d *DDL) copyInserted(ctx context.Context, c storage.Collection, to namespace.NS, bound int64) error {
	view, err := d.store.View(ctx)
	if err != nil {
		return err
	}
	defer view.Close()
	r, w := c.Read(view).Unhidden(), &copying{store: d.store, to: to, bound: bound}
	if w.left, err = measured(r, bound); err != nil {
		return err
	}
	if c.IsClustered() {
		err = w.scanned(ctx, r)
	} else {
		err = d.copyByNumber(ctx, r, w)
	}
	if err != nil {
		return err
	}
	return w.flush(ctx)
}

// measured is how many bytes the documents of a collection have, where those are more than bound. They are read for it: what is not
// copied is lost, so a counter that is off must not tell.
func measured(r *storage.Reader, bound int64) (size int64, err error) {
	if size, err = r.Bytes(); err != nil || size <= bound {
		return size, err
	}
	cursor, err := r.Scan(storage.RecordScan{})
	if err != nil {
		return 0, err
	}
	defer cursor.Close()
	size = 0
	for cursor.Next() {
		size += int64(len(cursor.Record().Doc))
	}
	return size, cursor.Err()
}

// scanned copies records as they lie.
func (w *copying) scanned(ctx context.Context, r *storage.Reader) error {
	cursor, err := r.Scan(storage.RecordScan{})
	if err != nil {
		return err
	}
	defer cursor.Close()
	for cursor.Next() {
		if err := w.add(ctx, cursor.Record()); err != nil {
			return err
		}
	}
	return cursor.Err()
}

// copyByNumber copies records by their numbers, which they keep wherever they lie.
func (d *DDL) copyByNumber(ctx context.Context, r *storage.Reader, w *copying) error {
	ids := build.NewByNumber(build.Options{TempDir: d.options.TempDir, MemoryBytes: d.Limits.MemoryBytes, Memory: d.options.Memory})
	defer ids.Close()
	if err := addIDs(r, ids); err != nil {
		return err
	}
	for {
		id, ok, err := ids.Next()
		if !ok || err != nil {
			return err
		}
		rec, _, err := r.Get(id)
		if err != nil {
			return err
		}
		if err := w.add(ctx, rec); err != nil {
			return err
		}
	}
}

func addIDs(r *storage.Reader, to *build.ByNumber) error {
	cursor, err := r.Scan(storage.RecordScan{})
	if err != nil {
		return err
	}
	defer cursor.Close()
	for cursor.Next() {
		if err := to.Add(cursor.Current().ID); err != nil {
			return err
		}
	}
	if err := cursor.Err(); err != nil {
		return err
	}
	return to.Finish()
}

// add copies a record sooner or later, and keeps it until then.
func (w *copying) add(ctx context.Context, rec storage.Record) error {
	was := w.left
	w.left -= int64(len(rec.Doc))
	if was > w.bound && w.left > 0 {
		return nil
	}
	rec = rec.Clone()
	w.batch = append(w.batch, rec)
	if w.bytes += len(rec.Doc); w.bytes < copyBatchBytes && len(w.batch) < copyBatch {
		return nil
	}
	return w.flush(ctx)
}

func (w *copying) flush(ctx context.Context) error {
	if len(w.batch) == 0 {
		return nil
	}
	err := w.store.Write(ctx, w.to, storage.WriteOptions{Durability: kv.Buffered}, func(to *storage.Writer) error {
		for _, rec := range w.batch {
			if _, err := to.InsertCopy(rec); err != nil {
				return err
			}
		}
		return nil
	})
	w.batch, w.bytes = w.batch[:0], 0
	return err
}
