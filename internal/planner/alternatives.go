package planner

import (
	"encoding/binary"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
)

const (
	// maxOrSolutions is how many ways to find all branches of an $or are considered: MongoDB's
	// internalQueryEnumerationMaxOrSolutions.
	maxOrSolutions = 10
	// maxOrBranches is how many branches these may have together, beyond which fewer are: each takes memory, in the plan and
	// while plans race.
	maxOrBranches = 20_000
	// maxOrDepth bounds $or within $or.
	maxOrDepth = 10
	// maxKeptIntervals is how many intervals the scans that are considered for one query may have together: a list of values has one each, in each index
	// that has the field.
	maxKeptIntervals = 1 << 18
)

// accesses are the ways by which the indexes find what the conjuncts ask for. outside are demands from around an $or that
// hold for its branches, too. choice says that only an index that has all documents wanted will do.
func (p *planning) accesses(conj []match.Node, outside []predicate, indexes []Index, choice bool) []access {
	return p.accessesAt(conj, outside, indexes, choice, 0)
}

func (p *planning) accessesAt(conj []match.Node, outside []predicate, indexes []Index, choice bool, depth int) (found []access) {
	demands := p.demands(&match.And{Children: conj})
	own := len(demands)
	if own == 0 && !slices.ContainsFunc(conj, func(n match.Node) bool { _, or := n.(*match.Or); return or }) {
		return nil
	}
	demands = append(demands, outside...)
	for _, x := range indexes {
		p.step(len(demands))
		if choice && !usable(x, demands, p.q) || x.wild != nil && !x.isServed(demands) {
			continue
		}
		for lead := range p.leads(x, demands) {
			a := p.fit(x, demands, own, lead)
			if a == nil {
				continue
			}
			if len(found) == maxIndexedSolutions {
				p.reached.And = true // and more would not be kept: there may be as many as there are demands
				break
			}
			intervals := a.intervals()
			if len(found) > 0 && p.intervals+intervals > maxKeptIntervals {
				p.reached.And = true
				p.replaceWorst(found, a)
				break
			}
			p.intervals += intervals
			found = append(found, *a)
		}
	}
	byIndex := len(found)
	for _, c := range conj {
		or, ok := c.(*match.Or)
		if !ok || depth == maxOrDepth {
			continue
		}
		if len(found)-byIndex >= maxIndexedSolutions {
			p.reached.And = true
			break
		}
		found = append(found, p.alternatives(or, demands, indexes, choice, depth)...)
	}
	slices.SortStableFunc(found, func(a, b access) int { return b.score - a.score })
	return found
}

// replaceWorst has a take the place of the one that looks worst, if it looks better: which index comes first says nothing of how good it is.
func (p *planning) replaceWorst(found []access, a *access) {
	worst := 0
	for i := range found {
		if found[i].score < found[worst].score {
			worst = i
		}
	}
	if a.score > found[worst].score {
		p.intervals += a.intervals() - found[worst].intervals()
		found[worst] = *a
	}
}

// alternatives are the ways to find all branches of or, each by an index of its own.
func (p *planning) alternatives(or *match.Or, outside []predicate, indexes []Index, choice bool, depth int) []access {
	branches := make([][]access, len(or.Children))
	most := orSolutions(len(branches))
	for i, c := range or.Children {
		branch := conjuncts(c)
		for k, a := range p.accessesAt(branch, outside, indexes, choice, depth+1) {
			if k == most { // no pick has more
				p.reached.Or = true
				break
			}
			branches[i] = append(branches[i], p.settle(a, branch))
		}
		if len(branches[i]) == 0 {
			return nil
		}
	}
	var out []access
	for _, pick := range p.picks(branches) {
		inputs := make([]access, len(branches))
		for i, k := range pick {
			inputs[i] = branches[i][k]
		}
		out = append(out, p.either(or, inputs))
	}
	return out
}

// picks are choices of one way a branch: the best of each first, then all that differ from it in one branch.
func (p *planning) picks(branches [][]access) [][]int {
	out, most := [][]int{make([]int, len(branches))}, orSolutions(len(branches))
	for i, b := range branches {
		for k := 1; k < len(b); k++ {
			if len(out) == most {
				p.reached.Or = true
				break
			}
			pick := make([]int, len(branches))
			pick[i] = k
			out = append(out, pick)
		}
	}
	return out
}

// orSolutions is how many ways to find so many branches of an $or are considered.
func orSolutions(branches int) int {
	return max(1, min(maxOrSolutions, maxOrBranches/max(1, branches)))
}

// settle has a hold what is found against the conjuncts that it has not seen to.
func (p *planning) settle(a access, conj []match.Node) access {
	if rest := unseen(a, conj); len(rest) > 0 {
		a.node = &Fetch{Child: a.node, Filter: p.filterOf(rest)}
	}
	return a
}

func unseen(a access, conj []match.Node) (rest []match.Node) {
	for _, c := range conj {
		if !a.seen.has(c) {
			rest = append(rest, c)
		}
	}
	return rest
}

// either joins the branches of or: in order where all have one and it is wanted, one after the other where not.
func (p *planning) either(or *match.Or, inputs []access) access {
	inputs = p.melt(inputs)
	out := access{score: scoreNone}
	out.seen.add(or)
	var nodes []Node
	for _, a := range inputs {
		out.score = min(out.score, a.score)
		nodes = append(nodes, a.node)
	}
	out.score -= min(len(nodes), scoreList)
	switch {
	case len(nodes) == 1:
		out.node = nodes[0]
		return out
	case len(p.q.Order) > 0:
		if merged, ok := p.merge(nodes); ok {
			out.node = merged
			out.score += scoreOrder
			return out
		}
	}
	out.node = &Or{Inputs: nodes}
	return out
}

// melt makes one scan of those that differ in the bounds of one field only.
func (p *planning) melt(inputs []access) []access {
	fields := 0
	for _, a := range inputs {
		if s, ok := a.node.(*IndexScan); ok && s.melts() {
			fields = max(fields, len(s.Bounds))
		}
	}
	for i := range fields {
		inputs = p.meltAt(inputs, i)
	}
	return inputs
}

// meltAt makes one scan of those that differ in the bounds of the i-th field only, in the place of the first. There may be
// thousands of inputs, so they are told apart by what they have in common and not compared with one another.
func (p *planning) meltAt(inputs []access, i int) (out []access) {
	places := map[string]int{}
	alike := make([][]*IndexScan, 0, len(inputs)) // beside out
	for _, a := range inputs {
		s, ok := a.node.(*IndexScan)
		if !ok || !s.melts() || i >= len(s.Bounds) {
			out, alike = append(out, a), append(alike, nil)
			continue
		}
		key := s.besides(i)
		k, met := places[key]
		if !met {
			places[key] = len(out)
			out, alike = append(out, a), append(alike, []*IndexScan{s})
			continue
		}
		alike[k] = append(alike[k], s)
		out[k].score = min(out[k].score, a.score)
	}
	for k, scans := range alike {
		if len(scans) > 1 {
			out[k] = access{node: p.joined(scans, i), score: out[k].score}
		}
	}
	return out
}

// joined is one scan of what each of scans finds, whose bounds are the same but for the i-th field.
func (p *planning) joined(scans []*IndexScan, i int) *IndexScan {
	s := *scans[0]
	var all Intervals
	for _, one := range scans {
		all = append(all, one.Bounds[i]...)
	}
	s.Bounds = slices.Clone(s.Bounds)
	s.Bounds[i] = normalize(s.Index.compare, all)
	s.follow(p.q)
	s.narrow()
	return &s
}

// melts says whether the scan may become one with others.
func (s *IndexScan) melts() bool { return s.Filter == nil && !s.unusual() }

// besides is the same for scans of one index whose bounds differ in the i-th field at most.
func (s *IndexScan) besides(i int) string {
	key := binary.LittleEndian.AppendUint32(nil, s.Index.ID)
	key = append(key, s.Index.Key...)
	for k, bounds := range s.Bounds {
		if k == i {
			continue
		}
		key = binary.AppendUvarint(key, uint64(len(bounds)))
		for _, b := range bounds {
			key = b.append(key)
		}
	}
	return string(key)
}

// unusual says whether the scan walks something other than what Bounds says.
func (s *IndexScan) unusual() bool { return !s.Index.ordered() }

// merge brings the nodes' results together in the query's order, when each comes in it; lists of values in front of the
// order are taken apart.
func (p *planning) merge(nodes []Node) (Node, bool) {
	var inputs []Node
	for _, n := range nodes {
		parts, ok := p.inOrder(n, maxScansToExplode-len(inputs))
		if !ok || len(inputs)+len(parts) > maxScansToExplode {
			return nil, false
		}
		inputs = append(inputs, parts...)
	}
	if len(inputs) == 1 {
		return inputs[0], true
	}
	return &SortMerge{Inputs: inputs, Order: p.q.Order, Collation: p.q.Collation}, true
}

// givesDocuments says whether n gives documents and not only record ids.
func givesDocuments(n Node) bool {
	switch n := n.(type) {
	case *Fetch:
		return true
	case *Or:
		return !slices.ContainsFunc(n.Inputs, func(n Node) bool { return !givesDocuments(n) })
	case *SortMerge:
		return !slices.ContainsFunc(n.Inputs, func(n Node) bool { return !givesDocuments(n) })
	}
	return false
}

// inOrder is n as nodes that each give the query's order, at most limit.
func (p *planning) inOrder(n Node, limit int) ([]Node, bool) {
	switch n := n.(type) {
	case *IndexScan:
		if n.follow(p.q) {
			return []Node{n}, true
		}
		return p.explode(n, limit)
	case *Fetch:
		parts, ok := p.inOrder(n.Child, limit)
		for i := range parts {
			parts[i] = &Fetch{Child: parts[i], Filter: n.Filter}
		}
		return parts, ok
	case *SortMerge:
		return n.Inputs, true
	case *Or:
		m, ok := p.merge(n.Inputs)
		if !ok {
			return nil, false
		}
		if s, is := m.(*SortMerge); is {
			return s.Inputs, true
		}
		return []Node{m}, true
	}
	return nil, false
}

// maxScansToExplode is how many scans are made of one whose leading fields have lists of values, so that each has the
// order of the fields behind: MongoDB's internalQueryMaxScansToExplode.
const maxScansToExplode = 200

// explode makes of a scan with lists of values in front of the query's order one scan a combination of the values.
func (p *planning) explode(s *IndexScan, limit int) ([]Node, bool) {
	if len(s.Ranges) == 0 || s.unusual() {
		return nil, false
	}
	scans := []*IndexScan{s}
	for i := range s.Bounds {
		if !s.Bounds[i].ArePoints() {
			break
		}
		if len(scans)*len(s.Bounds[i]) > limit {
			p.reached.Explode = true
			return nil, false
		}
		scans = splitAt(scans, i)
		if probe := *scans[0]; probe.follow(p.q) {
			break
		}
	}
	nodes := make([]Node, len(scans))
	for k, one := range scans {
		if !one.follow(p.q) {
			return nil, false
		}
		one.narrow()
		nodes[k] = one
	}
	return nodes, len(nodes) > 1
}

// splitAt makes of each scan one a value of the i-th field.
func splitAt(scans []*IndexScan, i int) (out []*IndexScan) {
	for _, s := range scans {
		for _, v := range s.Bounds[i] {
			one := *s
			one.Bounds = slices.Clone(s.Bounds)
			one.Bounds[i] = Intervals{v}
			out = append(out, &one)
		}
	}
	return out
}

// append writes the interval so that another one is written otherwise.
func (i Interval) append(dst []byte) []byte {
	ends := byte(0)
	if i.LowInclusive {
		ends |= 1
	}
	if i.HighInclusive {
		ends |= 2
	}
	dst = append(dst, ends)
	for _, v := range []bson.Value{i.Low, i.High} {
		dst = binary.AppendUvarint(append(dst, byte(v.Type)), uint64(len(v.Data)))
		dst = append(dst, v.Data...)
	}
	return dst
}
