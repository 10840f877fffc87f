package analysis

import (
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
)

const (
	// maxTokenLength is how many UTF-16 units a token has at most where nothing else is said. A longer one is cut into pieces.
	maxTokenLength = 255
	// maxTokenLengthLimit is what a definition can ask for at most.
	maxTokenLengthLimit = 1024 * 1024
)

// standard divides a text by the word boundaries of Unicode (UAX #29), as Lucene's StandardTokenizer. Of what is between them, it keeps what
// has a letter or a digit, or is an emoji. Runs of scripts that do not show words (Thai, Lao, Khmer and so on) are one token.
func standard(most int) tokenizer {
	return func(dst []Token, text string) []Token {
		s := segments{text: text, most: most}
		position := 0
		for position < maxTokens && s.next() {
			dst = append(grown(dst), Token{Term: text[s.start:s.end], Start: s.start, End: s.end, Position: position})
			position++
		}
		return dst
	}
}

// segments walks the tokens of a text. A token of ASCII that ends before ASCII is found without a look at Unicode's tables.
//
// What is behind a boundary does not depend on what is before it, so the tables can be asked for one segment at a time, and with no more of
// the text than the longest token could have: a hostile text of one endless word is not read again for each piece of it.
type segments struct {
	text       string
	most       int
	start, end int
	unicode    *words.Iterator[string]
}

func (s *segments) next() bool {
	for s.end < len(s.text) {
		s.start = s.end
		if s.ascii() || s.other() {
			return true
		}
	}
	return false
}

// ascii finds a token, or goes to where other has to look on.
func (s *segments) ascii() bool {
	for s.start < len(s.text) && isDivider(s.text, s.start) {
		s.start++
	}
	i := s.start
	for i < len(s.text) && isASCIIWord(s.text[i]) && i-s.start < s.most {
		i++
	}
	s.end = i
	return i > s.start && (i-s.start == s.most || endsWord(s.text, i))
}

// isDivider says that there is an ASCII character that no token has, and that nothing is joined with.
func isDivider(text string, i int) bool {
	c := text[i]
	return c < utf8.RuneSelf && c != '_' && !isASCIIWord(c) && (i+1 == len(text) || text[i+1] < utf8.RuneSelf)
}

func isASCIIWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// endsWord says that a word of ASCII before i ends there, certainly.
func endsWord(text string, i int) bool {
	if i == len(text) {
		return true
	}
	switch c := text[i]; c {
	case '_':
		return false
	case '.', '\'', ':', ',', ';':
		return i+1 == len(text) || text[i+1] < utf8.RuneSelf && text[i+1] != '_' && !isASCIIWord(text[i+1])
	default:
		return c < utf8.RuneSelf
	}
}

// other asks Unicode's tables for the next segment, and says whether it is a token.
func (s *segments) other() bool {
	if s.start == len(s.text) {
		s.end = s.start
		return false
	}
	s.end = s.start + s.segment(s.start)
	segment := s.text[s.start:s.end]
	if r, _ := utf8.DecodeRuneInString(segment); isRunOn(r) {
		for s.end < len(s.text) && s.end-s.start < utf8.UTFMax*s.most {
			if r, _ := utf8.DecodeRuneInString(s.text[s.end:]); !isRunOn(r) {
				break
			}
			s.end += s.segment(s.end)
		}
		segment = s.text[s.start:s.end]
	}
	if n := cut(segment, s.most); n < len(segment) {
		segment, s.end = segment[:n], s.start+n
	}
	return isWord(segment)
}

// segment is how long the segment is that begins at i.
func (s *segments) segment(i int) int {
	window := s.text[i:]
	if most := 4*s.most + 1024; len(window) > most {
		for !utf8.RuneStart(window[most]) && most > 4*s.most {
			most--
		}
		window = window[:most]
	}
	if s.unicode == nil {
		s.unicode = words.FromString(window)
	} else {
		s.unicode.SetText(window)
	}
	s.unicode.Next()
	return s.unicode.End()
}

// cut is how many bytes the characters have that make at most so many UTF-16 units, but of one character at least.
func cut(text string, most int) int {
	if len(text) <= most {
		return len(text)
	}
	units := 0
	for i, r := range text {
		units++
		if r > 0xffff {
			units++
		}
		if units > most && i > 0 {
			return i
		}
	}
	return len(text)
}

// isWord says that a segment is a token.
func isWord(segment string) bool {
	for i, r := range segment {
		switch {
		case r < utf8.RuneSelf:
			if isASCIIWord(byte(r)) {
				return true
			}
		case unicode.In(r, unicode.L, unicode.Nd, unicode.Nl):
			return true
		case unicode.Is(unicode.Other_Alphabetic, r) && !unicode.Is(unicode.M, r):
			return true
		case r == 0x20e3: // the key cap of what is before it
			return i > 0
		case isEmoji(r):
			return !accidental(r) || len(segment) > i+utf8.RuneLen(r) && hasRune(segment, 0xfe0f)
		case isFlag(r):
			return len(segment) > i+utf8.RuneLen(r)
		}
	}
	return false
}

func hasRune(text string, of rune) bool {
	for _, r := range text {
		if r == of {
			return true
		}
	}
	return false
}

// isFlag says that it is a letter of a flag, two of which are an emoji.
func isFlag(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// accidental is what is an emoji only where it is said to be one.
func accidental(r rune) bool {
	return r == 0xa9 || r == 0xae || r == 0x2122 || r == 0x3030 || r == 0x303d
}

// isRunOn says that the character is of a script whose words are not shown, Unicode's line break class SA.
func isRunOn(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, runOn...) && unicode.In(r, unicode.L, unicode.M)
}

var runOn = []*unicode.RangeTable{
	unicode.Thai, unicode.Lao, unicode.Myanmar, unicode.Khmer, unicode.Tai_Le, unicode.New_Tai_Lue, unicode.Tai_Tham, unicode.Tai_Viet, unicode.Ahom,
}

// isEmoji says that a character is Unicode's Extended_Pictographic, or the tone of a skin.
func isEmoji(r rune) bool { return r >= 0xa9 && unicode.Is(pictographic, r) }

// pictographic are the ranges of emoji-data.txt, Unicode 15, with the gaps between them where no characters are defined.
var pictographic = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0xa9, 0xa9, 1}, {0xae, 0xae, 1}, {0x203c, 0x203c, 1}, {0x2049, 0x2049, 1}, {0x2122, 0x2122, 1}, {0x2139, 0x2139, 1}, {0x2194, 0x2199, 1},
		{0x21a9, 0x21aa, 1}, {0x231a, 0x231b, 1}, {0x2328, 0x2328, 1}, {0x2388, 0x2388, 1}, {0x23cf, 0x23cf, 1}, {0x23e9, 0x23f3, 1},
		{0x23f8, 0x23fa, 1}, {0x24c2, 0x24c2, 1}, {0x25aa, 0x25ab, 1}, {0x25b6, 0x25b6, 1}, {0x25c0, 0x25c0, 1}, {0x25fb, 0x25fe, 1},
		{0x2600, 0x2605, 1}, {0x2607, 0x2612, 1}, {0x2614, 0x2685, 1}, {0x2690, 0x2705, 1}, {0x2708, 0x2712, 1}, {0x2714, 0x2714, 1},
		{0x2716, 0x2716, 1}, {0x271d, 0x271d, 1}, {0x2721, 0x2721, 1}, {0x2728, 0x2728, 1}, {0x2733, 0x2734, 1}, {0x2744, 0x2744, 1},
		{0x2747, 0x2747, 1}, {0x274c, 0x274c, 1}, {0x274e, 0x274e, 1}, {0x2753, 0x2755, 1}, {0x2757, 0x2757, 1}, {0x2763, 0x2767, 1},
		{0x2795, 0x2797, 1}, {0x27a1, 0x27a1, 1}, {0x27b0, 0x27b0, 1}, {0x27bf, 0x27bf, 1}, {0x2934, 0x2935, 1}, {0x2b05, 0x2b07, 1},
		{0x2b1b, 0x2b1c, 1}, {0x2b50, 0x2b50, 1}, {0x2b55, 0x2b55, 1}, {0x3030, 0x3030, 1}, {0x303d, 0x303d, 1}, {0x3297, 0x3297, 1},
		{0x3299, 0x3299, 1},
	},
	R32: []unicode.Range32{
		{0x1f000, 0x1f0ff, 1}, {0x1f10d, 0x1f10f, 1}, {0x1f12f, 0x1f12f, 1}, {0x1f16c, 0x1f171, 1}, {0x1f17e, 0x1f17f, 1}, {0x1f18e, 0x1f18e, 1},
		{0x1f191, 0x1f19a, 1}, {0x1f1ad, 0x1f1e5, 1}, {0x1f201, 0x1f20f, 1}, {0x1f21a, 0x1f21a, 1}, {0x1f22f, 0x1f22f, 1}, {0x1f232, 0x1f23a, 1},
		{0x1f23c, 0x1f23f, 1}, {0x1f249, 0x1f53d, 1}, {0x1f546, 0x1f64f, 1}, {0x1f680, 0x1f6ff, 1}, {0x1f774, 0x1f77f, 1}, {0x1f7d5, 0x1f7ff, 1},
		{0x1f80c, 0x1f80f, 1}, {0x1f848, 0x1f84f, 1}, {0x1f85a, 0x1f85f, 1}, {0x1f888, 0x1f88f, 1}, {0x1f8ae, 0x1f8ff, 1}, {0x1f90c, 0x1f93a, 1},
		{0x1f93c, 0x1f945, 1}, {0x1f947, 0x1faff, 1}, {0x1fc00, 0x1fffd, 1},
	},
}
