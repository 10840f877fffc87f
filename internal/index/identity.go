package index

import (
	"bytes"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// same says whether a and b are one index by MongoDB's reckoning: key pattern, unique, sparse, collation, partial
// filter and wildcard projection. The TTL, the name and hidden do not count: where these differ it is one index with other
// options.
func same(a, b *Definition) bool {
	return sameKey(a, b) && a.Unique == b.Unique && a.Sparse == b.Sparse && bytes.Equal(a.Collation, b.Collation) &&
		sameFilter(normalized(a.PartialFilter), normalized(b.PartialFilter)) && sameProjection(a.projection(), b.projection())
}

func sameFilter(a, b bson.Doc) bool {
	return (a == nil) == (b == nil) && (a == nil || bson.CompareDocs(a, b, nil) == 0)
}

// sameProjection says whether two projections of wildcards leave the same, in whatever order and form they say it.
func sameProjection(a, b bson.Doc) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	p, q := readProjection(a), readProjection(b)
	slices.Sort(p.paths)
	slices.Sort(q.paths)
	return p.include == q.include && p.id == q.id && slices.Equal(p.paths, q.paths)
}

func (d *Definition) projection() bson.Doc {
	if v := d.Spec.Lookup("wildcardProjection"); v.Type == bson.TypeObject {
		return v.Doc()
	}
	return nil
}

func sameKey(a, b *Definition) bool {
	if len(a.Fields) != len(b.Fields) {
		return false
	}
	for i, f := range a.Fields {
		g := b.Fields[i]
		if f.Path != g.Path || f.Kind != g.Kind || f.Descending != g.Descending {
			return false
		}
	}
	// {f: 1} and {f: 2} are two indexes. There is one by _id, though, and one that holds the time of the last modification.
	return a.Kind == Deadline || a.IsID() && b.IsID() || bson.CompareDocs(a.Key, b.Key, nil) == 0
}

// setApart are the fields of a specification that are no matter of sameOptions: what same and names tell apart, versions, and
// what only says how to build.
var setApart = map[string]bool{
	"v": true, "key": true, "name": true, "unique": true, "sparse": true, "collation": true, "partialFilterExpression": true,
	"wildcardProjection": true, "background": true, "textIndexVersion": true, "2dsphereIndexVersion": true,
}

// sameOptions says whether a and b, which are one index, have the same options.
func sameOptions(a, b *Definition) bool {
	return hasOptions(a.Spec, b.Spec) && hasOptions(b.Spec, a.Spec)
}

// hasOptions says whether spec has the options of other, as they are written: a default that is said is not one that is not.
func hasOptions(spec, other bson.Doc) bool {
	for it := other.Iter(); it.Next(); {
		if v := spec.Lookup(it.Key()); !setApart[it.Key()] && (v.IsMissing() || !bson.Equal(v, it.Value())) {
			return false
		}
	}
	return true
}

func sameTTL(a, b *Definition) bool {
	return a.TTL == b.TTL && (!a.TTL || a.ExpireAfterSeconds == b.ExpireAfterSeconds && a.HideExpired == b.HideExpired)
}

// sameHidden says whether d does not ask for another hidden than e has.
func sameHidden(e, d *Definition) bool {
	return d.Spec.Lookup("hidden").IsMissing() || d.Hidden == e.Hidden
}

// Retimed is e, an index on _ts, with the TTL of d.
func Retimed(e, d *Definition) *Definition {
	c := d.WithID(e.ID)
	if c.Hidden = e.Hidden; e.Hidden && d.Spec.Lookup("hidden").IsMissing() {
		c.Spec = bson.BuildOn(nil).Fields(d.Spec).Bool("hidden", true).Doc()
	}
	return c
}

// Conflict finds what d means for a collection that has existing: already there (the same), a new value for the TTL on
// _ts (retime), MongoDB's error 85 or 86, or nothing at all.
func Conflict(existing []*Definition, d *Definition) (there, retime *Definition, err error) {
	for _, e := range existing {
		if same(e, d) && e.Kind == Deadline && d.Kind == Deadline && e.Name == d.Name && !sameTTL(e, d) && sameHidden(e, d) {
			return nil, e, nil
		}
	}
	for _, e := range existing {
		switch {
		case e.Name == d.Name && same(e, d):
			if !sameOptions(e, d) {
				return nil, nil, OptionsConflict(e, d)
			}
			return e, nil, nil
		case e.Name == d.Name:
			return nil, nil, mongoerr.New(mongoerr.IndexKeySpecsConflict,
				"An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation. Requested index: %s, existing index: %s", d.Spec, e.Spec)
		}
	}
	for _, e := range existing {
		switch {
		case !same(e, d):
		case e.IsID():
			return e, nil, nil
		case !sameOptions(e, d):
			return nil, nil, mongoerr.New(mongoerr.IndexOptionsConflict,
				"An equivalent index already exists with a different name and options. Requested index: %s, existing index: %s", d.Spec, e.Spec)
		default:
			return nil, nil, mongoerr.New(mongoerr.IndexOptionsConflict, "Index already exists with a different name: %s", e.Name)
		}
	}
	return nil, nil, checkOneText(existing, d)
}

// checkOneText refuses a text index where there is one.
func checkOneText(existing []*Definition, d *Definition) error {
	i := slices.IndexFunc(existing, func(e *Definition) bool { return e.Kind == Text })
	if d.Kind != Text || i < 0 {
		return nil
	}
	return mongoerr.New(mongoerr.CannotCreateIndex, "only one text index per collection allowed, found existing text index \"%s\"", existing[i].Name)
}

// OptionsConflict is the error of an index d that e is already, but for its options.
func OptionsConflict(e, d *Definition) error {
	return mongoerr.New(mongoerr.IndexOptionsConflict,
		"An equivalent index already exists with the same name but different options. Requested index: %s, existing index: %s", d.Spec, e.Spec)
}
