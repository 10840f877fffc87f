package command

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// checkSeriesIndex applies the rules of the indexes of time series: on the meta field there may be most, on what is
// measured those alone that buckets could have.
func checkSeriesIndex(c *catalog.Collection, d *index.Definition) error {
	t := c.Options.TimeSeries
	switch {
	case d.Kind == index.Text:
		return invalidOptions("Text indexes are not supported on time-series collections")
	case d.Unique || d.PrepareUnique:
		return invalidOptions("Unique indexes are not supported on time-series collections")
	case d.Sparse && !measuresNothing(t, d):
		return invalidOptions("Sparse indexes are not supported on time-series measurements")
	case d.TTL && (d.Key.Count() != 1 || d.Key.FirstKey() != t.TimeField):
		return invalidOptions("TTL indexes on non-time fields are not supported on time-series collections")
	case d.TTL && !filtersMeta(t, d):
		return invalidOptions("TTL indexes on time-series collections require a partialFilterExpression on the metaField")
	case d.PartialFilter != nil && string(d.Collation) != string(c.Options.Collation):
		return mongoerr.New(mongoerr.IndexOptionsConflict, "A partial index of a time-series collection has the collection's collation")
	case d.IsID():
		return mongoerr.New(mongoerr.CannotCreateIndex, "Indexes on _id alone are not supported on time-series collections")
	case d.Wild != nil && !onMeta(t, d):
		return mongoerr.New(7246201, "Wildcard indexes on time-series collections must be on the metaField")
	case (d.Kind == index.Hashed || d.Kind == index.Geo2D) && !onMeta(t, d):
		return mongoerr.New(mongoerr.CannotCreateIndex, "Indexes of type %s are not supported on what a time-series collection measures: %s", d.Kind, d.Key)
	}
	return nil
}

// onMeta says whether all of d's fields are the meta field, or lie in it.
func onMeta(t *catalog.TimeSeries, d *index.Definition) bool {
	for it := d.Key.Iter(); it.Next(); {
		if !isMeta(t, it.Key()) {
			return false
		}
	}
	return true
}

// measuresNothing says whether all of d's fields are of the meta field, or the time.
func measuresNothing(t *catalog.TimeSeries, d *index.Definition) bool {
	for it := d.Key.Iter(); it.Next(); {
		if it.Key() != t.TimeField && !isMeta(t, it.Key()) {
			return false
		}
	}
	return true
}

func isMeta(t *catalog.TimeSeries, path string) bool {
	rest, ok := strings.CutPrefix(path, t.MetaField)
	return ok && t.HasOwnMeta() && (rest == "" || rest[0] == '.')
}

// filtersMeta says whether d has a partial filter, and that on the meta field alone.
func filtersMeta(t *catalog.TimeSeries, d *index.Definition) bool {
	if d.PartialFilter == nil {
		return false
	}
	filter := d.Spec.Lookup("partialFilterExpression")
	return filter.Type == bson.TypeObject && filterOnMeta(t, filter.Doc(), 0)
}

func filterOnMeta(t *catalog.TimeSeries, filter bson.Doc, depth int) bool {
	for it := filter.Iter(); it.Next(); {
		if !strings.HasPrefix(it.Key(), "$") {
			if !isMeta(t, it.Key()) {
				return false
			}
			continue
		}
		if it.Value().Type != bson.TypeArray || depth > maxFilterDepth {
			return false
		}
		for in := it.Value().Doc().Iter(); in.Next(); {
			if in.Value().Type != bson.TypeObject || !filterOnMeta(t, in.Value().Doc(), depth+1) {
				return false
			}
		}
	}
	return true
}

// maxFilterDepth is how deep partial filters are looked into.
const maxFilterDepth = 100
