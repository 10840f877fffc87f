package analysis

import "unicode/utf8"

// Grams says which parts of a text are found.
type Grams int

// The grams.
const (
	// EdgeGrams are the beginnings of words.
	EdgeGrams Grams = iota
	// RightEdgeGrams are their ends, which are compared from behind.
	RightEdgeGrams
	// AllGrams are all parts.
	AllGrams
)

// Autocomplete makes the tokens of texts that are found while they are typed: parts of one, two and three words.
type Autocomplete struct {
	Base *Analyzer
	// Grams says which parts, Min and Max of how many characters.
	Grams    Grams
	Min, Max int
	// Fold says that diacritics are left out.
	Fold bool
}

// Tokens appends what is found of a text.
func (a *Autocomplete) Tokens(dst []Token, text string) []Token {
	n := len(dst)
	dst = a.Base.tokens(dst, text)
	var filters []filter
	if a.Fold {
		filters = append(filters, icuFolding)
	}
	filters = append(filters, shingles(2, 3, true))
	if a.Grams == RightEdgeGrams {
		filters = append(filters, reversed)
	}
	filters = append(filters, grams(a.Min, a.Max, a.Grams == AllGrams, true), truncated(a.Max))
	return withoutLong(run(filters, dst, n), n)
}

// QueryTokens are what is searched for: all of a query as one, and, where words may come in any order, each word of it as well. None is there
// twice.
func (a *Autocomplete) QueryTokens(query []string, sequential bool) []string {
	var out []string
	seen := map[string]bool{}
	add := func(text string) {
		if term, ok := a.normalize(text); ok && !seen[term] {
			seen[term] = true
			out = append(out, term)
		}
	}
	if !sequential {
		for _, text := range query {
			for _, t := range a.Base.Tokens(nil, text) {
				add(t.Term)
			}
		}
	}
	for _, text := range query {
		add(text)
	}
	return out
}

// normalize is a text as it is compared with the tokens of texts.
func (a *Autocomplete) normalize(text string) (string, bool) {
	term, ok := a.Base.normalized(text)
	if a.Fold {
		term = foldICU(term)
	}
	if a.Grams == RightEdgeGrams {
		term = reverse(term)
	}
	return firstRunes(term, a.Max), ok
}

// firstRunes is what the text begins with, so many characters.
func firstRunes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	n := 0
	for i := range text {
		if n == most {
			return text[:i]
		}
		n++
	}
	return text
}

func truncated(most int) filter {
	return func(tokens []Token) []Token {
		for i := range tokens {
			tokens[i].Term = firstRunes(tokens[i].Term, most)
		}
		return tokens
	}
}

func reversed(tokens []Token) []Token {
	for i := range tokens {
		tokens[i].Term = reverse(tokens[i].Term)
	}
	return tokens
}

func reverse(text string) string {
	out := make([]byte, 0, len(text))
	for i := len(text); i > 0; {
		_, n := utf8.DecodeLastRuneInString(text[:i])
		out = append(out, text[i-n:i]...)
		i -= n
	}
	return string(out)
}

// shingles makes tokens of each token with those that follow it: from fewest to most of them, with spaces between; and of the token itself, if
// single ones are asked for. "_" stands where a token was dropped.
func shingles(fewest, most int, single bool) filter {
	return bounded(func(tokens []Token) []Token {
		tokens = withFillers(tokens, most-1)
		out := make([]Token, 0, min(len(tokens)*min(most-fewest+2, 4), maxGrams))
		var text []byte
		var ends []int // where the words of text end, which begins with the token i
		made := 0
		for i, first := range tokens {
			if len(out) >= maxGrams || made > maxGramBytes {
				break
			}
			if single && !isFiller(first) {
				out = append(out, first)
			}
			text, ends = text[:0], ends[:0]
			for j := i; j < len(tokens) && j-i < most && len(text) < maxShingle; j++ {
				if j > i {
					text = append(text, ' ')
				}
				if isFiller(tokens[j]) {
					text = append(text, '_')
				} else {
					text = append(text, tokens[j].Term...)
				}
				ends = append(ends, len(text))
			}
			made += len(text)
			whole := string(text)
			real := !isFiller(first)
			for n := 1; n < len(ends); n++ {
				last := tokens[i+n]
				real = real || !isFiller(last)
				if n+1 >= fewest && real {
					out = append(out, Token{Term: whole[:ends[n]], Start: first.Start, End: max(last.End, first.Start), Position: first.Position})
				}
			}
		}
		return out
	})
}

const (
	// maxShingle is how many bytes a shingle has at most, but for its last word.
	maxShingle = maxTerm
	// maxShingleWords is how many words one has at most.
	maxShingleWords = 100
)

// isFiller tells what stands where a token was dropped: no token is empty in text.
func isFiller(t Token) bool { return t.Term == "" && t.Start == t.End }

// withFillers puts tokens without a text where some were dropped, not more than most at a place.
func withFillers(tokens []Token, most int) []Token {
	gap := false
	at := -1
	for _, t := range tokens {
		gap = gap || t.Position > at+1
		at = t.Position
	}
	if !gap {
		return tokens
	}
	out := make([]Token, 0, len(tokens)+len(tokens)/2)
	at = -1
	for _, t := range tokens {
		for p := max(at+1, t.Position-most); p < t.Position; p++ {
			out = append(out, Token{Start: t.Start, End: t.Start, Position: p})
		}
		out = append(out, t)
		at = t.Position
	}
	return out
}

// gramCount is about how many grams tokens have.
func gramCount(tokens []Token, least, most int, all bool) int {
	count := 0
	for _, t := range tokens {
		n := max(min(len(t.Term), most)-max(least, 1)+1, 0)
		if all {
			n *= len(t.Term)
		}
		if count += n + 1; count >= maxGrams {
			return maxGrams
		}
	}
	return count
}

// grams makes tokens of the parts of tokens that have from least to most characters: of all parts, or of those that they begin with. With
// original, a token that is shorter or longer than that stays as well.
func grams(least, most int, all, original bool) filter {
	return bounded(func(tokens []Token) []Token {
		out := make([]Token, 0, gramCount(tokens, least, most, all))
		var starts []int // of the characters of the token
		for _, t := range tokens {
			if starts = starts[:0]; all {
				for i := range t.Term {
					starts = append(starts, i)
				}
			} else {
				for i := range t.Term {
					if len(starts) > most {
						break
					}
					starts = append(starts, i)
				}
			}
			if len(starts) <= most || all {
				starts = append(starts, len(t.Term))
			}
			// starts has the places before and behind characters; for beginnings, not more than are needed.
			length := len(starts) - 1
			last := 0
			if all {
				last = length
			}
			for from := 0; from <= last && len(out) < maxGrams; from++ {
				for n := max(least, 1); n <= most && from+n <= length; n++ {
					g := t
					g.Term = t.Term[starts[from]:starts[from+n]]
					out = append(out, g)
				}
			}
			longer := length > most || !all && starts[length] < len(t.Term)
			if original && (length < least || longer) {
				out = append(out, t)
			}
			if len(out) >= maxGrams {
				break
			}
		}
		return out
	})
}
