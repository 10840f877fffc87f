package command

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
)

// readExpirationEvents reads what the oplog is to tell of what expires; missing where nothing is asked for.
func (op *Op) readExpirationEvents(a *Args) bson.Value {
	if op.APIStrict {
		return bson.Missing
	}
	word, ok := a.enum("expirationEvents", string(catalog.DocumentEvents), string(catalog.SummaryEvents), string(catalog.NoEvents))
	if !ok {
		return bson.Missing
	}
	return bson.String(word)
}

// setExpirationEvents sets it.
func setExpirationEvents(o options, v bson.Value, reply *bson.Builder) {
	if v.IsMissing() {
		return
	}
	was := bson.String(string(catalog.DocumentEvents))
	if stored, ok := o["expirationEvents"]; ok {
		was = stored
	}
	reply.Value("expirationEvents_old", was).Value("expirationEvents_new", v)
	o.set("expirationEvents", v)
}
