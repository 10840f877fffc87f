package update

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// arrayFilter says which elements an identifier stands for.
type arrayFilter struct{ filter *match.Filter }

func (f *arrayFilter) matches(a *applier, v bson.Value) (bool, error) {
	return f.filter.MatchValue(a.args.Env, v)
}

// parseArrayFilters reads arrayFilters into a map by identifier.
func (p *Parser) parseArrayFilters(o Options) (map[string]*arrayFilter, error) {
	if len(o.ArrayFilters) == 0 {
		return nil, nil
	}
	out := map[string]*arrayFilter{}
	for _, raw := range o.ArrayFilters {
		if raw.Type != bson.TypeObject {
			return nil, mongoerr.New(mongoerr.TypeMismatch, "Expected field arrayFilters to contain objects, but got %s", raw.Type)
		}
		f, err := p.matches.Parse(raw.Doc(), match.Options{Collation: o.Collation, Exprs: o.Exprs, Scope: o.Scope})
		if err != nil {
			return nil, mongoerr.Prefix("Error parsing array filter :: caused by :: ", err)
		}
		id, err := identifierOf(raw.Doc(), "")
		if err != nil {
			return nil, mongoerr.Prefix("Error parsing array filter :: caused by :: ", err)
		}
		switch {
		case id == "":
			return nil, mongoerr.New(mongoerr.FailedToParse, "Cannot use an expression without a top-level field name in arrayFilters")
		case out[id] != nil:
			return nil, mongoerr.New(mongoerr.FailedToParse, "Found multiple array filters with the same top-level field name %s", id)
		}
		out[id] = &arrayFilter{f}
	}
	return out, nil
}

// identifierOf is the one name that all paths of a filter start with, "" when it has no path. The filter is known to be
// well formed, and so is id, the name found until now.
func identifierOf(d bson.Doc, id string) (string, error) {
	for it := d.Iter(); it.Next(); {
		key := it.Key()
		switch {
		case key == "$and" || key == "$or" || key == "$nor":
			for sub := it.Value().Doc().Iter(); sub.Next(); {
				var err error
				if id, err = identifierOf(sub.Value().Doc(), id); err != nil {
					return "", err
				}
			}
			continue
		case strings.HasPrefix(key, "$"):
			continue
		}
		first, _, _ := strings.Cut(key, ".")
		switch {
		case !isIdentifierName(first):
			return "", mongoerr.New(mongoerr.BadValue,
				"The top-level field name must be an alphanumeric string beginning with a lowercase letter, found '%s'", first)
		case id != "" && id != first:
			return "", mongoerr.New(mongoerr.FailedToParse, "Expected a single top-level field name, found '%s' and '%s'", id, first)
		}
		id = first
	}
	return id, nil
}

func isIdentifierName(s string) bool {
	for i := range len(s) {
		c := s[i]
		lower, other := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !lower && (i == 0 || !other) {
			return false
		}
	}
	return s != ""
}
