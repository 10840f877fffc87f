package storage

import (
	"context"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// Of a collection with changeStreamPreAndPostImages each change keeps the document as it was, in the commit of the change: a document
// of config.system.preimages, {_id: {nsUUID, ts, applyOpsIndex}, operationTime, preImage}, found by the place of the operation in the
// oplog. The collection is clustered, so the images of a collection lie in the order of time.

// preImages are those that a transaction keeps.
type preImages struct {
	all   []preImage
	bytes int
}

// preImage is a document as it was before one of the transaction's operations.
type preImage struct {
	operation int // of the log
	uuid      [16]byte
	doc       bson.Doc
}

// keepPreImage keeps what the operation that was logged last has changed.
func (w *Writer) keepPreImage(old bson.Doc) {
	if !w.c.Options.ChangeStreamPreAndPostImages {
		return
	}
	images := &w.txn.preImages
	images.all = append(images.all, preImage{w.log.Len() - 1, w.c.UUID, old.Clone()})
	images.bytes += len(old)
}

// PreImageID is the _id of the image that belongs to an operation: the index-th of those that the entry at t has of a transaction.
func PreImageID(uuid [16]byte, t oplog.Timestamp, index int) bson.Doc {
	return bson.BuildOn(make([]byte, 0, 64)).Binary("nsUUID", 4, uuid[:]).Timestamp("ts", t.Seconds(), t.Counter()).Int64("applyOpsIndex", int64(index)).Doc()
}

// What stands before the timestamp: in the document of an image, {_id: {nsUUID: 16 bytes, ts, and in the id that its record has by
// package keystring.
const (
	preImageTimeInDoc = 4 + 1 + len("_id\x00") + 4 + 1 + len("nsUUID\x00") + 4 + 1 + 16 + 1 + len("ts\x00")
	preImageTimeInID  = 1 + 1 + len("nsUUID\x00") + 1 + 1 + 1 + 16 + 1 + len("ts\x00") + 1
)

// stampPreImages adds images to a commit that has its entries.
func stampPreImages(t kv.Txn, m *meaning.Meaning, v *version, c oplog.Circumstances, images []preImage) {
	to := v.historyOf(catalog.PreImagesNS)
	if to == nil {
		return
	}
	stamped := len(m.Entries) + len(m.References)
	entry, first, bytes := 0, 0, int64(0)
	for _, image := range images {
		for image.operation >= first+m.Entries[entry].Operations {
			first += m.Entries[entry].Operations
			entry++
		}
		id := PreImageID(image.uuid, 0, image.operation-first)
		doc := bson.BuildOn(make([]byte, 0, len(image.doc)+128)).Document("_id", id).Date("operationTime", c.Wall).Document("preImage", image.doc).Doc()
		key := layout.RecordKey(nil, to.ID, to.appendID(nil, id.Value()))
		t.Stamp(kv.Op{Key: key, Value: layout.AppendRecord(nil, c.Wall, doc)})
		m.References = append(m.References, oplog.Reference{Stamped: stamped, At: layout.HeaderLength + preImageTimeInDoc, Key: layout.TableLength + preImageTimeInID, Entry: entry + 1})
		stamped++
		bytes += int64(len(doc))
	}
	t.Add(to.documentsKey, int64(len(images)))
	t.Add(to.bytesKey, bytes)
}

// PreImage is the document as it was before an operation; ok is false where it was not kept, or is gone.
func (v *View) PreImage(uuid [16]byte, t oplog.Timestamp, index int) (doc bson.Doc, ok bool, err error) {
	r, ok := v.Collection(catalog.PreImagesNS)
	if !ok {
		return nil, false, nil
	}
	rec, ok, err := r.GetByID(PreImageID(uuid, t, index).Value())
	if err != nil || !ok {
		return nil, false, err
	}
	image := rec.Doc.Lookup("preImage")
	if image.Type != bson.TypeObject {
		return nil, false, fmt.Errorf("storage: an image has no document: %s", rec.Doc)
	}
	return image.Doc(), true, nil
}

// OldestLogged is the timestamp of the oldest entry of the oplog; 0 where there is none.
func (s *Store) OldestLogged(ctx context.Context) (oplog.Timestamp, error) {
	view, err := s.View(ctx)
	if err != nil {
		return 0, err
	}
	defer view.Close()
	r, ok := view.Collection(catalog.OplogNS)
	if !ok {
		return 0, nil
	}
	c, err := r.Scan(RecordScan{})
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

const (
	// maxImagesDropped and maxImageBytesDropped bound what one commit drops.
	maxImagesDropped     = 1000
	maxImageBytesDropped = 8 << 20
)

// DropPreImages deletes the images of operations before t, and says how many those were.
func (s *Store) DropPreImages(ctx context.Context, t oplog.Timestamp) (dropped int, err error) {
	from := RecordID(nil) // the id behind which to go on
	for {
		n, next, err := s.dropPreImages(ctx, t, from)
		dropped += n
		if next == nil || err != nil {
			if mongoerr.Is(err, mongoerr.NamespaceNotFound) {
				err = nil
			}
			return dropped, err
		}
		from = next
	}
}

// dropPreImages deletes some of them, and says where to go on; nil where there are no more.
func (s *Store) dropPreImages(ctx context.Context, t oplog.Timestamp, from RecordID) (n int, next RecordID, err error) {
	err = s.Write(ctx, catalog.PreImagesNS, WriteOptions{Durability: kv.Buffered, history: true}, func(w *Writer) error {
		n, next = 0, nil
		low, size := from, 0
		for {
			c, err := w.Scan(RecordScan{Low: low})
			if err != nil {
				return err
			}
			leap := RecordID(nil)
			for c.Next() {
				rec := c.Record()
				if n >= maxImagesDropped || size >= maxImageBytesDropped {
					next = rec.ID.Clone()
					break
				}
				uuid, at, ok := preImagePlace(rec.Doc)
				if !ok || at >= t { // and so are the others of that collection
					leap = behindImagesOf(w.c, uuid)
					break
				}
				rec = rec.Clone()
				if err := w.Delete(rec); err != nil {
					_ = c.Close() // the first error is the one to tell
					return err
				}
				n, size = n+1, size+len(rec.Doc)
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

// preImagePlace is the collection that an image is of, and when the change was.
func preImagePlace(doc bson.Doc) (uuid [16]byte, t oplog.Timestamp, ok bool) {
	id := doc.Lookup("_id")
	if id.Type != bson.TypeObject {
		return uuid, 0, false
	}
	ns, ts := id.Doc().Lookup("nsUUID"), id.Doc().Lookup("ts")
	if ns.Type != bson.TypeBinary || ts.Type != bson.TypeTimestamp {
		return uuid, 0, false
	}
	_, data := ns.Binary()
	copy(uuid[:], data)
	return uuid, oplog.NewTimestamp(ts.Timestamp()), true
}

// behindImagesOf is the lowest id behind all images of a collection.
func behindImagesOf(c *collection, uuid [16]byte) RecordID {
	return c.appendID(nil, PreImageID(uuid, 1<<64-1, 1<<62).Value())
}
