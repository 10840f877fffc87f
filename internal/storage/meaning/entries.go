package meaning

import (
	"bytes"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// Log tells the oplog of the change, whose catalogue was old, in the commands that make it. What is in local is not told, nor what
// becomes of a collection of the profiler, whose documents are not told either.
func (d *DDL) Log(l *oplog.Log, old *catalog.Catalog) {
	for i, e := range d.Events {
		if e.NS.DB == catalog.LocalDB || e.NS.Coll == catalog.ProfileCollection || e.Kind == CollectionDropped && d.isTarget(i) {
			continue
		}
		o, o2 := d.command(i, old)
		uuid := &e.UUID
		coll := d.collection(&e, old)
		if e.Kind == DatabaseDropped || coll != nil && coll.IsView() {
			uuid = nil
		}
		l.Series(nil)
		if coll != nil {
			l.Series(coll.Options.TimeSeries)
		}
		l.Command(e.NS.DB, uuid, o, o2)
	}
}

// isTarget says whether the collection that event i drops is in the way of one that is renamed next, whose entry tells of it.
func (d *DDL) isTarget(i int) bool {
	return i+1 < len(d.Events) && d.Events[i+1].Kind == CollectionRenamed && d.Events[i+1].To == d.Events[i].NS
}

// Put is the collection with the number as the change leaves it, nil where it does not change its definition.
func (d *DDL) Put(id uint32) *catalog.Collection {
	for _, step := range d.Steps {
		if step.Put != nil && step.Put.ID == id {
			return step.Put
		}
	}
	return nil
}

// collection is the one that the event is about, as the change leaves it or, where it drops it, as it was; nil for a database.
func (d *DDL) collection(e *Event, old *catalog.Catalog) *catalog.Collection {
	if coll := d.Put(e.Collection); coll != nil {
		return coll
	}
	return old.ByID(e.Collection)
}

// command is event i as a command, and what belongs beside it.
func (d *DDL) command(i int, old *catalog.Catalog) (o, o2 bson.Doc) {
	e, b := &d.Events[i], bson.Build()
	switch e.Kind {
	case CollectionCreated:
		b.String("create", e.NS.Coll)
		if coll := d.Put(e.Collection); coll != nil {
			b.Fields(coll.Options.Doc)
			if id := coll.IDIndex(); id != nil {
				b.Document("idIndex", id.Listed())
			}
		}
	case CollectionDropped:
		b.String("drop", e.NS.Coll)
	case DatabaseDropped:
		b.Int32("dropDatabase", 1)
	case CollectionRenamed:
		b.String("renameCollection", e.NS.String()).String("to", e.To.String()).Bool("stayTemp", false)
		if i > 0 && d.isTarget(i-1) {
			b.Binary("dropTarget", 4, d.Events[i-1].UUID[:])
		}
		if coll := d.Put(e.Collection); coll != nil && coll.UUID != e.UUID { // by which what comes next calls it
			o2 = bson.Build().Binary("ui", 4, coll.UUID[:]).Doc()
		}
	case CollectionModified:
		next, was := d.Put(e.Collection), old.ByID(e.Collection)
		if was != nil {
			o2 = OptionsBefore(was)
		}
		switch {
		case next == nil || was == nil:
			b.String("collMod", e.NS.Coll)
		case next.IsView(): // whose collation stays
			b.String("collMod", e.NS.Coll).Value("viewOn", next.Options.Doc.Lookup("viewOn")).Value("pipeline", next.Options.Doc.Lookup("pipeline"))
		case next.Options.Capped && !was.Options.Capped: // which no collMod does
			b.String("convertToCapped", e.NS.Coll).Value("size", next.Options.Doc.Lookup("size"))
		default:
			appendModified(b.String("collMod", e.NS.Coll), was.Options.Doc, next.Options.Doc)
		}
	case IndexCreated:
		b.String("createIndexes", e.NS.Coll).Fields(e.Index.Listed())
	case IndexDropped:
		b.String("dropIndexes", e.NS.Coll).String("index", e.Index.Name)
		o2 = e.Index.Listed()
	case IndexModified:
		b.String("collMod", e.NS.Coll).Object("index").String("name", e.Index.Name)
		var before *index.Definition
		coll := old.ByID(e.Collection)
		if coll != nil {
			before = coll.Index(e.Index.Name)
		}
		if before != nil {
			appendChanged(b, before.Listed(), e.Index.Listed())
			appendGone(b, before, e.Index)
			was := bson.Build().Fields(OptionsBefore(coll)).Object("indexOptions_old")
			appendChanged(was, e.Index.Listed(), before.Listed())
			if !before.Hidden && e.Index.Hidden { // what is not hidden does not say so
				was.Bool("hidden", false)
			}
			o2 = was.End().Doc()
		}
		b.End()
	}
	if e.Kept != nil {
		b.Date("keepExpired", e.Kept.Since)
	}
	return b.Doc(), o2
}

// OptionsBefore is what an entry of a collMod says of the collection's options, which were there before.
func OptionsBefore(c *catalog.Collection) bson.Doc {
	return bson.Build().Object("collectionOptions_old").Binary("uuid", 4, c.UUID[:]).Fields(c.Options.Doc).End().Doc()
}

// boundsOf are the names that collMod has for options of capped collections.
var boundsOf = map[string]string{"size": "cappedSize", "max": "cappedMax"}

// withoutOption is what collMod is told so that a collection has an option no more.
var withoutOption = map[string]bson.Value{
	"changeStreamPreAndPostImages": bson.Build().Bool("enabled", false).Doc().Value(),
	"validator":                    bson.EmptyDoc.Value(),
	"validationLevel":              bson.String("strict"),
	"validationAction":             bson.String("error"),
	"expireAfterSeconds":           bson.String("off"),
	"max":                          bson.Int64(0),
	"ttlPaused":                    bson.False,
	"expirationEvents":             bson.String("documents"),
}

// appendModified appends what a collMod has to say so that old options become next.
func appendModified(b *bson.Builder, old, next bson.Doc) {
	name := func(option string) string {
		if bound, ok := boundsOf[option]; ok {
			return bound
		}
		return option
	}
	for it := next.Iter(); it.Next(); {
		if was := old.Lookup(it.Key()); !same(was, it.Value()) && !comesWithValidator(old, next, it.Key()) {
			b.Value(name(it.Key()), changeable(it.Key(), it.Value()))
		}
	}
	for it := old.Iter(); it.Next(); {
		if off, ok := withoutOption[it.Key()]; ok && next.Lookup(it.Key()).IsMissing() {
			b.Value(name(it.Key()), off)
		}
	}
}

func same(v, w bson.Value) bool { return v.Type == w.Type && bytes.Equal(v.Data, w.Data) }

// comesWithValidator says whether a collMod that gives a collection its first validator leaves the option as next has it without naming it.
func comesWithValidator(old, next bson.Doc, option string) bool {
	return (option == "validationLevel" || option == "validationAction") && old.Lookup(option).IsMissing() && same(next.Lookup(option), withoutOption[option]) &&
		old.Lookup("validator").IsMissing() && !next.Lookup("validator").IsMissing()
}

// changeable is what collMod takes of an option's value: of a time series how its measurements are parted, for its fields stay.
func changeable(option string, v bson.Value) bson.Value {
	if option != "timeseries" {
		return v
	}
	if granularity := v.Doc().Lookup("granularity"); !granularity.IsMissing() { // from which the span follows
		return bson.Build().Value("granularity", granularity).Doc().Value()
	}
	b := bson.Build()
	for _, bound := range [...]string{"bucketRoundingSeconds", "bucketMaxSpanSeconds"} {
		b.Value(bound, v.Doc().Lookup(bound))
	}
	return b.Doc().Value()
}

// appendGone appends what collMod is told so that an index that was old has no more what next does not have: what is off is not listed.
func appendGone(b *bson.Builder, old, next *index.Definition) {
	if old.Hidden && !next.Hidden {
		b.Bool("hidden", false)
	}
	if old.HideExpired && !next.HideExpired {
		b.Bool("hideExpired", false)
	}
	if old.PrepareUnique && !next.PrepareUnique && !next.Unique { // what becomes unique needs no preparing
		b.Bool("prepareUnique", false)
	}
	if old.Unique && !next.Unique {
		b.Bool("forceNonUnique", true)
	}
}

// appendChanged appends the fields of next that are others in old, or not there.
func appendChanged(b *bson.Builder, old, next bson.Doc) {
	for it := next.Iter(); it.Next(); {
		v := it.Value()
		if same(old.Lookup(it.Key()), v) {
			continue
		}
		if seconds, exact := v.AsInt64(); exact && it.Key() == "expireAfterSeconds" { // a long here, whatever the index has
			v = bson.Int64(seconds)
		}
		b.Value(it.Key(), v)
	}
}
