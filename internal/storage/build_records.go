package storage

import (
	"context"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/build"
)

// view reads the collection, whatever it is called by now.
func (b *Build) view() (*View, *Reader, error) {
	v, err := b.store.View(b.ctx)
	if err != nil {
		return nil, nil, err
	}
	r, ok := v.CollectionByID(b.Collection)
	if !ok {
		_ = v.Close()
		return nil, nil, aborted("collection dropped")
	}
	return v, r, nil
}

// records is view as package build knows it.
func (b *Build) records() (build.Records, error) {
	_, r, err := b.view()
	if err != nil {
		return nil, err
	}
	return builtRecords{r}, nil
}

// builtRecords is a Reader as package build knows it.
type builtRecords struct{ reader *Reader }

func (r builtRecords) Count() (int64, error) { return r.reader.Stored() }

func (r builtRecords) Scan(after, high RecordID, reverse bool) (build.Cursor, error) {
	c, err := r.reader.Unhidden().Scan(RecordScan{After: after, High: high, Reverse: reverse})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (r builtRecords) Get(id RecordID) (rec Record, there bool, err error) {
	return r.reader.stored(id)
}

func (r builtRecords) IsHidden(rec Record) bool { return r.reader.hidden(rec) }

func (r builtRecords) Holder(key []byte) (RecordID, error) { return r.reader.holder(key) }

func (r builtRecords) Snapshot() (context.Context, kv.Reader) {
	return r.reader.view.ctx, r.reader.view.reader
}

func (r builtRecords) Close() error { return r.reader.view.Close() }
