package catalog

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// Options are what a collection was created with, as collMod changed it since. Doc is the whole of it as listCollections
// shows it; the other fields are read from it.
type Options struct {
	Doc bson.Doc

	Capped bool
	// Size and Max bound a capped collection: bytes, and documents (0: no bound).
	Size, Max int64

	// NoIDIndex says that there is no index on _id (autoIndexId: false): only the oplog has none.
	NoIDIndex bool

	Clustered *Clustered
	// ExpireAfterSeconds is the TTL of a clustered collection on its _id, or of the measurements of a time series; HasTTL
	// says whether there is one.
	ExpireAfterSeconds int64
	HasTTL             bool
	// TTLPaused says that nothing is deleted because it has expired; hiding goes on.
	TTLPaused bool
	// ExpirationEvents is what the oplog tells of what expires.
	ExpirationEvents ExpirationEvents

	// ViewOn is the name of the collection that a view looks at, Pipeline its array of stages.
	ViewOn   string
	Pipeline bson.Doc

	// TimeSeries is nil for all but time-series collections.
	TimeSeries *TimeSeries
	Collation  bson.Doc

	Validator                         bson.Doc
	ValidationLevel, ValidationAction string
	ChangeStreamPreAndPostImages      bool
	// Temp says that the collection is dropped when a server starts, or a member begins to lead: who made it is gone.
	Temp bool

	// Encrypted are the fields that clients encrypt; none for all but encrypted collections, which IsEncrypted tells.
	Encrypted   []EncryptedField
	IsEncrypted bool
}

// ExpirationEvents is what the oplog tells of what expires: each document by itself where nothing is said.
type ExpirationEvents string

// What the oplog may tell of what expires.
const (
	DocumentEvents ExpirationEvents = "documents"
	// SummaryEvents: how many documents went at once.
	SummaryEvents ExpirationEvents = "summary"
	NoEvents      ExpirationEvents = "none"
)

// SumUp says that what expires is not told of document by document.
func (e ExpirationEvents) SumUp() bool { return e == SummaryEvents || e == NoEvents }

// Clustered is the index that a clustered collection is ordered by.
type Clustered struct {
	Name string
}

// ReadOptions reads options that create or collMod once found good; what makes no sense reads as absent.
func ReadOptions(doc bson.Doc) Options {
	o := Options{Doc: bson.EmptyDoc}
	if len(doc) > 0 {
		o.Doc = doc.Clone()
	}
	o.Capped = o.Doc.Lookup("capped").Truthy()
	autoIndex := o.Doc.Lookup("autoIndexId")
	o.NoIDIndex = autoIndex.Type == bson.TypeBool && !autoIndex.Bool()
	o.Size = whole(o.Doc, "size")
	o.Max = whole(o.Doc, "max")
	o.ViewOn = text(o.Doc, "viewOn")
	if v := o.Doc.Lookup("pipeline"); v.Type == bson.TypeArray {
		o.Pipeline = v.Doc()
	}
	o.Clustered = readClustered(o.Doc.Lookup("clusteredIndex"))
	if v := o.Doc.Lookup("expireAfterSeconds"); v.IsNumber() && !v.IsNaN() {
		o.ExpireAfterSeconds, o.HasTTL = v.TruncInt64(), true
	}
	o.TTLPaused = o.Doc.Lookup("ttlPaused").Truthy()
	o.ExpirationEvents = ExpirationEvents(text(o.Doc, "expirationEvents"))
	o.TimeSeries = readTimeSeries(o.Doc.Lookup("timeseries"))
	o.Collation = object(o.Doc, "collation")
	o.Validator = object(o.Doc, "validator")
	o.ValidationLevel = text(o.Doc, "validationLevel")
	o.ValidationAction = text(o.Doc, "validationAction")
	if v := o.Doc.Lookup("encryptedFields"); v.Type == bson.TypeObject {
		o.Encrypted, o.IsEncrypted = readEncrypted(v), true
	}
	o.Temp = o.Doc.Lookup("temp").Truthy()
	if images := object(o.Doc, "changeStreamPreAndPostImages"); images != nil {
		o.ChangeStreamPreAndPostImages = images.Lookup("enabled").Truthy()
	}
	return o
}

// WithTemp is the document of options, with temp: true or without temp.
func WithTemp(doc bson.Doc, temp bool) bson.Doc {
	b := bson.Build()
	for it := doc.Iter(); it.Next(); {
		if it.Key() != "temp" {
			b.Value(it.Key(), it.Value())
		}
	}
	if temp {
		b.Bool("temp", true)
	}
	return b.Doc()
}

func readClustered(v bson.Value) *Clustered {
	switch {
	case v.Type == bson.TypeObject:
		c := &Clustered{Name: text(v.Doc(), "name")}
		if c.Name == "" {
			c.Name = "_id_"
		}
		return c
	case v.Type == bson.TypeBool && v.Bool():
		return &Clustered{Name: "_id_"}
	}
	return nil
}

func whole(d bson.Doc, key string) int64 {
	if v := d.Lookup(key); v.IsNumber() {
		return v.TruncInt64()
	}
	return 0
}

func text(d bson.Doc, key string) string {
	if v := d.Lookup(key); v.Type == bson.TypeString {
		return strings.Clone(v.Str())
	}
	return ""
}

func object(d bson.Doc, key string) bson.Doc {
	if v := d.Lookup(key); v.Type == bson.TypeObject {
		return v.Doc()
	}
	return nil
}
