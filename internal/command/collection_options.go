package command

import (
	"github.com/ebbdb/ebb/internal/bson"
)

// optionOrder is the order in which listCollections shows a collection's options.
var optionOrder = [...]string{"capped", "size", "max", "temp", "changeStreamPreAndPostImages", "storageEngine", "indexOptionDefaults",
	"validator", "validationLevel", "validationAction", "collation", "viewOn", "pipeline", "clusteredIndex", "expireAfterSeconds",
	"timeseries", "encryptedFields", "ttlPaused", "expirationEvents", "autoIndexId"}

// options are a collection's options on their way into the catalogue, by name.
type options map[string]bson.Value

// readOptions takes apart what doc made.
func readOptions(doc bson.Doc) options {
	o := options{}
	for it := doc.Iter(); it.Next(); {
		o[string([]byte(it.Key()))] = it.Value().Clone()
	}
	return o
}

// doc is o in one order, so that equal options are equal bytes.
func (o options) doc() bson.Doc {
	b := bson.Build()
	for _, name := range optionOrder {
		if v, ok := o[name]; ok {
			b.Value(name, v)
		}
	}
	return b.Doc()
}

// set changes an option; Missing takes it away.
func (o options) set(name string, v bson.Value) {
	if v.IsMissing() {
		delete(o, name)
		return
	}
	o[name] = v.Clone()
}
