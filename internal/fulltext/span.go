package fulltext

import (
	"cmp"
	"slices"

	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// span is one stretch of a field: from a position to the one behind its end, and how many positions in it belong to nothing that is asked for.
type span struct{ start, end, gaps int }

// spans finds stretches of a field.
type spans interface {
	// in appends those of the view that is loaded, by where they start, without doubles.
	in(dst []span) []span
	// needs shows the terms that are looked for.
	needs(visit func(*term))
	// where is the field.
	where() *textField
}

// spanOperator is span, and each of the operators in it.
type spanOperator struct {
	kind             string
	term             *termOperator
	inner            []*spanOperator // of near and or the clauses, of first the operator, of contains little and big, of subtract include and exclude
	slop, end        int
	inOrder, outward bool
	boost            float64
}

func parseSpan(p *parser, a *spec.Reader) operator {
	s := p.readSpan(a)
	return s
}

const spanKinds = 6

func spanNames() [spanKinds]string {
	return [spanKinds]string{"contains", "first", "near", "or", "subtract", "term"}
}

// readSpan reads a document that has one operator on spans.
func (p *parser) readSpan(a *spec.Reader) *spanOperator {
	names := spanNames()
	s := &spanOperator{kind: a.OneOf(names[:]...), boost: 1}
	p.counts(a)
	if p.depth++; p.depth > maxDepth {
		a.Refuse("operators cannot lie in one another more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	if a.Err() != nil {
		return s
	}
	for _, name := range names {
		if sub := a.Inner(name); sub != nil && a.Err() == nil {
			p.readSpanOf(s, sub)
			s.boost = readSpanBoost(sub)
			sub.Done()
		}
	}
	return s
}

func (p *parser) readSpanOf(s *spanOperator, a *spec.Reader) {
	one := func(name string) {
		sub := a.RequiredInner(name)
		s.inner = append(s.inner, p.readSpan(sub))
		sub.Done()
	}
	clauses := func() {
		for _, e := range a.RequiredList("clauses", false) {
			sub := a.Inside(e.Path, e.Value)
			s.inner = append(s.inner, p.readSpan(sub))
			sub.Done()
		}
	}
	switch s.kind {
	case "term":
		s.term = readTerm(a)
		for _, path := range s.term.paths {
			if p.scope.path != "" && !isBelow(path.value, p.scope.path) {
				a.Refuse("%s is not a subfield of %s", path.value, p.scope.path)
			}
		}
	case "first":
		one("operator")
		s.end = a.Positive("endPositionLte", 3)
	case "near":
		clauses()
		s.slop, s.inOrder = a.Count("slop", 0), a.Bool("inOrder", false)
	case "or":
		clauses()
	case "subtract":
		one("include")
		one("exclude")
	case "contains":
		one("little")
		one("big")
		s.outward = a.Enum("spanToReturn", "", "inner", "outer") == "outer"
	}
}

func isBelow(path, root string) bool {
	return len(path) > len(root) && path[:len(root)] == root && path[len(root)] == '.'
}

// spanBoost reads the score of an operator on spans, which can be no more than a boost.
func readSpanBoost(a *spec.Reader) float64 {
	sub := a.Inner("score")
	if sub == nil {
		return 1
	}
	if sub.OneOf("boost", "constant", "function") != "boost" {
		a.Refuse("Only 'boost' score is allowed for a span query")
		return 1
	}
	boost := sub.RequiredInner("boost")
	value := boost.RequiredNumber("value")
	if value <= 0 {
		boost.RefuseField("value", "must be positive")
	}
	boost.Done()
	sub.Done()
	return value
}

func (s *spanOperator) resolve(r *resolver) (node, error) {
	found, err := s.spans(r)
	if err != nil {
		return nil, err
	}
	n := &spanNode{slot: r.slot(), spans: found, boost: s.boost}
	found.needs(func(t *term) { n.terms = append(n.terms, t) })
	return n, nil
}

// spans are those of the operator, by its fields.
func (s *spanOperator) spans(r *resolver) (spans, error) {
	if s.kind == "term" {
		return s.spanTerms(r)
	}
	var inner []spans
	for _, each := range s.inner {
		one, err := each.spans(r)
		if err != nil {
			return nil, err
		}
		if len(inner) > 0 && one.where() != inner[0].where() && s.kind != "or" {
			return nil, spec.Wrong("Clauses must have same field.")
		}
		inner = append(inner, one)
	}
	return &combined{spec: s, inner: inner}, nil
}

func (s *spanOperator) spanTerms(r *resolver) (spans, error) {
	var all []spans
	for _, path := range s.term.paths {
		f, err := r.named(path)
		if err != nil {
			return nil, err
		}
		if f == nil {
			continue
		}
		for _, query := range s.term.queries {
			n, err := s.term.in(r)(f, query)
			if err != nil {
				return nil, err
			}
			switch n := n.(type) {
			case *words:
				n.terms[0].placed = true
				all = append(all, &spanTerm{field: f, term: n.terms[0], places: n.terms[0].places})
			case *matching:
				n.placed = true
				all = append(all, &spanTerm{field: f, places: n.places})
			case *variants:
				n.pattern.placed = true
				all = append(all, &spanTerm{field: f, places: n.places})
			}
		}
	}
	switch len(all) {
	case 0:
		return noSpans{}, nil
	case 1:
		return all[0], nil
	}
	return &combined{spec: &spanOperator{kind: "or"}, inner: all}, nil
}

type noSpans struct{}

func (noSpans) in(dst []span) []span { return dst }
func (noSpans) needs(func(*term))    {}
func (noSpans) where() *textField    { return nil }

// spanTerm are the places of a term, or of several.
type spanTerm struct {
	field  *textField
	term   *term // nil where there are several
	places func() []int
}

func (s *spanTerm) where() *textField { return s.field }

func (s *spanTerm) needs(visit func(*term)) {
	if s.term != nil {
		visit(s.term)
	}
}

func (s *spanTerm) in(dst []span) []span {
	for _, at := range s.places() {
		dst = append(dst, span{at, at + 1, 0})
	}
	return dst
}

// combined are spans made of others.
type combined struct {
	spec  *spanOperator
	inner []spans
}

func (s *combined) where() *textField {
	for _, each := range s.inner {
		if f := each.where(); f != nil {
			return f
		}
	}
	return nil
}

func (s *combined) needs(visit func(*term)) {
	for i, each := range s.inner {
		if s.spec.kind == "subtract" && i > 0 {
			break
		}
		each.needs(visit)
	}
}

// maxSpans bounds the stretches of one field that are looked at.
const maxSpans = 1 << 14

func (s *combined) in(dst []span) []span {
	lists := make([][]span, len(s.inner))
	for i, each := range s.inner {
		lists[i] = each.in(nil)
		if len(lists[i]) > maxSpans {
			lists[i] = lists[i][:maxSpans]
		}
	}
	switch s.spec.kind {
	case "or":
		for _, l := range lists {
			dst = append(dst, l...)
		}
	case "first":
		for _, one := range lists[0] {
			if one.end <= s.spec.end {
				dst = append(dst, one)
			}
		}
	case "subtract":
		dst = subtract(dst, lists[0], lists[1])
	case "contains":
		dst = contained(dst, lists[0], lists[1], s.spec.outward)
	case "near":
		dst = s.near(dst, lists)
	}
	slices.SortFunc(dst, func(a, b span) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
	return slices.Compact(dst)
}

// subtract leaves out what meets one of others.
func subtract(dst, include, exclude []span) []span {
	for _, one := range include {
		if !slices.ContainsFunc(exclude, func(x span) bool { return x.start < one.end && one.start < x.end }) {
			dst = append(dst, one)
		}
	}
	return dst
}

// contained are the little ones that a big one holds, or the big ones that hold a little one.
func contained(dst, little, big []span, outward bool) []span {
	if outward {
		little, big = big, little
	}
	for _, one := range little {
		if slices.ContainsFunc(big, func(x span) bool {
			if outward {
				return one.start <= x.start && x.end <= one.end
			}
			return x.start <= one.start && one.end <= x.end
		}) {
			dst = append(dst, one)
		}
	}
	return dst
}

// near are the stretches that have one of each list, with no more than slop positions between them.
func (s *combined) near(dst []span, lists [][]span) []span {
	for _, l := range lists {
		if len(l) == 0 {
			return dst
		}
	}
	if s.spec.inOrder {
		for _, first := range lists[0] {
			if end, gaps, ok := chain(first, lists[1:]); ok && gaps <= s.spec.slop {
				dst = append(dst, span{first.start, end, gaps})
			}
		}
		return dst
	}
	return s.window(dst, lists)
}

// chain finds the nearest of each list behind the one before.
func chain(first span, lists [][]span) (end, gaps int, ok bool) {
	end = first.end
	for _, l := range lists {
		i, _ := slices.BinarySearchFunc(l, end, func(x span, at int) int { return cmp.Compare(x.start, at) })
		if i == len(l) {
			return 0, 0, false
		}
		gaps += l[i].start - end
		end = l[i].end
	}
	return end, gaps, true
}

// window goes through all lists at once: as far as the one that starts first allows.
func (s *combined) window(dst []span, lists [][]span) []span {
	next := make([]int, len(lists))
	for {
		low, start, end, width := 0, lists[0][next[0]].start, 0, 0
		for i, l := range lists {
			one := l[next[i]]
			if one.start < start {
				low, start = i, one.start
			}
			end, width = max(end, one.end), width+one.end-one.start
		}
		if gaps := end - start - width; gaps <= s.spec.slop && !overlap(lists, next) {
			dst = append(dst, span{start, end, max(gaps, 0)})
		}
		if next[low]++; next[low] == len(lists[low]) {
			return dst
		}
	}
}

// overlap says whether two of the stretches are at one place.
func overlap(lists [][]span, next []int) bool {
	for i, l := range lists {
		for j := range i {
			a, b := l[next[i]], lists[j][next[j]]
			if a.start < b.end && b.start < a.end {
				return true
			}
		}
	}
	return false
}

// spanNode finds documents that have a stretch.
type spanNode struct {
	leaf
	slot  int32
	spans spans
	terms []*term
	boost float64
}

func (n *spanNode) find(ev []evidence) ([]evidence, bool) {
	freq := 0.0
	for _, s := range n.spans.in(nil) {
		freq += 1 / float64(1+s.gaps)
	}
	if freq == 0 {
		return ev, false
	}
	return append(ev, evidence{n.slot, 0, float32(freq), float32(n.spans.where().length)}), true
}

func (n *spanNode) score(c *cursor) (float64, *detail, bool) {
	e, ok := c.next(n.slot)
	if !ok {
		return 0, nil, false
	}
	f := n.spans.where()
	score, d := c.relevance(f, "span("+f.name+")", n.terms, e, n.boost)
	return score, d, true
}

func (n *spanNode) mark(f *textField, mark func(int)) {
	if f != n.spans.where() {
		return
	}
	found := n.spans.in(nil)
	for i := range f.tokens {
		for _, s := range found {
			if at := f.tokens[i].Position; at >= s.start && at < s.end {
				mark(i)
				break
			}
		}
	}
}
