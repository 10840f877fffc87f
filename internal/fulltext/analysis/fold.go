package analysis

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// icuFolding folds case, and leaves diacritics and forms of characters out.
func icuFolding(tokens []Token) []Token {
	for i := range tokens {
		tokens[i].Term = foldICU(tokens[i].Term)
	}
	return tokens
}

// foldICU is near to Unicode's foldings of UTR #30, which Lucene's ICUFoldingFilter does: characters of the same meaning become one, in lower
// case, without marks. Letters with a stroke lose it; digits of all scripts are 0 to 9.
func foldICU(text string) string {
	if isASCII(text) {
		return lower(text)
	}
	folded := norm.NFKD.String(cases.Fold().String(norm.NFKC.String(text)))
	out := make([]byte, 0, len(folded))
	for _, r := range folded {
		switch {
		case r < utf8.RuneSelf:
			out = append(out, byte(r))
		case unicode.Is(unicode.Mn, r), ignorable(r):
		case unicode.Is(unicode.Nd, r):
			out = append(out, digit(r))
		case plain[r] != "":
			out = append(out, plain[r]...)
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return norm.NFC.String(string(out))
}

// digit is 0 to 9: the digits of a script follow one another, and tens of scripts.
func digit(r rune) byte {
	zero := r
	for zero > r-9 && unicode.Is(unicode.Nd, zero-1) {
		zero--
	}
	if r >= 0x1d7ce && r <= 0x1d7ff { // five sets of mathematical digits without a gap
		return '0' + byte((r-0x1d7ce)%10)
	}
	return '0' + byte(r-zero)
}

// ignorable says that the character is not seen.
func ignorable(r rune) bool {
	return r == 0xad || r == 0x34f || r >= 0x200b && r <= 0x200f || r >= 0x2060 && r <= 0x206f || r == 0xfeff ||
		unicode.Is(unicode.Variation_Selector, r)
}

// plain are letters that have no decomposition, without what makes them others.
var plain = map[rune]string{
	'ø': "o", 'đ': "d", 'ð': "d", 'ł': "l", 'ħ': "h", 'ŧ': "t", 'ı': "i", 'ŋ': "n", 'ƀ': "b", 'ɓ': "b", 'ƈ': "c", 'ɖ': "d", 'ɗ': "d", 'ƒ': "f",
	'ɠ': "g", 'ɨ': "i", 'ƙ': "k", 'ƚ': "l", 'ɲ': "n", 'ƞ': "n", 'ɵ': "o", 'ƥ': "p", 'ƭ': "t", 'ʈ': "t", 'ʋ': "v", 'ƴ': "y", 'ƶ': "z", 'ȥ': "z",
	'æ': "ae", 'œ': "oe", 'ĸ': "k", '‐': "-", '‑': "-", '‒': "-", '–': "-", '—': "-", '―': "-", '‘': "'", '’': "'", '“': "\"", '”': "\"",
}

func isASCII(text string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
