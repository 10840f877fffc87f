// Package duplicate tells clients of keys that are there already, and operators of entries that lead nowhere.
package duplicate

import (
	"encoding/hex"
	"fmt"
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// Key is E11000 for a key of a unique index.
func Key(c *catalog.Collection, d *index.Definition, key, typeBits []byte) error {
	value, err := d.KeyValue(key, typeBits)
	if err != nil {
		return fmt.Errorf("storage: a key of %s in %q cannot be read: %w", c.NS, d.Name, err)
	}
	text := " index: " + d.Name
	if d.Collation != nil {
		text += " collation: " + d.Collation.String()
		value = inHex(value)
	}
	return inTheWay(c, text, d.Key, value)
}

// ID is E11000 for the _id of a clustered collection, which no index holds. MongoDB reads the _id back from the
// record id for it, and fails at the numbers that are told apart by more than their place in the order.
func ID(c *catalog.Collection, doc bson.Doc) error {
	id := doc.Lookup("_id")
	switch {
	case id.IsNaN():
		return mongoerr.New(50819, "Invalid type bits for numeric NaN")
	case id.Type == bson.TypeDouble && math.IsInf(id.Double(), 0), id.Type == bson.TypeDecimal && id.Decimal().Inf() != 0:
		return mongoerr.New(50826, "Invalid type bits for infinity")
	}
	pattern := bson.Build().Int32("_id", 1).Doc()
	return inTheWay(c, "", pattern, bson.Build().Value("_id", id).Doc())
}

func inTheWay(c *catalog.Collection, where string, pattern, value bson.Doc) error {
	extra := bson.Build().Document("keyPattern", pattern).Document("keyValue", value).Doc()
	return mongoerr.New(mongoerr.DuplicateKey, "E11000 duplicate key error collection: %s%s dup key: %s", c.NS, where, value).WithExtra(extra)
}

// inHex shows strings that a collation has turned into bytes as such.
func inHex(value bson.Doc) bson.Doc {
	b := bson.Build()
	for it := value.Iter(); it.Next(); {
		v := it.Value()
		if v.Type == bson.TypeString {
			v = bson.String("0x" + hex.EncodeToString([]byte(v.Str())))
		}
		b.Value(it.Key(), v)
	}
	return b.Doc()
}

// BrokenIndex is for an entry without its record: the index and the records do not agree.
func BrokenIndex(c *catalog.Collection, d *index.Definition, id layout.RecordID) error {
	return mongoerr.New(mongoerr.DataCorruptionDetected, "index %q of %s names record %s, which does not exist; run validate", d.Name, c.NS, id)
}
