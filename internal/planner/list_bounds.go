package planner

import (
	"slices"

	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/match"
)

// minKeptList is from how many values on the bounds of a list are kept for the other indexes that have the field.
const minKeptList = 64

// listKey is what the bounds of a list of values depend on: the list, and of the index how it orders strings and whether arrays are behind its keys.
type listKey struct {
	list     *match.In
	collator *collation.Collation
	multikey bool
}

type listBounds struct {
	intervals Intervals
	tightness tightness
	ok        bool
}

// bounds is d.bounds. A long list of values is sorted once, and not for each index: where many have the field that is most of the planning.
func (p *planning) bounds(d predicate, x Index, i int) (Intervals, tightness, bool) {
	list, isList := d.node.(*match.In)
	if !isList || d.compares != nil || len(list.Values) < minKeptList || len(list.Regexes) > 0 || x.isHashed(i) || x.isWildValue(i) {
		return d.bounds(x, i, p.q.Collation)
	}
	key := listKey{list, x.Collator(), x.multikey(i) != 0}
	kept, found := p.lists[key]
	if !found {
		kept.intervals, kept.tightness, kept.ok = d.bounds(x, i, p.q.Collation)
		kept.intervals = slices.Clip(kept.intervals)
		if p.lists == nil {
			p.lists = map[listKey]listBounds{}
		}
		p.lists[key] = kept
	}
	return kept.intervals, kept.tightness, kept.ok
}
