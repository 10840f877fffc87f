package analysis

import (
	"unicode"
	"unicode/utf8"
)

// whole makes one token of a text, which is not empty.
func whole(dst []Token, text string) []Token {
	if text == "" {
		return dst
	}
	return append(dst, Token{Term: text, End: len(text)})
}

// runs divides a text into runs of the characters that is tells, and cuts those that are longer than most UTF-16 units.
func runs(is func(rune) bool, most int) tokenizer {
	return func(dst []Token, text string) []Token {
		position := 0
		for i := 0; i < len(text) && position < maxTokens; {
			r, n := utf8.DecodeRuneInString(text[i:])
			if !is(r) {
				i += n
				continue
			}
			start, units := i, 0
			for i < len(text) {
				r, n = utf8.DecodeRuneInString(text[i:])
				units++
				if r > 0xffff {
					units++
				}
				if !is(r) || units > most && i > start {
					break
				}
				i += n
			}
			dst = append(grown(dst), Token{Term: text[start:i], Start: start, End: i, Position: position})
			position++
		}
		return dst
	}
}

func isLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return r|0x20 >= 'a' && r|0x20 <= 'z'
	}
	return unicode.IsLetter(r)
}

// isBlack says that Java does not take the character for whitespace: those that do not break a line are none.
func isBlack(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', 0x1c, 0x1d, 0x1e, 0x1f, ' ':
		return false
	case 0xa0, 0x2007, 0x202f:
		return true
	}
	return r < utf8.RuneSelf || !unicode.In(r, unicode.Zs, unicode.Zl, unicode.Zp)
}

// lowercase folds upper to lower case, each character by itself.
func lowercase(tokens []Token) []Token {
	for i := range tokens {
		tokens[i].Term = lower(tokens[i].Term)
	}
	return tokens
}

// lower is the text in lower case, and the text itself where it is that already.
func lower(text string) string {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf {
			return lowerFrom(text, i)
		}
	}
	return text
}

func lowerFrom(text string, from int) string {
	for i := from; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if unicode.ToLower(r) != r {
			out := append(make([]byte, 0, len(text)+utf8.UTFMax), text[:i]...)
			for _, r := range text[i:] {
				out = utf8.AppendRune(out, unicode.ToLower(r))
			}
			return string(out)
		}
		i += n
	}
	return text
}
