package fulltext

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/fulltext/analysis"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// sequence finds documents that have terms one behind the other in a field.
type sequence struct {
	leaf
	slot  int32
	field *textField
	name  string
	terms []*term // of all seats
	seats []seat
	slop  int
	spots [][2]int // where it was found last: the first position and the last
}

// seat is a place of a phrase.
type seat struct {
	terms     []*term // of which one stands there
	at        int     // from the first one
	positions []int   // where the view that is loaded has them
	merged    []int
}

// positioned refuses a field without positions.
func (f *textField) positioned() error {
	if f.def.NoPositions {
		return spec.Wrong("field %s not indexed as string with indexOptions=offset or indexOptions=positions, which is required for phrase operator queries", f.path)
	}
	return nil
}

// phrase is the node of a phrase's tokens.
func (r *resolver) phrase(f *textField, tokens []analysis.Token, slop int) (node, error) {
	if len(tokens) < 2 {
		return r.words(f, tokens, false)
	}
	if err := f.positioned(); err != nil {
		return nil, err
	}
	n := &sequence{slot: r.slot(), field: f, slop: slop}
	for _, t := range tokens {
		if err := r.clause(); err != nil {
			return nil, err
		}
		n.seats = append(n.seats, seat{terms: []*term{f.term(strings.Clone(t.Term))}, at: t.Position - tokens[0].Position})
	}
	n.describe()
	return n, nil
}

// describe sets what is known of all seats together.
func (n *sequence) describe() {
	var shown []string
	for _, s := range n.seats {
		var words []string
		for _, t := range s.terms {
			t.placed = true
			words = append(words, t.text)
		}
		n.terms = append(n.terms, s.terms...)
		text := strings.Join(words, " ")
		if len(words) > 1 {
			text = "(" + text + ")"
		}
		shown = append(shown, text)
	}
	n.name = n.field.name + `:"` + strings.Join(shown, " ") + `"`
}

func (n *sequence) find(ev []evidence) ([]evidence, bool) {
	freq := n.freq()
	n.forget()
	if freq == 0 {
		return ev, false
	}
	return append(ev, evidence{n.slot, 0, float32(freq), float32(n.field.length)}), true
}

// forget gives back the room that the places of a large document take.
func (n *sequence) forget() {
	if cap(n.spots) > keptPlaces {
		n.spots = nil
	}
	for i := range n.seats {
		s := &n.seats[i]
		if s.positions = nil; cap(s.merged) > keptPlaces {
			s.merged = nil
		}
	}
}

// load finds the positions of any of the terms. As in Lucene, a term that is there twice has each of them twice.
func (s *seat) load(once bool) bool {
	if len(s.terms) == 1 {
		s.positions = s.terms[0].positions
		return s.terms[0].in()
	}
	s.merged = s.merged[:0]
	for _, t := range s.terms {
		if t.in() {
			s.merged = append(s.merged, t.positions...)
		}
	}
	slices.Sort(s.merged)
	if once {
		s.merged = slices.Compact(s.merged)
	}
	s.positions = s.merged
	return len(s.positions) > 0
}

// freq is how often the phrase is in the view: one for each place, less where words stand apart.
func (n *sequence) freq() (freq float64) {
	n.spots = n.spots[:0]
	for i := range n.seats {
		if !n.seats[i].load(n.slop > 0) {
			return 0
		}
	}
	if n.slop > 0 {
		return n.sloppy()
	}
	for _, first := range n.seats[0].positions {
		whole := true
		for i := range n.seats {
			if _, there := slices.BinarySearch(n.seats[i].positions, first+n.seats[i].at); !there {
				whole = false
				break
			}
		}
		if whole {
			freq++
			n.spots = append(n.spots, [2]int{first, first + n.seats[len(n.seats)-1].at})
		}
	}
	return freq
}

// sloppy counts the places where the words stand so that moving them by no more than slop positions makes the phrase. It goes through the
// positions of all of them at once, each moved to where the phrase would begin by it: how far those lie apart is what has to be moved.
func (n *sequence) sloppy() (freq float64) {
	next := make([]int, len(n.seats))
	at := func(i int) int { return n.seats[i].positions[next[i]] }
	begin := func(i int) int { return at(i) - n.seats[i].at }
	for {
		low, high, first := 0, begin(0), 0
		for i := range n.seats {
			if begin(i) < begin(low) {
				low = i
			}
			high = max(high, begin(i))
		}
		first = begin(low)
		if apart := high - first; apart <= n.slop && n.distinct(next) {
			freq += 1 / (1 + float64(apart))
			from, to := at(low), at(low)
			for i := range n.seats {
				from, to = min(from, at(i)), max(to, at(i))
			}
			n.spots = append(n.spots, [2]int{from, to})
		}
		if next[low]++; next[low] == len(n.seats[low].positions) {
			return freq
		}
	}
}

// distinct says that no two words stand at one position, as a word that the phrase has twice would.
func (n *sequence) distinct(next []int) bool {
	for i := range n.seats {
		for j := range n.seats[:i] {
			s, u := &n.seats[i], &n.seats[j]
			if s.positions[next[i]] == u.positions[next[j]] && slices.ContainsFunc(s.terms, func(t *term) bool { return slices.Contains(u.terms, t) }) {
				return false
			}
		}
	}
	return true
}

func (n *sequence) score(c *cursor) (float64, *detail, bool) {
	e, ok := c.next(n.slot)
	if !ok {
		return 0, nil, false
	}
	terms := n.terms
	if len(terms) > len(n.seats) { // some of those to choose from may be nowhere
		terms = slices.DeleteFunc(slices.Clone(terms), func(t *term) bool { return t.documents == 0 })
	}
	score, d := c.relevance(n.field, n.name, terms, e, 1)
	return score, d, true
}

func (n *sequence) mark(f *textField, mark func(int)) {
	if f != n.field || n.freq() == 0 {
		return
	}
	for i := range f.tokens {
		for _, spot := range n.spots {
			if at := f.tokens[i].Position; at >= spot[0] && at <= spot[1] && n.names(f.tokens[i].Term) {
				mark(i)
				break
			}
		}
	}
}

func (n *sequence) names(text string) bool {
	return slices.ContainsFunc(n.terms, func(t *term) bool { return t.text == text })
}
