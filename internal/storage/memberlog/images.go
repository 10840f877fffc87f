package memberlog

import (
	"context"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/storage/preimage"
)

const (
	// maxImagesDropped and maxImageBytesDropped bound what one commit drops.
	maxImagesDropped     = 1000
	maxImageBytesDropped = 8 << 20
)

// Dropped is what of images was deleted.
type Dropped struct{ Images, Bytes int64 }

// DropImages deletes the images of operations before t.
func DropImages(ctx context.Context, s *storage.Store, t oplog.Timestamp) (dropped Dropped, err error) {
	from := storage.RecordID(nil) // the id behind which to go on
	for {
		n, next, err := dropSome(ctx, s, t, from)
		dropped.Images, dropped.Bytes = dropped.Images+n.Images, dropped.Bytes+n.Bytes
		if next == nil || err != nil {
			if mongoerr.Is(err, mongoerr.NamespaceNotFound) {
				err = nil
			}
			return dropped, err
		}
		from = next
	}
}

// dropSome deletes some of them, and says where to go on; nil where there are no more.
func dropSome(ctx context.Context, s *storage.Store, t oplog.Timestamp, from storage.RecordID) (n Dropped, next storage.RecordID, err error) {
	err = s.Write(ctx, catalog.PreImagesNS, storage.WriteOptions{Durability: kv.Buffered, OfMember: true}, func(w *storage.Writer) error {
		n, next = Dropped{}, nil
		low := from
		for {
			c, err := w.Scan(storage.RecordScan{Low: low})
			if err != nil {
				return err
			}
			leap := storage.RecordID(nil)
			for c.Next() {
				rec := c.Record()
				if n.Images >= maxImagesDropped || n.Bytes >= maxImageBytesDropped {
					next = rec.ID.Clone()
					break
				}
				uuid, at, ok := preimage.Place(rec.Doc)
				if !ok || at >= t { // and so are the others of that collection
					leap = w.RecordIDOf(preimage.Last(uuid).Value())
					break
				}
				rec = rec.Clone()
				if err := w.Delete(rec); err != nil {
					_ = c.Close() // the first error is the one to tell
					return err
				}
				n.Images, n.Bytes = n.Images+1, n.Bytes+int64(len(rec.Doc))
			}
			err = c.Err()
			if closed := c.Close(); err == nil {
				err = closed
			}
			if err != nil || leap == nil {
				return err
			}
			low = leap
		}
	})
	return n, next, err
}
