package layout

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
)

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
	// HeaderLength is what a stored record has before its document.
	HeaderLength = 1 + 1 + 8
)

// AppendRecord appends the stored value of a record.
func AppendRecord(dst []byte, modified int64, doc bson.Doc) []byte {
	dst = append(dst, recordVersion, 0)
	dst = binary.BigEndian.AppendUint64(dst, uint64(modified))
	return append(dst, doc...)
}

// MaxDepth bounds the nesting of a document that is read from elsewhere: what is stored nests less.
const MaxDepth = 250

// ErrBrokenRecord is in the error of a record that cannot be read.
var ErrBrokenRecord = errors.New("a record is not what it should be")

// ReadRecord parts a stored value; the record shares its bytes.
func ReadRecord(id RecordID, value []byte) (rec Record, err error) {
	err = rec.Read(id, value)
	return rec, err
}

// Read is ReadRecord for a scan, which fills the same record again and again.
func (r *Record) Read(id RecordID, value []byte) error {
	if len(value) < HeaderLength+len(bson.EmptyDoc) || value[0] != recordVersion || value[1] != 0 {
		return fmt.Errorf("storage: %w: %s has a header that is not known", ErrBrokenRecord, id)
	}
	doc := bson.Doc(value[HeaderLength:])
	if int(binary.LittleEndian.Uint32(doc)) != len(doc) {
		return fmt.Errorf("storage: %w: %s is cut off", ErrBrokenRecord, id)
	}
	r.ID, r.Modified, r.Doc = id, int64(binary.BigEndian.Uint64(value[2:])), doc
	return nil
}
