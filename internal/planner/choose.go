package planner

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Choose finds the plan for q. Without a hint it takes the index that binds the most: single values first, then spans,
// then an order that spares a sort; all documents are looked at when no index binds anything.
func Choose(c Collection, q Query) (*Plan, error) {
	p := &Plan{Filter: q.Filter}
	if q.Filter != nil && isAlwaysTrue(q.Filter.Root) {
		p.Filter = nil
	}
	if t := q.Filter.Text(); t != nil {
		return p, p.text(c, q, t)
	}
	near := q.Near
	if near == nil {
		near = q.Filter.Near()
	}
	if near != nil {
		return p, p.near(c, q, near)
	}
	if !q.Hint.IsNullish() {
		return p, p.hinted(c, q)
	}
	if q.Min != nil || q.Max != nil {
		return nil, mongoerr.New(mongoerr.NoQueryExecutionPlans, "When using min()/max() a hint of which index to use must be provided")
	}
	if id, ok := byID(c, q); ok {
		p.Root, p.Ordered = &IDHack{ID: id}, true
		return p, nil
	}
	p.search(c, q)
	return p, nil
}

func isAlwaysTrue(n match.Node) bool {
	and, ok := n.(*match.And)
	return ok && len(and.Children) == 0
}

// byID finds out whether the filter asks for one _id by value.
func byID(c Collection, q Query) (bson.Value, bool) {
	if q.Filter == nil || !collation.Equal(c.Collation, q.Collation) {
		return bson.Missing, false
	}
	n := q.Filter.Root
	if and, ok := n.(*match.And); ok && len(and.Children) == 1 {
		n = and.Children[0]
	}
	eq, ok := n.(*match.Compare)
	if !ok || eq.Op != match.Eq || eq.Path.String() != "_id" {
		return bson.Missing, false
	}
	switch eq.Value.Type {
	case bson.TypeArray, bson.TypeNull, bson.TypeRegex, bson.TypeUndefined:
		return bson.Missing, false
	}
	return eq.Value, true
}

// candidate is an index scan and how well it fits.
type candidate struct {
	scan    *IndexScan
	ordered bool
	score   int
}

func (p *Plan) search(c Collection, q Query) {
	var demands []predicate
	if q.Filter != nil {
		demands = predicates(q.Filter.Root)
	}
	var best *candidate
	for _, x := range c.Indexes {
		if x.Hidden || !usable(x, demands, q) {
			continue
		}
		k := fit(x, demands, q)
		switch {
		case k == nil:
		case best == nil || k.score > best.score:
			if best != nil {
				p.Considered = append(p.Considered, p.fetch(best.scan))
			}
			best = k
		default:
			p.Considered = append(p.Considered, p.fetch(k.scan))
		}
	}
	switch {
	case best == nil:
		p.collScan(c, q)
	case len(best.scan.Ranges) == 0:
		p.Root, p.Ordered = &EOF{}, true
	default:
		p.Root, p.Ordered = p.fetch(best.scan), best.ordered
	}
}

// fetch gets the documents that scan finds and holds them against all of the filter.
func (p *Plan) fetch(scan *IndexScan) Node { return &Fetch{Child: scan, Filter: p.Filter} }

func (p *Plan) collScan(c Collection, q Query) {
	s := &CollScan{Filter: p.Filter}
	p.Root, p.Ordered = s, len(q.Order) == 0
	if c.Clustered && len(q.Order) == 1 && q.Order[0].Path == "_id" && collation.Equal(c.Collation, q.Collation) {
		s.Backward, p.Ordered = q.Order[0].Descending, true
	}
}

// usable says whether x has a key for every document that the query can want.
func usable(x Index, demands []predicate, q Query) bool {
	if !x.Built() || x.Kind != index.Ordered && !x.isGeo() || x.Fields[0].Path == "" || x.TTL && x.Kind != 0 {
		return false
	}
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

// fit bounds x's fields by the query's demands; nil when that neither binds nor orders anything.
func fit(x Index, demands []predicate, q Query) *candidate {
	s := &IndexScan{Index: x, Bounds: make([]Intervals, len(x.Fields))}
	scopes := make([]match.Node, len(x.Fields))
	score, bound := 0, true
	for i := range x.Fields {
		b, scope := fieldBounds(x, i, demands, q, scopes[:i], s.Bounds[:i])
		s.Bounds[i], scopes[i] = b, scope
		switch {
		case !bound || b.IsAll():
			bound = false
		case len(b) == 0:
			return &candidate{scan: s, ordered: true, score: 1 << 20}
		case b.ArePoints():
			score += 1000 - min(len(b)-1, 400)
		default:
			score += 300 + narrowness(b)
			bound = false
		}
	}
	ordered, backward := order(x, s.Bounds, q)
	s.Backward = backward
	if ordered && len(q.Order) > 0 {
		score += 150
	}
	if score == 0 {
		return nil
	}
	if x.Unique && s.isUniquePoint() {
		score += 5000
	}
	s.Ranges = ranges(x, s.Bounds)
	return &candidate{scan: s, ordered: ordered, score: score}
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

// fieldBounds bounds the i-th field. On a path without arrays all demands hold at once. Through an array they may each be
// met by another element, so that only demands of one $elemMatch, or a single one, bind; and a field behind the same
// array as an earlier, bound one is bound only by the same $elemMatch.
func fieldBounds(x Index, i int, demands []predicate, q Query, scopes []match.Node, earlier []Intervals) (Intervals, match.Node) {
	path := x.Fields[i].Path
	if x.Fields[i].Kind != index.Ordered || x.Kind == index.Geo2D {
		return x.placeBounds(i, demands)
	}
	best, bestScope := All(), match.Node(nil)
	for k, d := range demands {
		if d.path != path {
			continue
		}
		b, ok := nodeBounds(d.node, x, q.Collation)
		if !ok || !x.compatible(i, d.scope, scopes, earlier) {
			continue
		}
		for l, e := range demands {
			together := x.multikey(i) == 0 || d.scope != nil && e.scope == d.scope
			if l == k || e.path != path || !together {
				continue
			}
			if eb, ok := nodeBounds(e.node, x, q.Collation); ok {
				b = intersect(x.compare, b, eb)
			}
		}
		if tighter(b, best) {
			best, bestScope = b, d.scope
		}
	}
	return best, bestScope
}

// compatible says whether the i-th field may be bound in the scope although earlier fields are bound in theirs.
func (x Index) compatible(i int, scope match.Node, scopes []match.Node, earlier []Intervals) bool {
	for j, b := range earlier {
		if b.IsAll() || scope != nil && scope == scopes[j] {
			continue
		}
		shared := commonParts(x.Fields[i].Parts, x.Fields[j].Parts)
		if (x.multikey(i)|x.multikey(j))&(1<<shared-1) != 0 {
			return false
		}
	}
	return true
}

func commonParts(a, b []string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] && n < 63 {
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

// order says whether the keys between the bounds come in the query's order, and whether backwards. Fields held to one
// value may stand anywhere. A field through an array has no one place in the order.
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
		if f.Kind != index.Ordered {
			return false, false
		}
		single := len(bounds[i]) == 1 && bounds[i][0].IsPoint() && x.multikey(i) == 0
		if want[0].Path != f.Path {
			if !single {
				return false, false
			}
			continue
		}
		if x.multikey(i) != 0 {
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

func (p *Plan) hinted(c Collection, q Query) error {
	if q.Hint.Type == bson.TypeObject && q.Hint.Doc().FirstKey() == "$natural" {
		return p.natural(c, q)
	}
	x, err := hintedIndex(c, q.Hint)
	if err != nil {
		return err
	}
	if !x.Built() || x.Kind != index.Ordered && (!x.isGeo() || q.Min != nil || q.Max != nil) {
		return mongoerr.New(mongoerr.NoQueryExecutionPlans, "error processing query: planner returned error :: caused by :: the hinted index %s cannot serve this query", x.Name)
	}
	var demands []predicate
	if q.Filter != nil {
		demands = predicates(q.Filter.Root)
	}
	if q.Min != nil || q.Max != nil {
		return p.minMax(x, q)
	}
	k := fit(x, demands, q)
	if k == nil {
		s := &IndexScan{Index: x, Bounds: make([]Intervals, len(x.Fields))}
		for i := range s.Bounds {
			s.Bounds[i] = All()
		}
		s.Ranges = ranges(x, s.Bounds)
		k = &candidate{scan: s, ordered: len(q.Order) == 0}
	}
	p.Root, p.Ordered = p.fetch(k.scan), k.ordered
	if len(k.scan.Ranges) == 0 {
		p.Root = &EOF{}
	}
	return nil
}

func (p *Plan) natural(c Collection, q Query) error {
	if q.Min != nil || q.Max != nil {
		return mongoerr.New(mongoerr.NoQueryExecutionPlans, "min and max cannot be used with a $natural hint")
	}
	v := q.Hint.Doc().Lookup("$natural")
	p.Root, p.Ordered = &CollScan{Filter: p.Filter, Backward: v.IsNumber() && v.AsDouble() < 0}, len(q.Order) == 0
	return nil
}

func hintedIndex(c Collection, hint bson.Value) (Index, error) {
	var found []Index
	for _, x := range c.Indexes {
		if hint.Type == bson.TypeString && x.Name == hint.Str() ||
			hint.Type == bson.TypeObject && bson.CompareDocs(x.Key, hint.Doc(), nil) == 0 {
			found = append(found, x)
		}
	}
	switch {
	case len(found) == 0 || found[0].Hidden:
		return Index{}, mongoerr.New(mongoerr.BadValue, "error processing query: planner returned error :: caused by :: hint provided does not correspond to an existing index")
	case len(found) > 1:
		return Index{}, mongoerr.New(mongoerr.IndexNotFound, "Hint matched multiple indexes, must hint by index name. Matched: %s and %s", found[0].Spec, found[1].Spec)
	}
	return found[0], nil
}

func (p *Plan) minMax(x Index, q Query) error {
	for _, key := range []bson.Doc{q.Min, q.Max} {
		if key == nil {
			continue
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
	}
	r := keyRange(x, q.Min, q.Max)
	if q.Min != nil && q.Max != nil && string(r.Low) >= string(r.High) {
		return mongoerr.New(51175, "max must be greater than min")
	}
	s := &IndexScan{Index: x, Ranges: []Range{r}, Bounds: make([]Intervals, len(x.Fields))}
	for i := range s.Bounds {
		s.Bounds[i] = All()
	}
	ordered, backward := order(x, s.Bounds, q)
	s.Backward = backward
	p.Root, p.Ordered = p.fetch(s), ordered
	return nil
}
