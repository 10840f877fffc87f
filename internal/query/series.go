package query

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// measurement is doc as a time series keeps it: its time first, then whose it is, as MongoDB's buckets give it back. What is
// wrong with the time is said here, since it is the first thing that MongoDB looks at. The fields of the meta field are in
// the order of their names, as in buckets: who writes them in another order is the same source. What an oplog tells of has the order that it has: by
// that it is found again.
func measurement(t *catalog.TimeSeries, doc bson.Doc, logged bool) (bson.Doc, error) {
	at := doc.Lookup(t.TimeField)
	if at.Type != bson.TypeDate {
		return nil, badTime(t)
	}
	b := bson.BuildOn(make([]byte, 0, len(doc))).Value(t.TimeField, at)
	switch meta := doc.Lookup(t.MetaField); {
	case !t.HasOwnMeta() || meta.IsMissing():
	case logged:
		b.Value(t.MetaField, meta)
	default:
		appendSorted(b, t.MetaField, meta, 0)
	}
	for it := doc.Iter(); it.Next(); {
		if k := it.Key(); k != t.TimeField && k != t.MetaField {
			b.Value(k, it.Value())
		}
	}
	return b.Doc(), nil
}

// appendSorted appends v with the fields of its documents sorted, those in arrays, too.
func appendSorted(b *bson.Builder, key string, v bson.Value, depth int) {
	switch {
	case depth > bson.MaxDepth: // such a document is refused
		b.Value(key, v)
	case v.Type == bson.TypeObject:
		b.Object(key)
		for _, f := range fieldsByName(v.Doc()) {
			appendSorted(b, f.name, f.value, depth+1)
		}
		b.End()
	case v.Type == bson.TypeArray:
		b.Array(key)
		for it := v.Doc().Iter(); it.Next(); {
			appendSorted(b, it.Key(), it.Value(), depth+1)
		}
		b.End()
	default:
		b.Value(key, v)
	}
}

type field struct {
	name  string
	value bson.Value
}

func fieldsByName(doc bson.Doc) (fields []field) {
	for it := doc.Iter(); it.Next(); {
		fields = append(fields, field{it.Key(), it.Value()})
	}
	slices.SortStableFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return fields
}

func badTime(t *catalog.TimeSeries) error {
	return mongoerr.New(mongoerr.BadValue, "'%s' must be present and contain a valid BSON UTC datetime value", t.TimeField)
}

// bucketsOf is the view that shows the cells of a time series as documents with the outlines of MongoDB's buckets; nil when
// ns is not the name of such.
func bucketsOf(all *catalog.Catalog, ns namespace.NS) *catalog.Collection {
	coll := all.BehindBuckets(ns)
	if coll == nil {
		return nil
	}
	t := coll.Options.TimeSeries
	at := bson.String("$" + t.TimeField)
	cell := bson.Build().Array("$subtract").Value("0", at).Object("1").Array("$mod").
		Object("0").Value("$toLong", at).End().Int64("1", t.SpanSeconds*1000).End().End().End().Doc()
	group := bson.Build().Object("$group").Object("_id").Document("start", cell)
	if t.MetaField != "" {
		group.String("meta", "$"+t.MetaField)
	}
	group.End().Object("first").Value("$min", at).End().Object("last").Value("$max", at).End().
		Object("count").Int32("$sum", 1).End().End()
	project := bson.Build().Object("$project").Object("control").Object("version").Int32("$literal", 1).End().
		Object("min").String(t.TimeField, "$_id.start").End().Object("max").String(t.TimeField, "$last").End().
		String("count", "$count").End().String("meta", "$_id.meta").End()
	options := bson.Build().String("viewOn", coll.NS.Coll).Value("pipeline", bson.ArrayOf(group.Doc().Value(), project.Doc().Value())).Doc()
	return &catalog.Collection{NS: ns, Options: catalog.ReadOptions(options)}
}

// fusion is the name of the stage that joins several searches when stages begin with one.
func fusion(stages bson.Value) string {
	first := stages.Doc().Index(0)
	if first.Type != bson.TypeObject {
		return ""
	}
	switch name := first.Doc().FirstKey(); name {
	case "$rankFusion", "$scoreFusion":
		return name
	}
	return ""
}

// checkFusion refuses the stages that join several searches.
func checkFusion(c *catalog.Catalog, ns namespace.NS, stages bson.Value) error {
	name := fusion(stages)
	if name == "" {
		return nil
	}
	if coll := c.Collection(ns); coll != nil && coll.IsTimeSeries() || c.BehindBuckets(ns) != nil {
		return mongoerr.New(10557301, "%s is unsupported for time-series collections", name)
	}
	return nil
}

// checkSeriesUpdate refuses the updates that a time series does not take: all but those of the meta field, of all documents
// that a filter of the meta field finds.
func checkSeriesUpdate(coll *catalog.Collection, u *Update) error {
	if coll == nil || !coll.IsTimeSeries() {
		return nil
	}
	meta := coll.Options.TimeSeries.MetaField
	switch {
	case !u.Multi:
		return seriesRefuses("Cannot perform a non-multi update on a time-series collection")
	case u.Upsert:
		return seriesRefuses("Cannot perform an upsert on a time-series collection")
	case meta == "":
		return seriesRefuses("Cannot perform an update on a time-series collection that does not have a metaField")
	}
	if err := checkSeriesFilter(u.Filter, meta, 0); err != nil {
		return err
	}
	return checkSeriesChange(u.Change, meta)
}

func seriesRefuses(format string, args ...any) error {
	return mongoerr.New(mongoerr.InvalidOptions, format, args...)
}

// isOf says whether path is field or leads into it.
func isOf(path, field string) bool {
	rest, ok := strings.CutPrefix(path, field)
	return ok && (rest == "" || rest[0] == '.')
}

// maxFilterDepth is how deep conditions are looked into; the parser refuses what lies deeper.
const maxFilterDepth = 200

// checkSeriesFilter refuses filters of other fields than the meta field.
func checkSeriesFilter(filter bson.Doc, meta string, depth int) error {
	if depth > maxFilterDepth {
		return nil
	}
	for it := filter.Iter(); it.Next(); {
		switch key := it.Key(); {
		case key == "$comment":
		case key == "$expr":
			return seriesRefuses("Cannot use $expr when performing an update or delete on a time-series collection")
		case (key == "$and" || key == "$or" || key == "$nor") && it.Value().Type == bson.TypeArray:
			for in := it.Value().Doc().Iter(); in.Next(); {
				if in.Value().Type != bson.TypeObject {
					continue
				}
				if err := checkSeriesFilter(in.Value().Doc(), meta, depth+1); err != nil {
					return err
				}
			}
		case !isOf(key, meta):
			return seriesRefuses("Cannot perform an update or delete on a time-series collection when querying on a field that is not the metaField '%s'", meta)
		}
	}
	return nil
}

func checkSeriesChange(change bson.Value, meta string) error {
	if change.Type == bson.TypeArray {
		return seriesRefuses("Cannot perform an update on a time-series collection using a pipeline update")
	}
	doc := change.Doc()
	if !strings.HasPrefix(doc.FirstKey(), "$") {
		return seriesRefuses("Cannot perform an update on a time-series collection using a replacement document")
	}
	for it := doc.Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			continue // which the parser refuses
		}
		for field := it.Value().Doc().Iter(); field.Next(); {
			to := field.Value()
			leaves := it.Key() == "$rename" && to.Type == bson.TypeString && !isOf(to.Str(), meta)
			if !isOf(field.Key(), meta) || leaves {
				return seriesRefuses("Cannot perform an update on a time-series collection which updates a field that is not the metaField '%s'", meta)
			}
		}
	}
	return nil
}
