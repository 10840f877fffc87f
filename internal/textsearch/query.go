package textsearch

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// MaxTerms is how many different words may be searched for at once; each is a scan of its own.
const MaxTerms = 1 << 13

// Query is what is searched for.
type Query struct {
	// Terms are the words as an index holds them, in order: a document that has none of them is not looked at.
	Terms []string
	// Positive are the words as the case and diacritics that count leave them, one of which a document must have; it must
	// have none of Negated.
	Positive, Negated []string
	// Phrases must all be in one of the document's texts each, NegatedPhrases in none.
	Phrases, NegatedPhrases []string

	form Form
}

// ParseQuery reads what a user searches for: words, "phrases", and -words or -"phrases" that must not be there. A negation
// lasts until the next white space. Of form, KeepCase and KeepDiacritics count.
func ParseQuery(search string, l *Language, form Form) (*Query, error) {
	if !utf8.ValidString(search) {
		return nil, errUTF8()
	}
	q := &Query{form: form &^ KeepStopWords}
	p := queryParser{text: search, query: q}
	if p.parse(); q.size() > MaxTerms {
		return nil, errTooManyTerms()
	}
	w := &words{}
	q.Terms = w.set(l, p.wanted.String(), 0)
	q.Positive, q.Negated = q.Terms, w.set(l, p.unwanted.String(), q.form)
	if q.form != 0 {
		q.Positive = w.set(l, p.wanted.String(), q.form)
	}
	if q.size() > MaxTerms {
		return nil, errTooManyTerms()
	}
	return q, nil
}

// size is how many words and phrases there are.
func (q *Query) size() int {
	return len(q.Terms) + len(q.Negated) + len(q.Phrases) + len(q.NegatedPhrases)
}

func errTooManyTerms() error {
	return mongoerr.New(mongoerr.BadValue, "$search has more than %d words and phrases", MaxTerms)
}

// set is the words of text, each once, in order. It has read enough when there is one more than may be searched for.
func (w *words) set(l *Language, text string, form Form) []string {
	found := map[string]bool{}
	w.start(l, text, form)
	for word, ok := w.next(); ok && len(found) <= MaxTerms; word, ok = w.next() {
		found[strings.Clone(word)] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// queryParser reads a search from left to right, and collects the words inside and outside of negations.
type queryParser struct {
	text  string
	query *Query

	wanted, unwanted strings.Builder
	negated, quoted  bool
	phrase           int // where the phrase began
}

// parse reads to the end, or until there are more phrases than may be searched for.
func (p *queryParser) parse() {
	spaced := true // white space stands before
	for i := 0; i < len(p.text) && p.query.size() <= MaxTerms; {
		switch c := p.text[i]; c {
		case '\n', '\v', '\f', '\r', ' ':
			spaced = true
			i++
			continue
		case '-':
			p.negated = p.negated || !p.quoted && spaced
			i++
		case '"':
			p.quote(i, spaced)
			i++
		default:
			rest := p.text[i:]
			if end := strings.IndexAny(rest, "\n\v\f\r -\""); end >= 0 {
				rest = rest[:end]
			}
			p.words(rest, spaced)
			i += len(rest)
		}
		spaced = false
	}
}

// quote begins or ends a phrase.
func (p *queryParser) quote(at int, spaced bool) {
	switch {
	case !p.quoted:
		p.negated = p.negated && !spaced
		p.phrase = at + 1
	case p.negated:
		p.query.NegatedPhrases = append(p.query.NegatedPhrases, p.text[p.phrase:at])
	default:
		p.query.Phrases = append(p.query.Phrases, p.text[p.phrase:at])
	}
	p.quoted = !p.quoted
}

// words takes what stands between two delimiters. The words of a phrase are searched for too; those of a negated one say
// nothing by themselves.
func (p *queryParser) words(text string, spaced bool) {
	if p.quoted && p.negated {
		return
	}
	p.negated = p.negated && !spaced
	to := &p.wanted
	if p.negated {
		to = &p.unwanted
	}
	to.WriteString(text)
	to.WriteByte(' ')
}

// Doc is the query as explain shows it.
func (q *Query) Doc() bson.Doc {
	b := bson.Build()
	for _, part := range []struct {
		name  string
		words []string
	}{{"terms", q.Positive}, {"negatedTerms", q.Negated}, {"phrases", q.Phrases}, {"negatedPhrases", q.NegatedPhrases}} {
		b.Array(part.name)
		for i, word := range part.words {
			b.String(bson.IndexKey(i), word)
		}
		b.End()
	}
	return b.Doc()
}
