package planner

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// hinted are the plans that a hint leaves: by one index, or by looking at all documents.
func (p *planning) hinted() ([]*Plan, error) {
	switch {
	case p.q.isNatural():
		return p.natural()
	case hintsRecords(p.c.Clustered, p.q.Hint):
		return p.hintedRecords()
	}
	x, err := hintedIndex(p.c, p.q)
	if err != nil {
		return nil, err
	}
	if x.Wild != nil {
		return p.hintedWild(x)
	}
	if !x.walkable() || x.isGeo() && (p.q.Min != nil || p.q.Max != nil) {
		return nil, p.q.unplanned(mongoerr.NoQueryExecutionPlans, "the hinted index %s cannot serve this query", x.Name)
	}
	if p.q.Min != nil || p.q.Max != nil {
		return p.minMax(x)
	}
	if plans := p.indexed([]Index{x}, false); len(plans) > 0 {
		return plans, nil
	}
	return []*Plan{p.finish(access{node: whole(x)})}, nil
}

func (q Query) isNatural() bool {
	return q.Hint.Type == bson.TypeObject && q.Hint.Doc().FirstKey() == "$natural"
}

// hintedWild are the plans that walk a wildcard index, which has no keys for most documents: there may be none.
func (p *planning) hintedWild(x Index) ([]*Plan, error) {
	if p.q.Min != nil || p.q.Max != nil {
		return p.minMax(x)
	}
	if plans := p.indexed(p.expand([]Index{x}), false); len(plans) > 0 {
		return plans, nil
	}
	return nil, p.q.unplanned(mongoerr.NoQueryExecutionPlans, "the hinted index %s cannot serve this query", x.Name)
}

func (p *planning) natural() ([]*Plan, error) {
	if p.q.Min != nil || p.q.Max != nil {
		return nil, mongoerr.New(mongoerr.NoQueryExecutionPlans, "min and max cannot be used with a $natural hint")
	}
	if p.forbidsScan() {
		return nil, p.q.unplanned(mongoerr.NoQueryExecutionPlans, "hint $natural is not allowed, because 'notablescan' is enabled")
	}
	v := p.q.Hint.Doc().Lookup("$natural")
	return []*Plan{p.collScan(v.IsNumber() && v.AsDouble() < 0)}, nil
}

func hintedIndex(c Collection, q Query) (Index, error) {
	hint := q.Hint
	var found []Index
	for _, x := range c.Indexes {
		if hint.Type == bson.TypeString && x.Name == hint.Str() ||
			hint.Type == bson.TypeObject && bson.CompareDocs(x.Key, hint.Doc(), nil) == 0 {
			found = append(found, x)
		}
	}
	switch {
	case len(found) == 0 || found[0].Hidden:
		return Index{}, q.unplanned(mongoerr.BadValue, "hint provided does not correspond to an existing index")
	case len(found) > 1:
		return Index{}, mongoerr.New(mongoerr.IndexNotFound, "Hint matched multiple indexes, must hint by index name. Matched: %s and %s", found[0].Spec, found[1].Spec)
	}
	return found[0], nil
}

func (p *planning) minMax(x Index) ([]*Plan, error) {
	for _, key := range []bson.Doc{p.q.Min, p.q.Max} {
		if err := x.checkKey(key); err != nil {
			return nil, err
		}
	}
	r := keyRange(x, p.q.Min, p.q.Max)
	if p.q.Min != nil && p.q.Max != nil && string(r.Low) >= string(r.High) {
		return nil, mongoerr.New(51175, "max must be greater than min")
	}
	s := whole(x)
	s.Ranges = []Range{r}
	return []*Plan{p.finish(access{node: s})}, nil
}

// checkKey looks whether key has the fields of x; nil will do.
func (x Index) checkKey(key bson.Doc) error {
	if key == nil {
		return nil
	}
	i := 0
	for it := key.Iter(); it.Next(); i++ {
		if i >= len(x.Fields) || x.Fields[i].Path != it.Key() {
			return mongoerr.New(51174, "The index chosen is not compatible with min/max")
		}
	}
	if i != len(x.Fields) {
		return mongoerr.New(51174, "The index chosen is not compatible with min/max")
	}
	return nil
}
