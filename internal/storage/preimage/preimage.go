// Package preimage is documents as they were before changes. Of a collection with changeStreamPreAndPostImages each change keeps one, in
// the commit of the change: a document of config.system.preimages, {_id: {nsUUID, ts, applyOpsIndex}, operationTime, preImage}, found by
// the place of the operation in the oplog. The collection is clustered, so the images of a collection lie in the order of time. The package
// does not know who changes documents.
package preimage

import (
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// Images are those that a transaction keeps.
type Images struct {
	all   []image
	bytes int
}

// image is a document as it was before one of the transaction's operations.
type image struct {
	operation int // of the log
	uuid      [16]byte
	doc       bson.Doc
}

// Keep keeps a document of a collection as it was before an operation, by its place in the transaction's log.
func (i *Images) Keep(operation int, collection [16]byte, old bson.Doc) {
	i.all = append(i.all, image{operation, collection, old.Clone()})
	i.bytes += len(old)
}

// Len is how many they are.
func (i *Images) Len() int64 {
	if i == nil {
		return 0
	}
	return int64(len(i.all))
}

// Bytes is how many bytes they have; of none at all there are no bytes.
func (i *Images) Bytes() int {
	if i == nil {
		return 0
	}
	return i.bytes
}

// ID is the _id of the image that belongs to an operation: the index-th of those that the entry at t has of a transaction.
func ID(uuid [16]byte, t oplog.Timestamp, index int) bson.Doc {
	return bson.BuildOn(make([]byte, 0, 64)).Binary("nsUUID", 4, uuid[:]).Timestamp("ts", t.Seconds(), t.Counter()).Int64("applyOpsIndex", int64(index)).Doc()
}

// What stands before the timestamp: in the document of an image, {_id: {nsUUID: 16 bytes, ts, and in the id that its record has by
// package keystring.
const (
	timeInDoc = 4 + 1 + len("_id\x00") + 4 + 1 + len("nsUUID\x00") + 4 + 1 + 16 + 1 + len("ts\x00")
	timeInID  = 1 + 1 + len("nsUUID\x00") + 1 + 1 + 1 + 16 + 1 + len("ts\x00") + 1
)

// Stamp adds the images to a commit that has its entries; to is their collection, nil where there is none.
func (i *Images) Stamp(t kv.Txn, m *meaning.Meaning, to *meaning.Target, c oplog.Circumstances) {
	if to == nil || len(i.all) == 0 {
		return
	}
	entry, first, bytes := 0, 0, int64(0)
	for _, image := range i.all {
		for image.operation >= first+m.Entries[entry].Operations {
			first += m.Entries[entry].Operations
			entry++
		}
		id := ID(image.uuid, 0, image.operation-first)
		doc := bson.BuildOn(make([]byte, 0, len(image.doc)+128)).Document("_id", id).Date("operationTime", c.Wall).Document("preImage", image.doc).Doc()
		key := layout.RecordKey(nil, to.ID, to.AppendID(nil, id.Value()))
		m.Stamp(t, kv.Op{Key: key, Value: layout.AppendRecord(nil, c.Wall, doc)},
			oplog.Reference{At: layout.HeaderLength + timeInDoc, Key: layout.TableLength + timeInID, Entry: entry + 1})
		bytes += int64(len(doc))
	}
	to.Add(t, int64(len(i.all)), bytes)
}

// Records are documents as a view has them.
type Records interface {
	// Document is the one of a collection with the _id; nil where there is none.
	Document(ns namespace.NS, id bson.Value) (bson.Doc, error)
}

// Read is the document as it was before an operation; nil where it was not kept, or is gone.
func Read(from Records, uuid [16]byte, t oplog.Timestamp, index int) (bson.Doc, error) {
	stored, err := from.Document(catalog.PreImagesNS, ID(uuid, t, index).Value())
	if err != nil || stored == nil {
		return nil, err
	}
	image := stored.Lookup("preImage")
	if image.Type != bson.TypeObject {
		return nil, fmt.Errorf("storage: an image has no document: %s", stored)
	}
	return image.Doc(), nil
}

// Place is the collection that an image is of, and when the change was.
func Place(doc bson.Doc) (uuid [16]byte, t oplog.Timestamp, ok bool) {
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

// Last is an _id behind those of all images of a collection.
func Last(uuid [16]byte) bson.Doc { return ID(uuid, 1<<64-1, 1<<62) }
