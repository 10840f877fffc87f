package analysis

import (
	"math"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ebbdb/ebb/internal/fulltext/spec"
	"golang.org/x/text/unicode/norm"
)

// graphing is what a filter makes of tokens: whether they overlap.
type graphing int

const (
	keepsGraph graphing = iota
	makesGraph
	flattens
)

var filterNames = []string{
	"asciiFolding", "daitchMokotoffSoundex", "edgeGram", "englishMinimalStemming", "englishPossessive", "flattenGraph", "icuFolding", "icuNormalizer",
	"keywordRepeat", "kStemming", "length", "limitTokenCount", "lowercase", "nGram", "porterStemming", "regex", "removeDuplicates", "reverse",
	"shingle", "snowballStemming", "spanishPluralStemming", "stempel", "stopword", "trim", "wordDelimiterGraph",
}

// parseFilter reads a token filter.
func parseFilter(r *spec.Reader) (filter, graphing) {
	switch kind := r.Enum("type", "", filterNames...); kind {
	case "asciiFolding":
		return bounded(asciiFolding(r.Enum("originalTokens", "omit", "omit", "include") == "include")), keepsGraph
	case "edgeGram", "nGram":
		least, most := gramSizes(r)
		return grams(least, most, kind == "nGram", r.Enum("termNotInBounds", "omit", "omit", "include") == "include"), makesGraph
	case "flattenGraph":
		return unchanged, flattens // tokens have no lengths that could overlap
	case "icuNormalizer":
		form := r.Enum("normalizationForm", "nfc", "nfc", "nfd", "nfkc", "nfkd")
		return each(map[string]norm.Form{"nfc": norm.NFC, "nfd": norm.NFD, "nfkc": norm.NFKC, "nfkd": norm.NFKD}[form].String), keepsGraph
	case "keywordRepeat":
		return bounded(keywordRepeat), makesGraph
	case "length":
		return parseLength(r), keepsGraph
	case "limitTokenCount":
		most, _ := r.IntOr("maxTokenCount", 1, -1)
		return limited(most), keepsGraph
	case "regex":
		return parseReplace(r), keepsGraph
	case "shingle":
		least := r.IntWithin("minShingleSize", 2, math.MaxInt32, -1)
		most := r.IntWithin("maxShingleSize", 2, math.MaxInt32, -1)
		if r.Err() == nil && least > most {
			r.Refuse("minShingleSize must not be greater than maxShingleSize")
		}
		if most > maxShingleWords {
			r.RefuseField("maxShingleSize", "of more than %d is not supported by this server", maxShingleWords)
		}
		return shingles(least, most, false), makesGraph
	case "snowballStemming":
		return parseSnowball(r), keepsGraph
	case "stopword":
		words, ok := r.Texts("tokens", true, maxWords)
		if ok && len(words) == 0 {
			r.RefuseField("tokens", "cannot be empty")
		}
		ignoreCase := r.Bool("ignoreCase", true)
		return without(setOf(words, ignoreCase), ignoreCase), keepsGraph
	case "wordDelimiterGraph":
		return bounded(parseWordDelimiter(r)), makesGraph
	default:
		return plainFilter(kind, r), keepsGraph
	}
}

// plainFilter is a filter that has no options.
func plainFilter(kind string, r *spec.Reader) filter {
	switch kind {
	case "":
		return unchanged
	case "englishMinimalStemming":
		return stems(englishMinimal)
	case "englishPossessive":
		return each(englishPossessive)
	case "icuFolding":
		return icuFolding
	case "lowercase":
		return lowercase
	case "porterStemming":
		return stems(snowballs["porter"].stem)
	case "removeDuplicates":
		return removeDuplicates
	case "reverse":
		return reversed
	case "trim":
		return each(func(s string) string { return strings.TrimFunc(s, func(r rune) bool { return !isBlack(r) }) })
	}
	r.RefuseField("type", "'%s' is not supported by this server", kind)
	return unchanged
}

func unchanged(tokens []Token) []Token { return tokens }

// each changes the term of each token.
func each(change func(string) string) filter {
	return func(tokens []Token) []Token {
		for i := range tokens {
			tokens[i].Term = change(tokens[i].Term)
		}
		return tokens
	}
}

// kept leaves the tokens that keep tells. What is left out leaves a gap.
func kept(keep func(Token) bool) filter {
	return func(tokens []Token) []Token {
		out := tokens[:0]
		for _, t := range tokens {
			if keep(t) {
				out = append(out, t)
			}
		}
		return out
	}
}

// without leaves words out. If case is ignored, the words are in lower case.
func without(words map[string]struct{}, ignoreCase bool) filter {
	return kept(func(t Token) bool {
		term := t.Term
		if ignoreCase {
			term = lower(term)
		}
		_, stop := words[term]
		return !stop
	})
}

// protected keeps filters from stemming words.
func protected(words map[string]struct{}, ignoreCase bool) filter {
	return func(tokens []Token) []Token {
		for i, t := range tokens {
			if ignoreCase {
				t.Term = lower(t.Term)
			}
			if _, is := words[t.Term]; is {
				tokens[i].keyword = true
			}
		}
		return tokens
	}
}

func limited(most int) filter {
	return func(tokens []Token) []Token { return tokens[:min(most, len(tokens))] }
}

func parseLength(r *spec.Reader) filter {
	const defaultMax = 255
	least, _ := r.IntOr("min", 0, 0)
	most, given := r.IntOr("max", 0, defaultMax)
	if least > most {
		if !given {
			r.Refuse("max must be explicitly defined when min is greater than %d", defaultMax)
		}
		r.Refuse("min must not be greater than max")
	}
	return kept(func(t Token) bool {
		n := 0
		for _, r := range t.Term {
			n++
			if r > 0xffff {
				n++
			}
		}
		return n >= least && n <= most
	})
}

// asciiFolding makes ASCII of characters that have a likeness there. original keeps the token as well, if it was changed.
func asciiFolding(original bool) filter {
	return func(tokens []Token) []Token {
		var out []Token
		for i, t := range tokens {
			folded := foldASCII(t.Term)
			if original && folded != t.Term && out == nil {
				out = append(make([]Token, 0, 2*len(tokens)), tokens[:i]...)
			}
			tokens[i].Term = folded
			if out != nil {
				if out = append(out, tokens[i]); folded != t.Term {
					out = append(out, t)
				}
			}
		}
		if out != nil {
			return out
		}
		return tokens
	}
}

// foldASCII is the text with those of its characters in ASCII that have a decomposition into it, but for marks, or are known otherwise.
func foldASCII(text string) string {
	if isASCII(text) {
		return text
	}
	out := make([]byte, 0, len(text))
	for _, r := range text {
		if r < utf8.RuneSelf {
			out = append(out, byte(r))
			continue
		}
		out = append(out, asciiOf(r)...)
	}
	return string(out)
}

func asciiOf(r rune) string {
	low := unicode.ToLower(r)
	if p := plain[low]; p != "" {
		if low != r {
			return strings.ToUpper(p)
		}
		return p
	}
	switch r {
	case 'ß':
		return "ss"
	case 'ẞ':
		return "SS"
	case 'þ':
		return "th"
	case 'Þ':
		return "TH"
	}
	var out []byte
	for _, d := range norm.NFKD.String(string(r)) {
		switch {
		case d > ' ' && d < utf8.RuneSelf:
			out = append(out, byte(d))
		case !unicode.Is(unicode.Mn, d):
			return string(r)
		}
	}
	if len(out) == 0 {
		return string(r)
	}
	return string(out)
}

// keywordRepeat has each token twice: once as it is, and once to be stemmed.
func keywordRepeat(tokens []Token) []Token {
	out := make([]Token, 0, 2*len(tokens))
	for _, t := range tokens {
		if len(out) >= maxTokens {
			break
		}
		as := t
		as.keyword = true
		t.keyword = false
		out = append(out, as, t)
	}
	return out
}

// fewDuplicates is how many tokens at a position are few.
const fewDuplicates = 16

// removeDuplicates leaves out a token that is at the same position as an equal one.
func removeDuplicates(tokens []Token) []Token {
	out := tokens[:0]
	seen := map[string]bool{}
	at := -1
	for _, t := range tokens {
		if t.Position != at {
			if at = t.Position; len(seen) <= fewDuplicates {
				clear(seen)
			} else {
				seen = map[string]bool{} // to clear a large one takes long
			}
		}
		if !seen[t.Term] {
			seen[t.Term] = true
			out = append(out, t)
		}
	}
	return out
}

// maxReplaced is how long a replacement makes a term at most: longer terms are not searched for.
const maxReplaced = maxTerm + 1

// parseReplace reads a filter that replaces matches.
func parseReplace(r *spec.Reader) filter {
	re := compile(r)
	text, _ := r.Text("replacement", true)
	all := r.Enum("matches", "", "all", "first") == "all"
	if re == nil {
		return unchanged
	}
	template, err := goTemplate(text, re.NumSubexp())
	if err != "" {
		r.RefuseField("replacement", "%s", err)
	}
	most := 1
	if all {
		most = mostMatches(re)
	}
	return func(tokens []Token) []Token {
		made := 0
		for i := range tokens {
			if made > maxGramBytes {
				return tokens[:i]
			}
			tokens[i].Term = replace(re, tokens[i].Term, template, most)
			made += len(tokens[i].Term)
		}
		return tokens
	}
}

func replace(re *regexp.Regexp, s, template string, most int) string {
	matches := re.FindAllStringSubmatchIndex(s, most)
	if len(matches) == 0 {
		return s
	}
	var out []byte
	from := 0
	for _, at := range matches {
		out = append(out, s[from:at[0]]...)
		out = re.ExpandString(out, template, s, at)
		from = at[1]
		if len(out) > maxReplaced {
			break
		}
	}
	return string(append(out, s[from:]...))
}

// goTemplate makes Go's replacement of Java's: $1 and ${name} are groups, what is behind \ is itself.
func goTemplate(java string, groups int) (out, wrong string) {
	var b strings.Builder
	for i := 0; i < len(java); i++ {
		switch c := java[i]; {
		case c == '\\' && i+1 == len(java):
			return "", "character to be escaped is missing"
		case c == '\\':
			if i++; java[i] == '$' {
				b.WriteString("$$")
			} else {
				b.WriteByte(java[i])
			}
		case c != '$':
			b.WriteByte(c)
		case i+1 < len(java) && java[i+1] == '{':
			end := strings.IndexByte(java[i:], '}')
			if end < 0 {
				return "", "named capturing group is missing trailing '}'"
			}
			b.WriteString(java[i : i+end+1])
			i += end
		default:
			n, width := 0, 0
			for j := i + 1; j < len(java) && java[j] >= '0' && java[j] <= '9'; j++ {
				if next := n*10 + int(java[j]-'0'); width == 0 || next <= groups {
					n, width = next, width+1
				} else {
					break
				}
			}
			if width == 0 || n > groups {
				return "", "Illegal group reference"
			}
			b.WriteString("${" + java[i+1:i+1+width] + "}")
			i += width
		}
	}
	return b.String(), ""
}
