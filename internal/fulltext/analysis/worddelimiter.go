package analysis

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// wordDelimiter divides tokens at what is no letter or digit, where lower case becomes upper case, and between letters and digits, as Lucene's
// WordDelimiterGraphFilter.
type wordDelimiter struct {
	words, numbers                  bool // the parts
	joinWords, joinNumbers, joinAll bool // what is before and behind a place of division, put together
	original                        bool
	onCase, onNumerics              bool
	possessive                      bool // 's is left out
	ignoreKeywords                  bool

	protected  map[string]struct{}
	ignoreCase bool
}

func parseWordDelimiter(r *spec.Reader) filter {
	d := &wordDelimiter{ignoreCase: true}
	if doc, ok := r.Object("protectedWords", false); ok {
		p := spec.New(r.Path("protectedWords"), doc)
		words, _ := p.Texts("words", true, maxWords)
		d.ignoreCase = p.Bool("ignoreCase", true)
		d.protected = setOf(words, d.ignoreCase)
		r.Keep(p.Done())
	}
	doc, _ := r.Object("delimiterOptions", false)
	o := spec.New(r.Path("delimiterOptions"), doc)
	d.words = o.Bool("generateWordParts", true)
	d.numbers = o.Bool("generateNumberParts", true)
	d.joinWords = o.Bool("concatenateWords", false)
	d.joinNumbers = o.Bool("concatenateNumbers", false)
	d.joinAll = o.Bool("concatenateAll", false)
	d.original = o.Bool("preserveOriginal", false)
	d.onCase = o.Bool("splitOnCaseChange", true)
	d.onNumerics = o.Bool("splitOnNumerics", true)
	d.possessive = o.Bool("stemEnglishPossessive", true)
	d.ignoreKeywords = o.Bool("ignoreKeywords", false)
	r.Keep(o.Done())
	return d.filter
}

// charKind are bits: a letter that has no case is both.
type charKind int

const (
	lowerLetter charKind = 1 << iota
	upperLetter
	digitChar
	anyLetter  = lowerLetter | upperLetter
	noWordChar = charKind(0)
)

func kindOf(r rune) charKind {
	switch {
	case unicode.IsLower(r):
		return lowerLetter
	case unicode.IsUpper(r):
		return upperLetter
	case unicode.IsLetter(r), unicode.Is(unicode.M, r):
		return anyLetter
	case unicode.Is(unicode.Nd, r), unicode.Is(unicode.Nl, r), unicode.Is(unicode.No, r):
		return digitChar
	}
	return noWordChar
}

// divides says that a word ends between two characters.
func (d *wordDelimiter) divides(before, behind charKind) bool {
	letters := before&anyLetter != 0 && behind&anyLetter != 0
	switch {
	case before&behind != 0:
		return false
	case letters && (!d.onCase || before == upperLetter):
		return false
	case !letters && before != 0 && behind != 0:
		return d.onNumerics
	}
	return true
}

// subword is a part of a term.
type subword struct {
	from, to int
	number   bool
}

// divide finds the parts of a term.
func (d *wordDelimiter) divide(dst []subword, term string) []subword {
	for i := 0; i < len(term); {
		r, n := utf8.DecodeRuneInString(term[i:])
		kind := kindOf(r)
		if kind == noWordChar {
			i += n
			continue
		}
		start, first := i, kind
		for i += n; i < len(term); i += n {
			r, n = utf8.DecodeRuneInString(term[i:])
			next := kindOf(r)
			if d.divides(kind, next) {
				break
			}
			kind = next
		}
		dst = append(dst, subword{start, i, first == digitChar})
		if d.possessive && first != digitChar && isPossessive(term[i:]) {
			i += 2
		}
	}
	return dst
}

// isPossessive says that a text begins with 's, and no word goes on behind it.
func isPossessive(text string) bool {
	if len(text) < 2 || text[0] != '\'' || text[1] != 's' && text[1] != 'S' {
		return false
	}
	r, _ := utf8.DecodeRuneInString(text[2:])
	return len(text) == 2 || kindOf(r) == noWordChar
}

// piece is a token that is made of a term: it stands at the position at, and the next behind it at end.
type piece struct {
	term     string
	from, to int
	at, end  int
}

func (d *wordDelimiter) filter(tokens []Token) []Token {
	out := make([]Token, 0, len(tokens))
	shift := 0
	var parts []subword
	var pieces []piece
	for _, t := range tokens {
		if len(out) >= maxTokens {
			break
		}
		t.Position += shift
		if parts = d.divide(parts[:0], t.Term); d.leaves(t, parts) {
			out = append(out, t)
			continue
		}
		pieces = d.pieces(pieces[:0], t.Term, parts)
		for _, p := range pieces {
			made := t
			made.Term = p.term
			made.Position += p.at
			if t.End-t.Start == len(t.Term) {
				made.Start, made.End = t.Start+p.from, t.Start+p.to
			}
			out = append(out, made)
		}
		if n := len(pieces); n > 0 {
			shift += pieces[n-1].at
		}
	}
	return out
}

// leaves says that a token stays as it is.
func (d *wordDelimiter) leaves(t Token, parts []subword) bool {
	if d.ignoreKeywords && t.keyword {
		return true
	}
	if len(parts) == 1 && parts[0].from == 0 && parts[0].to == len(t.Term) {
		return true
	}
	term := t.Term
	if d.ignoreCase {
		term = lower(term)
	}
	_, is := d.protected[term]
	return is
}

// joined are parts that are put together.
type joined struct {
	text     strings.Builder
	from, to int
	at       int
	parts    int
	number   bool
}

func (j *joined) add(term string, w subword, at int) {
	if j.parts == 0 {
		j.from, j.at, j.number = w.from, at, w.number
	}
	j.text.WriteString(term[w.from:w.to])
	j.to = w.to
	j.parts++
}

// pieces are the tokens that are made of a term, in the order of where they begin, the longest first.
func (d *wordDelimiter) pieces(dst []piece, term string, parts []subword) []piece {
	at, last := 0, 0 // at is the position of the next part, last of how many parts the last joined piece was
	var run, all joined
	flush := func() {
		if run.parts == 0 {
			return
		}
		if at == run.at {
			at++
		}
		last = run.parts
		if run.parts != 1 || !d.generates(run.number) {
			dst = append(dst, piece{run.text.String(), run.from, run.to, run.at, at})
		}
		run = joined{}
	}
	for _, w := range parts {
		if run.parts > 0 && run.number != w.number {
			flush()
		}
		if w.number && d.joinNumbers || !w.number && d.joinWords {
			run.add(term, w, at)
		}
		if d.joinAll {
			all.add(term, w, at)
		}
		if d.generates(w.number) {
			dst = append(dst, piece{term[w.from:w.to], w.from, w.to, at, at + 1})
			at++
		}
	}
	flush()
	if all.parts > last {
		if at == all.at {
			at++
		}
		dst = append(dst, piece{all.text.String(), all.from, all.to, all.at, at})
	}
	if d.original {
		dst = append(dst, piece{term, 0, len(term), 0, max(at, 1)})
	}
	sort.SliceStable(dst, func(i, j int) bool {
		if dst[i].at != dst[j].at {
			return dst[i].at < dst[j].at
		}
		return dst[i].end > dst[j].end
	})
	return dst
}

func (d *wordDelimiter) generates(number bool) bool {
	if number {
		return d.numbers
	}
	return d.words
}
