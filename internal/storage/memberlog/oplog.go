// Package memberlog keeps within bounds what the commits of a member of a replica set write of themselves: the oplog, what is kept of sessions,
// and documents as they were before changes. It works from above the store. When it is time it does not know.
package memberlog

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/catalogchange"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// The oplog is truncated in the background, by range deletions from its beginning: when it has grown over its size as much goes at
// once as to stay below it for a while. What it counts stays true with each commit.

const (
	// slack is the part of the oplog's size that is truncated beyond what is too much.
	slack = 50
	// maxTruncatedBytes is how many bytes of entries one commit truncates at most.
	maxTruncatedBytes = 64 << 20
)

// Truncate deletes the oldest entries of an oplog that is larger than it may be, but none that is as young as keep, nor the
// last one, and says how many. more says that it has to be called again.
func Truncate(ctx context.Context, s *storage.Store, keep oplog.Timestamp) (entries int64, more bool, err error) {
	view, err := s.View(ctx)
	if err != nil {
		return 0, false, err
	}
	defer view.Close()
	r, ok := view.Collection(catalog.OplogNS)
	if !ok || !r.Catalog().IsOplog() {
		return 0, false, nil
	}
	bytes, err := r.Bytes()
	size := r.Catalog().Options.Size
	if err != nil || size <= 0 || bytes <= size {
		return 0, false, err
	}
	excess := bytes - size + size/slack
	scan, err := r.Scan(storage.RecordScan{})
	if err != nil {
		return 0, false, err
	}
	defer scan.Close()
	keep = min(keep, s.LastLogged())
	var taken int64
	var last storage.RecordID
	for taken < min(excess, maxTruncatedBytes) && scan.Next() {
		rec := scan.Record()
		if oplog.Timestamp(rec.ID.Number()) >= keep {
			break
		}
		entries++
		taken += int64(len(rec.Doc))
		last = append(last[:0], rec.ID...)
	}
	if err := scan.Err(); err != nil || entries == 0 {
		return 0, false, err
	}
	return entries, taken < excess, s.TruncateOplog(ctx, last, entries, taken)
}

// Resize changes how large the oplog may be, in bytes.
func Resize(ctx context.Context, s *storage.Store, bytes int64) error {
	c, release, err := s.LockToChange(ctx, catalog.OplogNS)
	if err != nil {
		return err
	}
	defer release()
	return s.Change(ctx, func(ch *catalogchange.Change) error {
		changed := *c.Collection
		options := bson.Build()
		for it := changed.Options.Doc.Iter(); it.Next(); {
			if it.Key() == "size" {
				options.Int64("size", bytes)
				continue
			}
			options.Value(it.Key(), it.Value())
		}
		changed.Options = catalog.ReadOptions(options.Doc())
		return ch.Put(&changed)
	})
}

// Oldest is the timestamp of the oldest entry of the oplog; 0 where there is none.
func Oldest(ctx context.Context, s *storage.Store) (oplog.Timestamp, error) {
	view, err := s.View(ctx)
	if err != nil {
		return 0, err
	}
	defer view.Close()
	r, ok := view.Collection(catalog.OplogNS)
	if !ok {
		return 0, nil
	}
	c, err := r.Scan(storage.RecordScan{})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if !c.Next() {
		return 0, c.Err()
	}
	n, _ := c.Record().ID.Sequence()
	return oplog.Timestamp(n), nil
}
