package update

import (
	"bytes"
	"encoding/binary"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func (p *Parser) parseReplacement(u bson.Value, o Options) (*Update, error) {
	if o.Multi {
		return nil, mongoerr.New(mongoerr.FailedToParse, "multi update is not supported for replacement-style update")
	}
	if len(o.ArrayFilters) > 0 {
		return nil, mongoerr.New(mongoerr.FailedToParse, "arrayFilters may not be specified for replacement-style updates")
	}
	for it := u.Doc().Iter(); it.Next(); {
		if key := it.Key(); key != "" && key[0] == '$' {
			return nil, dollarField(key)
		}
	}
	return &Update{kind: Replacement, source: u, replacement: u.Doc(), keepTimestamps: o.BypassEmptyTimestamps}, nil
}

// replaceWith puts new in the place of doc: _id stays and comes first.
func (u *Update) replaceWith(dst []byte, doc, new bson.Doc, args Args) ([]byte, bool, error) {
	oldID, newID := doc.Lookup("_id"), new.Lookup("_id")
	id := newID
	switch {
	case newID.IsMissing():
		id = oldID
	case !oldID.IsMissing() && bson.Compare(oldID, newID) != 0:
		return dst, false, mongoerr.New(mongoerr.ImmutableField,
			"After applying the update, the (immutable) field '_id' was found to have been altered to %s", element("_id", newID))
	}
	start := len(dst)
	dst, _ = openDoc(dst)
	if !id.IsMissing() {
		dst, _ = head(dst, id.Type, "_id")
		dst = append(dst, id.Data...)
	}
	for it := new.Iter(); it.Next(); {
		key, v := it.Key(), it.Value()
		if key == "_id" {
			continue
		}
		dst, _ = head(dst, v.Type, key)
		if u.kind == Replacement && !u.keepTimestamps && isEmptyTimestamp(v) {
			dst = binary.LittleEndian.AppendUint64(dst, args.Timestamp)
		} else {
			dst = append(dst, v.Data...)
		}
	}
	dst = closeDoc(dst, start)
	return dst, !bytes.Equal(dst[start:], doc), nil
}

func isEmptyTimestamp(v bson.Value) bool {
	return v.Type == bson.TypeTimestamp && binary.LittleEndian.Uint64(v.Data) == 0
}
