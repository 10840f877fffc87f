// Package analysis makes the tokens of texts, which a full-text search compares: the analyzers that MongoDB's search indexes name
// ("lucene.standard" and so on), and those that a definition puts together itself of character filters, a tokenizer and token filters.
// It knows nothing of documents, paths or scores.
package analysis

import "slices"

// Token is a word of a text, as it is searched for.
type Token struct {
	// Term is what is compared. It may share the memory of the text.
	Term string
	// Start and End are where it is in the text: bytes, the end is the one behind it.
	Start, End int
	// Position counts tokens of the text from 0. Several tokens may have the same, and a filter that drops tokens leaves a gap.
	Position int

	keyword bool // filters that stem leave it
}

// maxGrams is how many grams or shingles a text has at most. What is behind them is not searched for.
const maxGrams = 1 << 20

const (
	// maxTokens is how many tokens a tokenizer makes of a text at most. What is behind them is not searched for.
	maxTokens = 1 << 20
	// maxGramBytes is how many bytes terms have together at most, behind a filter that may make more of them than the text has.
	maxGramBytes = 64 << 20
	// maxTerm is how many bytes a term has at most. Longer ones are not searched for, as in Lucene.
	maxTerm = 32766
)

// A tokenizer appends the tokens of a text.
type tokenizer func(dst []Token, text string) []Token

// bounded is a filter that makes several tokens of one, with limits of how many there are then, and of their terms together: filters behind it
// may copy them all.
func bounded(f filter) filter {
	return func(tokens []Token) []Token {
		tokens = f(tokens)
		return tokens[:withinBytes(tokens, maxTokens)]
	}
}

// withinBytes is how many of the tokens have no more bytes together than is allowed, at most so many.
func withinBytes(tokens []Token, most int) int {
	size := 0
	for i, t := range tokens {
		if size += len(t.Term); size > maxGramBytes || i == most {
			return i
		}
	}
	return len(tokens)
}

// grown has room for another token. It grows faster than append does: long texts have many.
func grown(tokens []Token) []Token {
	if len(tokens) < cap(tokens) {
		return tokens
	}
	return slices.Grow(tokens, max(len(tokens), 16))
}

// A filter changes the tokens of a text. It may use their memory, and what is behind them.
type filter func(tokens []Token) []Token

// Analyzer makes tokens of texts. It can be used by several goroutines at a time.
type Analyzer struct {
	name    string
	keyword bool
	graph   bool
	parts   bool
	sifts   bool
	chars   []charFilter
	divide  tokenizer
	filters []filter

	// Those that a text goes through that is not divided.
	normalChars []charFilter
	normal      []filter
}

// Name is what definitions call it.
func (a *Analyzer) Name() string { return a.name }

// IsKeyword says that texts stay whole.
func (a *Analyzer) IsKeyword() bool { return a.keyword }

// IsGraph says that a text may have several tokens at a position, or such that are longer than one: those do not go with synonyms or
// autocomplete.
func (a *Analyzer) IsGraph() bool { return a.graph }

// Parts says that a text may be divided at spaces: it has the tokens of its parts.
func (a *Analyzer) Parts() bool { return a.parts }

// Part is Tokens of a part of a text, and says how many positions it has.
func (a *Analyzer) Part(dst []Token, text string) (_ []Token, positions int) {
	n := len(dst)
	dst = a.divide(dst, text)
	if len(dst) > n {
		positions = dst[len(dst)-1].Position + 1
	}
	return withoutLong(run(a.filters, dst, n), n), positions
}

// Tokens appends the tokens of a text, in the order of their positions.
func (a *Analyzer) Tokens(dst []Token, text string) []Token {
	n := len(dst)
	return withoutLong(a.tokens(dst, text), n)
}

// withoutLong leaves out, of the tokens from n on, those that are too long.
func withoutLong(tokens []Token, n int) []Token {
	isLong := func(t Token) bool { return len(t.Term) > maxTerm }
	if !slices.ContainsFunc(tokens[n:], isLong) {
		return tokens
	}
	return append(tokens[:n], slices.DeleteFunc(tokens[n:], isLong)...)
}

// tokens are those of a text, however long they are.
func (a *Analyzer) tokens(dst []Token, text string) []Token {
	n := len(dst)
	if len(a.chars) == 0 {
		return run(a.filters, a.divide(dst, text), n)
	}
	shown, moves := filterChars(a.chars, text)
	dst = run(a.filters, a.divide(dst, shown), n)
	for i := range dst[n:] {
		t := &dst[n+i]
		t.Start, t.End = moves.place(t.Start, t.End)
	}
	return dst
}

// run sends the tokens from n on through filters.
func run(filters []filter, tokens []Token, n int) []Token {
	for _, f := range filters {
		part := f(tokens[n:])
		if n == 0 {
			tokens = part
		} else {
			tokens = append(tokens[:n], part...)
		}
	}
	return tokens
}

// Normalize is a part of a token, as a pattern has it, without being divided: what filters would make of its characters.
func (a *Analyzer) Normalize(text string) string {
	term, _ := a.normalized(text)
	return term
}

// normalized is the text as filters make it; ok is false where they leave nothing of it.
func (a *Analyzer) normalized(text string) (term string, ok bool) {
	if len(a.normalChars) > 0 {
		text, _ = filterChars(a.normalChars, text)
	}
	one := [1]Token{{Term: text, End: len(text)}}
	tokens := run(a.normal, one[:], 0)
	if len(tokens) == 0 {
		return "", false
	}
	return tokens[0].Term, true
}
