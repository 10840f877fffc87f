package textsearch

import (
	"bytes"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
)

// Matches says whether doc, which has one of the query's terms, is what is searched for.
func (s *Spec) Matches(q *Query, doc bson.Doc) (bool, error) {
	if q.isSimple() {
		return true, nil
	}
	c := s.scratch.Get().(*scratch)
	defer s.scratch.Put(c)
	m := matching{query: q, words: &c.words, phrases: make([]bool, len(q.Phrases))}
	m.positive = q.form == 0
	if err := s.each(doc, m.visit); err != nil {
		return false, err
	}
	return m.positive && !m.refused && !slices.Contains(m.phrases, false), nil
}

// Finds says whether doc has one of the query's terms and is what is searched for: what an index says of it, and Matches.
func (s *Spec) Finds(q *Query, doc bson.Doc) (found bool, err error) {
	c := s.scratch.Get().(*scratch)
	defer s.scratch.Put(c)
	err = s.each(doc, func(t text) bool {
		c.start(t.language, t.string, 0)
		for word, ok := c.next(); ok && !found; word, ok = c.next() {
			found = holds(q.Terms, word)
		}
		return !found
	})
	if !found || err != nil {
		return false, err
	}
	return s.Matches(q, doc)
}

// isSimple says whether to have one of the terms is all that the query asks.
func (q *Query) isSimple() bool {
	return q.form == 0 && len(q.Negated)+len(q.Phrases)+len(q.NegatedPhrases) == 0
}

// matching is one document held against a query, text by text.
type matching struct {
	query    *Query
	words    *words
	positive bool   // a word that is searched for was there
	phrases  []bool // which phrases were
	refused  bool   // something that must not be there was
}

// visit looks at one text; there is no need for another one once the document is refused.
func (m *matching) visit(t text) bool {
	q := m.query
	if !m.positive || len(q.Negated) > 0 {
		m.words.start(t.language, t.string, q.form|KeepStopWords)
		for word, ok := m.words.next(); ok && !m.refused; word, ok = m.words.next() {
			m.positive = m.positive || holds(q.Positive, word)
			m.refused = holds(q.Negated, word)
		}
	}
	if !m.refused && len(q.Phrases)+len(q.NegatedPhrases) > 0 {
		m.visitPhrases(t)
	}
	return !m.refused
}

func (m *matching) visitPhrases(t text) {
	in := t.language.phraseForm(t.string, m.query.form)
	for i, phrase := range m.query.Phrases {
		m.phrases[i] = m.phrases[i] || bytes.Contains(in, t.language.phraseForm(phrase, m.query.form))
	}
	for _, phrase := range m.query.NegatedPhrases {
		m.refused = m.refused || bytes.Contains(in, t.language.phraseForm(phrase, m.query.form))
	}
}

// phraseForm is how a phrase, or the text that it is looked for in, is compared. Turkish is never told apart by case.
func (l *Language) phraseForm(s string, form Form) []byte {
	if l.turkish {
		form &^= KeepCase
	}
	return l.appendFolded(make([]byte, 0, len(s)), s, form)
}

func holds(set []string, word string) bool {
	_, found := slices.BinarySearch(set, word)
	return found
}
