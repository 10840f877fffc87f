package index

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// partialOperators are what a partial filter may use.
var partialOperators = map[string]bool{
	"$and": true, "$or": true, "$in": true, "$eq": true, "$lt": true, "$lte": true, "$gt": true, "$gte": true,
	"$exists": true, "$type": true, "$all": true, "$geoWithin": true, "$geoIntersects": true,
}

func (p *Parser) parsePartial(d *Definition, v bson.Value) error {
	if v.Type != bson.TypeObject {
		return nil
	}
	f, err := p.filters.Parse(v.Doc().Clone(), match.Options{Collation: d.collator})
	if err != nil {
		return err
	}
	if err := checkPartial(v.Doc(), 0); err != nil {
		return err
	}
	d.PartialFilter, d.partial = v.Doc().Clone(), f
	return nil
}

// maxPartialDepth is how deep $and and $or may nest in a partial filter.
const maxPartialDepth = 4

func checkPartial(filter bson.Doc, depth int) error {
	if depth > maxPartialDepth {
		return mongoerr.New(mongoerr.CannotCreateIndex, "partialFilterExpression depth may not exceed %d", maxPartialDepth)
	}
	for it := filter.Iter(); it.Next(); {
		k, v := it.Key(), it.Value()
		if k == "$comment" {
			continue
		}
		if len(k) > 0 && k[0] == '$' {
			switch k {
			case "$and", "$or":
			case "$ref", "$id", "$db": // compared with a value, like any field
				continue
			default:
				return unsupportedPartial(k)
			}
			if v.Type != bson.TypeArray {
				continue // the filter's own parser says what is wrong
			}
			for branch := v.Doc().Iter(); branch.Next(); {
				if branch.Value().Type == bson.TypeObject {
					if err := checkPartial(branch.Value().Doc(), depth+1); err != nil {
						return err
					}
				}
			}
			continue
		}
		if err := checkPredicate(v); err != nil {
			return err
		}
	}
	return nil
}

func checkPredicate(v bson.Value) error {
	if v.Type == bson.TypeRegex {
		return unsupportedPartial("$regex")
	}
	if !match.IsOperators(v) {
		return nil
	}
	for op := v.Doc().Iter(); op.Next(); {
		if !partialOperators[op.Key()] {
			return unsupportedPartial(op.Key())
		}
		if op.Key() == "$exists" && !op.Value().Truthy() {
			return unsupportedPartial("$not $exists")
		}
		if op.Key() == "$eq" && op.Value().Type == bson.TypeRegex {
			return unsupportedPartial("$regex")
		}
	}
	return nil
}

func unsupportedPartial(op string) error {
	return mongoerr.New(mongoerr.CannotCreateIndex, "Expression not supported in partial index: %s", op)
}

// normalized is a partial filter in a form that is the same for filters that say the same in another order: an $and of
// single conditions, sorted. Nothing but comparisons is made of it.
func normalized(filter bson.Doc) bson.Doc {
	if filter == nil {
		return nil
	}
	parts := conditions(nil, filter)
	slices.SortFunc(parts, func(a, b bson.Doc) int { return bson.CompareDocs(a, b, nil) })
	b := bson.Build()
	for i, p := range parts {
		b.Document(bson.IndexKey(i), p)
	}
	return b.Doc()
}

// conditions appends the single conditions of filter, those of an $and among them.
func conditions(parts []bson.Doc, filter bson.Doc) []bson.Doc {
	for it := filter.Iter(); it.Next(); {
		k, v := it.Key(), it.Value()
		switch {
		case k == "$comment":
		case k == "$and" && v.Type == bson.TypeArray:
			for branch := v.Doc().Iter(); branch.Next(); {
				parts = conditions(parts, branch.Value().Doc())
			}
		case k == "$or" && v.Type == bson.TypeArray:
			parts = append(parts, alternatives(v.Doc()))
		case match.IsOperators(v):
			for op := v.Doc().Iter(); op.Next(); {
				parts = append(parts, bson.Build().Object(k).Value(op.Key(), op.Value()).End().Doc())
			}
		default:
			parts = append(parts, bson.Build().Object(k).Value("$eq", v).End().Doc())
		}
	}
	return parts
}

func alternatives(branches bson.Doc) bson.Doc {
	var all []bson.Doc
	for it := branches.Iter(); it.Next(); {
		if it.Value().Type == bson.TypeObject {
			all = append(all, normalized(it.Value().Doc()))
		}
	}
	slices.SortFunc(all, func(a, b bson.Doc) int { return bson.CompareDocs(a, b, nil) })
	b := bson.Build().Array("$or")
	for i, d := range all {
		b.Document(bson.IndexKey(i), d)
	}
	return b.End().Doc()
}
