package textsearch

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// MaxScore is the most that a word of a document scores.
const MaxScore = 1e9

// exactBoost is what a word gains that is the whole text.
const exactBoost = 0.1

// Term is a word of a document as an index holds it, and how much it counts there.
type Term struct {
	Word  string
	Score float64
}

// scratch is what looking at a document needs, used again for the next.
type scratch struct {
	words
	counts []count
	places map[string]int // of words in counts, then in the terms
}

// count is how often a word is in one text: all in all, and each time as half of the time before.
type count struct {
	word             string
	total, next, sum float64
}

// Terms appends the words of doc, each once, in order. Of a text of more than most words it looks at no more than that takes to
// see, nor at what is behind it: what it gives then is more than most, and of no other use.
func (s *Spec) Terms(dst []Term, doc bson.Doc, most int) ([]Term, error) {
	c := s.scratch.Get().(*scratch)
	defer s.release(c)
	from, texts := len(dst), 0
	err := s.each(doc, func(t text) bool {
		dst = c.score(dst, t, most)
		texts++
		return len(c.counts) <= most
	})
	if err != nil {
		return dst[:from], err
	}
	if texts == 1 { // each word is there once
		slices.SortFunc(dst[from:], byWord)
		return dst, nil
	}
	return dst[:from+len(merge(dst[from:]))], nil
}

// maxKeptWords is how many words a scratch has room for when it is used again. Places are cleared for each text, which takes as
// long as they have room: after one document of a million words, each small one would take what that one did.
const maxKeptWords = 1 << 14

// release lets another document use c.
func (s *Spec) release(c *scratch) {
	if cap(c.counts) > maxKeptWords {
		c.counts, c.places = nil, nil
	}
	s.scratch.Put(c)
}

// score appends the words of one text.
func (c *scratch) score(dst []Term, t text, most int) []Term {
	tokens := c.count(t, most)
	for i := range c.counts {
		n := &c.counts[i]
		share := float64(0.5*n.total/tokens) + 0.5
		boost := 1.0
		if isWhole(n.word, t.string) {
			boost += exactBoost
		}
		dst = append(dst, Term{n.word, min(t.weight*n.sum*share*boost, MaxScore)})
	}
	return dst
}

// isWhole says whether word is all of text, but for capitals of the English alphabet.
func isWhole(word, text string) bool {
	if len(word) != len(text) {
		return false
	}
	for i := range len(word) {
		if a, b := word[i], text[i]; a != b && !('A' <= b && b <= 'Z' && a == b|0x20) {
			return false
		}
	}
	return true
}

// count counts the words of one text and says how many there are. It stops when more than most are different.
func (c *scratch) count(t text, most int) (tokens float64) {
	c.counts = c.counts[:0]
	if c.places == nil {
		c.places = map[string]int{}
	}
	clear(c.places)
	c.start(t.language, t.string, 0)
	for word, ok := c.next(); ok && len(c.counts) <= most; word, ok = c.next() {
		tokens++
		i, seen := c.places[word]
		if !seen {
			i = len(c.counts)
			c.places[word] = i
			c.counts = append(c.counts, count{word: word, next: 1})
		}
		n := &c.counts[i]
		n.total++
		n.sum += n.next
		n.next /= 2
	}
	return tokens
}

func byWord(a, b Term) int { return strings.Compare(a.Word, b.Word) }

// merge puts terms in order and adds up those of one word, which stood in several texts.
func merge(terms []Term) []Term {
	slices.SortStableFunc(terms, byWord)
	n := 0
	for _, t := range terms {
		if n > 0 && terms[n-1].Word == t.Word {
			terms[n-1].Score = min(terms[n-1].Score+t.Score, MaxScore)
			continue
		}
		terms[n] = t
		n++
	}
	return terms[:n]
}
