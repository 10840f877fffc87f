package planner

import (
	"slices"

	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/match"
)

// access is a way to the documents that some conjuncts ask for.
type access struct {
	node Node
	// seen are the conjuncts that node sees to.
	seen conjunctSet
	// score says how well it looks before it is tried: single values first, then spans, then an order.
	score int
}

// intervals is how many the scan has that was just made.
func (a *access) intervals() (n int) {
	if s, ok := a.node.(*IndexScan); ok {
		for _, b := range s.Bounds {
			n += len(b)
		}
	}
	return n
}

// conjunctSet is a set of conjuncts: most filters have a few, and a map costs more than all that is done with those.
type conjunctSet struct {
	few  []match.Node
	many map[match.Node]bool // all of them, once there are more than fewConjuncts
}

const fewConjuncts = 8

func (s *conjunctSet) has(n match.Node) bool {
	if s.many != nil {
		return s.many[n]
	}
	return slices.Contains(s.few, n)
}

func (s *conjunctSet) len() int { return max(len(s.few), len(s.many)) }

func (s *conjunctSet) add(n match.Node) {
	switch {
	case s.many != nil:
		s.many[n] = true
	case slices.Contains(s.few, n):
	case len(s.few) < fewConjuncts:
		s.few = append(s.few, n)
	default:
		s.many = map[match.Node]bool{n: true}
		for _, f := range s.few {
			s.many[f] = true
		}
	}
}

const (
	scorePoint  = 1000 // a field is held to a value …
	scoreList   = 400  // … of which more cost up to so much
	scoreSpan   = 300
	scoreOrder  = 150
	scoreUnique = 5000
	scoreNone   = 1 << 20 // nothing can match
)

// usable says whether x has a key for every document that the demands can want.
func usable(x Index, demands []predicate, q Query) bool {
	if x.isGeo() && !findsPlaces(x, demands) {
		return false
	}
	if x.Sparse && !demandsPresence(x, demands) {
		return false
	}
	return x.Partial() == nil || implies(demands, x.Partial().Root, q.Collation)
}

// demandsPresence says whether some field of a sparse index must exist in what the query wants.
func demandsPresence(x Index, demands []predicate) bool {
	for _, f := range x.Fields {
		for _, d := range demands {
			if d.path == f.Path && impliesExists(d.node) {
				return true
			}
		}
	}
	return false
}

// whole is a walk of all of x.
func whole(x Index) *IndexScan {
	s := &IndexScan{Index: x, Bounds: make([]Intervals, len(x.Fields))}
	for i := range s.Bounds {
		s.Bounds[i] = All()
	}
	s.narrow()
	return s
}

// narrow makes the keys to walk of the bounds.
func (s *IndexScan) narrow() { s.Ranges, s.From, s.Behind = ranges(s.Index, s.Bounds) }

// boundField is what one field of an index is held to and by which demands.
type boundField struct {
	bounds Intervals
	used   []usedDemand
	scope  match.Node
	more   []Intervals // to intersect bounds with, while they are being found
}

type usedDemand struct {
	predicate
	tight tightness
}

// fit bounds x's fields by the demands, of which those up to own are of the conjuncts at hand and must bind something. lead
// chooses among the demands that may each alone bind the first field, when it is multikey. nil when nothing is bound.
func (p *planning) fit(x Index, demands []predicate, own, lead int) *access {
	if !x.mayLead(demands) {
		return nil
	}
	s := &IndexScan{Index: x, Bounds: make([]Intervals, len(x.Fields))}
	fields := make([]boundField, 0, len(x.Fields))
	score, leading, binds := 0, true, false
	for i := range x.Fields {
		pick := 0
		if i == 0 {
			pick = lead
		}
		f := p.boundsOf(x, i, demands, fields, pick)
		fields, s.Bounds[i] = append(fields, f), f.bounds
		binds = binds || anyOwn(f.used, demands[:own])
		switch {
		case i == 0 && f.bounds.IsAll() && !exactly(f.used):
			return nil
		case len(f.bounds) == 0:
			score, leading = scoreNone, false
		case !leading || f.bounds.IsAll():
			leading = false
		case x.wild != nil && i == x.wild.field: // which binds nothing by itself
			leading = f.bounds.ArePoints()
		case f.bounds.ArePoints():
			score += scorePoint - min(len(f.bounds)-1, scoreList)
		default:
			score += scoreSpan + narrowness(f.bounds)
			leading = false
		}
	}
	if !binds {
		return nil
	}
	a := &access{node: s, score: score}
	p.see(a, s, fields)
	if s.follow(p.q) && len(p.q.Order) > 0 {
		a.score += scoreOrder
	}
	if x.wild != nil {
		a.score-- // the index of the path itself is as good, and smaller
	}
	if x.Unique && s.isUniquePoint() {
		a.score += scoreUnique
	}
	s.narrow()
	return a
}

// mayLead says whether some demand may bind x's first field, as far as its path tells.
func (x Index) mayLead(demands []predicate) bool {
	return x.wild != nil || x.isGeo() || slices.ContainsFunc(demands, func(d predicate) bool { return d.path == x.Fields[0].Path })
}

// anyOwn says whether one of the demands that were used is among own.
func anyOwn(used []usedDemand, own []predicate) bool {
	for _, u := range used {
		for _, d := range own {
			if d.node == u.node && d.top == u.top {
				return true
			}
		}
	}
	return false
}

// exactly says whether a field is all there is to some demand although it bounds nothing, as of a sparse index.
func exactly(used []usedDemand) bool {
	for _, u := range used {
		if u.tight == exact {
			return true
		}
	}
	return false
}

// see notes which conjuncts the scan sees to by its bounds, and gives it those that it can hold against its keys.
func (p *planning) see(a *access, s *IndexScan, fields []boundField) {
	var held []match.Node
	for i, f := range fields {
		for _, u := range f.used {
			switch {
			case u.top != u.node || u.scope != nil: // only a part of a conjunct
			case u.tight == exact:
				a.seen.add(u.top)
			case u.tight == onKey && s.Index.restores(i):
				a.seen.add(u.top)
				held = append(held, u.node)
			}
		}
	}
	s.Filter = p.filterOf(held)
}

// restores says whether the i-th value of a key is the very value of the one document that has the key.
func (x Index) restores(i int) bool {
	return (x.Restores() || x.isWildValue(i) && x.Collator() == nil) && x.multikey(i) == 0 && !hasPosition(x.Fields[i].Path)
}

func narrowness(b Intervals) int {
	if i := b[0]; len(b) == 1 && i.Low.Type == i.High.Type && !i.Low.IsNaN() {
		return 100
	}
	return 0
}

func (s *IndexScan) isUniquePoint() bool {
	for _, b := range s.Bounds {
		if len(b) != 1 || !b[0].IsPoint() {
			return false
		}
	}
	return true
}

// boundsOf bounds the i-th field. On a path without arrays all demands hold at once. Through an array they may each be met
// by another element, so that only demands of one $elemMatch, or a single one, bind: the tightest, or among those of the
// same scope and tightness the one that pick counts to. A field behind the same array as an earlier, bound one is bound
// only by the same $elemMatch. That speaks of one element of its own array: further arrays in that element again have
// elements that each may meet another demand.
func (p *planning) boundsOf(x Index, i int, demands []predicate, earlier []boundField, pick int) boundField {
	switch {
	case x.isGeo() && (x.Fields[i].Kind != index.Ordered || x.Kind == index.Geo2D):
		return x.boundPlace(i, demands)
	case x.wild != nil && i == x.wild.field:
		value := p.boundsOf(x, i+1, demands, append(earlier, boundField{bounds: All()}), pick)
		return boundField{bounds: x.pathBounds(value.bounds)}
	}
	var found []boundField
	scopes := scopePlaces{}
	for _, d := range demands {
		p.step(1)
		if d.path != x.Fields[i].Path || !x.compatible(i, d, earlier) {
			continue
		}
		b, t, ok := p.bounds(d, x, i)
		if !ok {
			continue
		}
		p.step(len(b))
		if at := scopes.together(found, x.multikey(i), d); at >= 0 {
			found[at].more = append(found[at].more, b)
			found[at].used = append(found[at].used, usedDemand{d, t})
			continue
		}
		scopes.add(d.scope, len(found))
		found = append(found, boundField{bounds: b, used: []usedDemand{{d, t}}, scope: d.scope})
	}
	if len(found) == 0 {
		return boundField{bounds: All()}
	}
	for at := range found {
		if f := &found[at]; len(f.more) > 0 {
			f.bounds, f.more = p.intersection(x.compare, append(f.more, f.bounds)), nil
		}
	}
	best := 0
	for k := range found {
		if tighter(found[k].bounds, found[best].bounds) {
			best = k
		}
	}
	return found[(best+pick)%len(found)]
}

// boundPlace is boundsOf for a field of places.
func (x Index) boundPlace(i int, demands []predicate) (f boundField) {
	f.bounds, f.scope = x.placeBounds(i, demands)
	for _, d := range demands {
		if d.path == x.Fields[i].Path && !f.bounds.IsAll() {
			f.used = append(f.used, usedDemand{d, loose})
		}
	}
	return f
}

// scopePlaces is where the bounds of each $elemMatch are among those found, of which there may be as many as there are demands.
type scopePlaces map[match.Node]int

func (s scopePlaces) add(scope match.Node, at int) {
	if _, met := s[scope]; scope != nil && !met {
		s[scope] = at
	}
}

// together finds the bounds that those of d hold at once with, -1 for none.
func (s scopePlaces) together(found []boundField, multikey uint64, d predicate) int {
	switch at, met := s[d.scope]; {
	case multikey == 0 && len(found) > 0:
		return 0
	case d.scope != nil && met && multikey&^components(d.depth) == 0:
		return at
	}
	return -1
}

// intersection is what all sets hold. They are taken in pairs, and what comes of these again: one after the other, each would
// walk all that has come of those before.
func (p *planning) intersection(order compare, sets []Intervals) Intervals {
	if len(sets) == 1 {
		return sets[0]
	}
	half := len(sets) / 2
	a, b := p.intersection(order, sets[:half]), p.intersection(order, sets[half:])
	p.step(len(a) + len(b))
	return intersect(order, a, b)
}

// components are the multikey bits of the first n components of a path. The last bit is that of all from the 64th on.
func components(n int) uint64 { return 1<<n - 1 }

// leads is how many demands may each alone bind the first field of x.
func (p *planning) leads(x Index, demands []predicate) int {
	if x.multikey(0) == 0 {
		return 1
	}
	n, scopes := 0, map[match.Node]bool{}
	for _, d := range demands {
		p.step(1)
		if d.path != x.Fields[0].Path || scopes[d.scope] {
			continue
		}
		if _, _, ok := p.bounds(d, x, 0); ok {
			n, scopes[d.scope] = n+1, d.scope != nil && x.multikey(0)&^components(d.depth) == 0
		}
	}
	return max(n, 1)
}

// compatible says whether the i-th field may be bound by d although earlier fields are bound in their scopes.
func (x Index) compatible(i int, d predicate, earlier []boundField) bool {
	for j, f := range earlier {
		if f.bounds.IsAll() {
			continue
		}
		apart := components(commonParts(x.Fields[i].Parts, x.Fields[j].Parts))
		if d.scope != nil && d.scope == f.scope {
			apart &^= components(d.depth)
		}
		if (x.multikey(i)|x.multikey(j))&apart != 0 {
			return false
		}
	}
	return true
}

func commonParts(a, b []string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func tighter(a, b Intervals) bool {
	if b.IsAll() {
		return !a.IsAll()
	}
	if a.ArePoints() != b.ArePoints() {
		return a.ArePoints()
	}
	return len(a) < len(b) || len(a) == len(b) && len(a) > 0 && narrowness(a) > narrowness(b)
}

// follow turns the scan into the direction in which its keys come in the query's order; false when they do in none.
func (s *IndexScan) follow(q Query) bool {
	ordered, backward := order(s.Index, s.Bounds, q)
	s.Backward = backward
	return ordered
}

// ordersArrays says whether a walk comes by all keys that a document has for the i-th field: it is not bounded, nor any other
// through the same array. An array at a position has one place in the order, and keys for its elements. A sparse index lacks the null
// of an element without the field.
func (x Index) ordersArrays(i int, bounds []Intervals) bool {
	if x.wild != nil || x.Sparse || hasPosition(x.Fields[i].Path) {
		return false
	}
	for k := range x.Fields {
		if x.multikey(k) != 0 && !bounds[k].IsAll() && (k == i || x.Fields[k].Parts[0] == x.Fields[i].Parts[0]) {
			return false
		}
	}
	return true
}

// order says whether the keys between the bounds come in the query's order, and whether backwards. Fields held to one
// value may stand anywhere. A document with an array comes at its first key, which is where it has its place in the order as
// long as none of its keys is left out.
func order(x Index, bounds []Intervals, q Query) (ordered, backward bool) {
	if len(q.Order) == 0 {
		return true, false
	}
	if !collation.Equal(x.Collator(), q.Collation) {
		return false, false
	}
	want := q.Order
	set := false
	for i, f := range x.Fields {
		if len(want) == 0 {
			break
		}
		if f.Kind != index.Ordered && !x.isHashed(i) {
			return false, false
		}
		single := len(bounds[i]) == 1 && bounds[i][0].IsPoint()
		if x.isHashed(i) && (!single || want[0].Path == f.Path) {
			return false, false // values of one hash are in no order
		}
		if want[0].Path != f.Path {
			if !single {
				return false, false
			}
			continue
		}
		if x.multikey(i) != 0 && !x.ordersArrays(i, bounds) {
			return false, false
		}
		if down := want[0].Descending != f.Descending; !single {
			if set && down != backward {
				return false, false
			}
			backward, set = down, true
		}
		want = want[1:]
	}
	return len(want) == 0, backward
}
