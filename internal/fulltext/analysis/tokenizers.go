package analysis

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

const (
	// maxPattern is how long a regular expression is at most.
	maxPattern = 4096
	// maxPatternSteps is how long its program is at most.
	maxPatternSteps = 4096
)

// compile reads a regular expression. Those of MongoDB are Java's, these are Go's, which take a time that grows with the text and no more: what
// these do not know (what is around a match, references to groups) is refused.
func compile(r *spec.Reader) *regexp.Regexp {
	pattern, ok := r.Text("pattern", true)
	if !ok {
		return nil
	}
	if len(pattern) > maxPattern {
		r.RefuseField("pattern", "cannot be longer than %d bytes", maxPattern)
		return nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		r.RefuseField("pattern", "is not supported by this server: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		return nil
	}
	if steps(pattern) > maxPatternSteps {
		r.RefuseField("pattern", "is too complex")
		return nil
	}
	return re
}

// steps is how long the program of a pattern is, which there is: as many steps are taken at most for a character of a text.
func steps(pattern string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}

// mostMatches is how many matches of an expression are looked at, so that what is known of them has a limit.
func mostMatches(re *regexp.Regexp) int { return maxGrams / (1 + re.NumSubexp()) }

// captured makes tokens of what a group has of each match.
func captured(re *regexp.Regexp, group int) tokenizer {
	return func(dst []Token, text string) []Token {
		position := 0
		for _, at := range re.FindAllStringSubmatchIndex(text, mostMatches(re)) {
			if from, to := at[2*group], at[2*group+1]; from < to {
				dst = append(dst, Token{Term: text[from:to], Start: from, End: to, Position: position})
				position++
			}
		}
		return dst
	}
}

// split makes tokens of what is between matches.
func split(re *regexp.Regexp) tokenizer {
	return func(dst []Token, text string) []Token {
		position, from := 0, 0
		add := func(to int) {
			if from < to {
				dst = append(dst, Token{Term: text[from:to], Start: from, End: to, Position: position})
				position++
			}
		}
		for _, at := range re.FindAllStringIndex(text, maxGrams) {
			add(at[0])
			from = at[1]
		}
		add(len(text))
		return dst
	}
}

// gramTokenizer makes tokens of the parts of a text that have from least to most characters: of all, or of those that it begins with. Each has a
// position of its own.
func gramTokenizer(least, most int, all bool) tokenizer {
	least = max(least, 1)
	return func(dst []Token, text string) []Token {
		n := len(dst)
		first := 0 // where the shortest gram ends that begins at from
		for range least {
			if first == len(text) {
				return dst
			}
			first += runeAt(text, first)
		}
		for from := 0; len(dst)-n < maxGrams; {
			for size, to := least, first; size <= most && len(dst)-n < maxGrams; size++ {
				dst = append(grown(dst), Token{Term: text[from:to], Start: from, End: to, Position: len(dst) - n})
				if to == len(text) {
					break
				}
				to += runeAt(text, to)
			}
			if !all || first == len(text) {
				break
			}
			from += runeAt(text, from)
			first += runeAt(text, first)
		}
		return dst[:n+withinBytes(dst[n:], maxGrams)]
	}
}

// runeAt is how long the character is that is at a place.
func runeAt(text string, at int) int {
	_, n := utf8.DecodeRuneInString(text[at:])
	return n
}

// addressed are addresses of pages and of mail.
var addressed = regexp.MustCompile(`(?i)(?:https?|ftp|file)://[^\s<>"{}|\\^\x60]+|www\.[a-z0-9-]+(?:\.[a-z0-9-]+)+(?:[/?#][^\s<>"{}|\\^\x60]*)?|` +
	`[a-z0-9!#$%&'*+/=?^_\x60{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_\x60{|}~-]+)*@[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+`)

// urlsAndEmails divides a text as the standard tokenizer, but keeps addresses whole: those of mail, and those of pages that have a scheme or
// begin with "www.". Lucene's knows the names of all top-level domains beside, and keeps what is behind such a host.
func urlsAndEmails(most int) tokenizer {
	between := standard(most)
	return func(dst []Token, text string) []Token {
		position, from := 0, 0
		add := func(to int) {
			n := len(dst)
			dst = between(dst, text[from:to])
			for i := range dst[n:] {
				t := &dst[n+i]
				t.Start, t.End, t.Position = t.Start+from, t.End+from, t.Position+position
			}
			position += len(dst) - n
		}
		for _, at := range addressed.FindAllStringIndex(text, maxGrams) {
			to := at[0] + len(strings.TrimRight(text[at[0]:at[1]], ".,;:!?'\")]"))
			if to-at[0] > most {
				continue
			}
			add(at[0])
			dst = append(dst, Token{Term: text[at[0]:to], Start: at[0], End: to, Position: position})
			position++
			from = to
		}
		add(len(text))
		return dst
	}
}
