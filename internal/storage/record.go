package storage

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/ebbdb/ebb/internal/bson"
)

// RecordID names a record within its collection; records are scanned in the order of its bytes. What the bytes mean is
// the collection's affair: an id may change when its document does, so writers use the id that an update returns.
type RecordID []byte

// Clone is id with bytes of its own.
func (id RecordID) Clone() RecordID { return append(RecordID(nil), id...) }

// Compare is how ids are ordered, as records lie.
func (id RecordID) Compare(o RecordID) int { return bytes.Compare(id, o) }

// Value is id as $recordId shows it: a long for plain collections, which stays when the record moves; binary data otherwise.
func (id RecordID) Value() bson.Value {
	if len(id) == sequenceLength || id.isOrdered() {
		return bson.Int64(int64(id.sequence()))
	}
	return bson.Binary(0, id)
}

func (id RecordID) String() string {
	if len(id) == sequenceLength || id.isOrdered() {
		return strconv.FormatUint(id.sequence(), 10)
	}
	return hex.EncodeToString(id)
}

// sequenceLength is the length of a plain collection's ids: a number that grows with each insert.
const sequenceLength = 8

func sequenceID(n uint64) RecordID {
	return binary.BigEndian.AppendUint64(make(RecordID, 0, sequenceLength), n)
}

// Record is a document with what is kept beside it.
type Record struct {
	ID RecordID
	// Modified is the document's last modification in milliseconds since the epoch: _ts.
	Modified int64
	Doc      bson.Doc
}

// Clone is r with bytes of its own.
func (r Record) Clone() Record { return Record{r.ID.Clone(), r.Modified, r.Doc.Clone()} }

// The header of a stored record: version, flags (none yet), last modification.
const (
	recordVersion = 1
	headerLength  = 1 + 1 + 8
)

func appendRecord(dst []byte, modified int64, doc bson.Doc) []byte {
	dst = append(dst, recordVersion, 0)
	dst = binary.BigEndian.AppendUint64(dst, uint64(modified))
	return append(dst, doc...)
}

var errBrokenRecord = errors.New("a record is not what it should be")

// readRecord parts a stored value; the record shares its bytes.
func readRecord(id RecordID, value []byte) (Record, error) {
	if len(value) < headerLength+len(bson.EmptyDoc) || value[0] != recordVersion || value[1] != 0 {
		return Record{}, fmt.Errorf("storage: %w: %s has a header that is not known", errBrokenRecord, id)
	}
	doc := bson.Doc(value[headerLength:])
	if int(binary.LittleEndian.Uint32(doc)) != len(doc) {
		return Record{}, fmt.Errorf("storage: %w: %s is cut off", errBrokenRecord, id)
	}
	return Record{id, int64(binary.BigEndian.Uint64(value[2:])), doc}, nil
}
