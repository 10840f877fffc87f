package index

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
)

// OfRecords describes the order of a clustered collection's records as an index: its keys are the record ids.
func OfRecords(name string, c *collation.Collation) *Definition {
	key := bson.Build().Int32("_id", 1).Doc()
	return &Definition{Name: name, Key: key, Fields: []Field{{Path: "_id", Parts: []string{"_id"}}}, Unique: true, collator: c}
}
