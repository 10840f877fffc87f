package indexddl

import (
	"context"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/build"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// view reads the collection, whatever it is called by now.
func (b *builder) view() (*storage.View, *storage.Reader, error) {
	v, err := b.ddl.store.View(b.ctx)
	if err != nil {
		return nil, nil, err
	}
	r, ok := v.CollectionByID(b.Collection)
	if !ok {
		_ = v.Close()
		return nil, nil, build.Aborted("collection dropped")
	}
	return v, r, nil
}

// records is view as package build knows it.
func (b *builder) records() (build.Records, error) {
	_, r, err := b.view()
	if err != nil {
		return nil, err
	}
	return builtRecords{r, r.Unhidden()}, nil
}

// builtRecords is a Reader as package build knows it.
type builtRecords struct{ reader, unhidden *storage.Reader }

func (r builtRecords) Count() (int64, error) { return r.reader.Stored() }

func (r builtRecords) Scan(after, high layout.RecordID, reverse bool) (build.Cursor, error) {
	c, err := r.unhidden.Scan(storage.RecordScan{After: after, High: high, Reverse: reverse})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (r builtRecords) Get(id layout.RecordID) (rec layout.Record, there bool, err error) {
	return r.unhidden.Get(id)
}

func (r builtRecords) IsHidden(rec layout.Record) bool { return r.reader.IsHidden(&rec) }

func (r builtRecords) Holder(key []byte) (layout.RecordID, error) { return r.reader.Holder(key) }

func (r builtRecords) Snapshot() (context.Context, kv.Reader) {
	d := r.reader.Dates()
	return d.Ctx, d.Snapshot
}

func (r builtRecords) Close() error { return r.reader.View().Close() }
