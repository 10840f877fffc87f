package storage

import (
	"context"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// The oplog is truncated in the background, by range deletions from its beginning: when it has grown over its size as much goes at
// once as to stay below it for a while. What it counts stays true with each commit.

const (
	// oplogSlack is the part of the oplog's size that is truncated beyond what is too much.
	oplogSlack = 50
	// maxTruncatedBytes is how many bytes of entries one commit truncates at most.
	maxTruncatedBytes = 64 << 20
)

// TruncateOplog deletes the oldest entries of an oplog that is larger than it may be, but none that is as young as keep, nor the
// last one, and says how many. more says that it has to be called again.
func (s *Store) TruncateOplog(ctx context.Context, keep oplog.Timestamp) (entries int64, more bool, err error) {
	view, err := s.View(ctx)
	if err != nil {
		return 0, false, err
	}
	defer view.Close()
	r, ok := view.Collection(catalog.OplogNS)
	if !ok || !r.c.IsOplog() {
		return 0, false, nil
	}
	_, bytes, err := r.storedCounts()
	if err != nil || !over(bytes, r.c.Options.Size) {
		return 0, false, err
	}
	excess := bytes - r.c.Options.Size + r.c.Options.Size/oplogSlack
	scan, err := r.Scan(RecordScan{})
	if err != nil {
		return 0, false, err
	}
	defer scan.Close()
	keep = min(keep, s.LastLogged())
	var size int64
	var last []byte
	for size < min(excess, maxTruncatedBytes) && scan.Next() {
		rec := scan.Record()
		if oplog.Timestamp(rec.ID.Number()) >= keep {
			break
		}
		entries++
		size += int64(len(rec.Doc))
		last = append(last[:0], rec.ID...)
	}
	if err := scan.Err(); err != nil || entries == 0 {
		return 0, false, err
	}
	return entries, size < excess, s.truncate(ctx, r.c, last, entries, size)
}

// truncate deletes the first entries of the oplog, up to one.
func (s *Store) truncate(ctx context.Context, c *collection, last []byte, entries, bytes int64) error {
	t, err := s.engine.Begin()
	if err != nil {
		return fmt.Errorf("storage: begin: %w", err)
	}
	low, high := layout.RecordKey(nil, c.ID, nil), append(layout.RecordKey(nil, c.ID, last), 0)
	if s.can.RangeDeletes {
		t.DeleteRange(low, high)
	} else if err := deleteEach(t, low, high); err != nil {
		t.Rollback()
		return err
	}
	t.Add(c.documentsKey, -entries)
	t.Add(c.bytesKey, -bytes)
	t.Mean(&meaning.Meaning{})
	if err := t.Commit(ctx, kv.Buffered); err != nil {
		return fmt.Errorf("storage: truncate the oplog: %w", err)
	}
	return nil
}

// deleteEach is DeleteRange for an engine whose transactions have none.
func deleteEach(t kv.Txn, low, high []byte) error {
	it, err := t.NewIter(kv.IterOptions{Lower: low, Upper: high})
	if err != nil {
		return err
	}
	var keys [][]byte
	for it.Next() {
		keys = append(keys, append([]byte(nil), it.Key()...))
	}
	if err := it.Err(); err != nil {
		_ = it.Close() // the first error is the one to tell
		return err
	}
	for _, key := range keys {
		t.Delete(key)
	}
	return it.Close()
}

// ResizeOplog changes how large the oplog may be, in bytes.
func (s *Store) ResizeOplog(ctx context.Context, bytes int64) error {
	found, release, err := s.lockToChange(ctx, catalog.OplogNS)
	if err != nil {
		return err
	}
	defer release()
	if found[0] == nil {
		return notFound(catalog.OplogNS)
	}
	return s.Change(ctx, func(c *Change) error {
		changed := *found[0].Collection
		options := bson.Build()
		for it := changed.Options.Doc.Iter(); it.Next(); {
			if it.Key() == "size" {
				options.Int64("size", bytes)
				continue
			}
			options.Value(it.Key(), it.Value())
		}
		changed.Options = catalog.ReadOptions(options.Doc())
		return c.Put(&changed)
	})
}
