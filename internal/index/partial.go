package index

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// partialOperators are what a partial filter may use.
var partialOperators = map[string]bool{
	"$and": true, "$or": true, "$in": true, "$eq": true, "$lt": true, "$lte": true, "$gt": true, "$gte": true,
	"$exists": true, "$type": true, "$geoWithin": true, "$geoIntersects": true,
}

func (p *Parser) parsePartial(d *Definition, v bson.Value) error {
	if v.Type != bson.TypeObject {
		return nil
	}
	if err := checkPartial(v.Doc(), 0); err != nil {
		return err
	}
	f, err := p.filters.Parse(v.Doc().Clone(), match.Options{Collation: d.collator})
	if err != nil {
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
		if len(k) > 0 && k[0] == '$' {
			if k != "$and" && k != "$or" {
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
	if v.Type != bson.TypeObject || len(v.Doc().FirstKey()) == 0 || v.Doc().FirstKey()[0] != '$' {
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
