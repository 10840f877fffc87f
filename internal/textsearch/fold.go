package textsearch

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// lower is r in lower case by Unicode's simple case folding, so that σ and ς are one letter, and ſ and s.
func (l *Language) lower(r rune) rune {
	if r < utf8.RuneSelf {
		switch {
		case r == 'I' && l.turkish:
			return 'ı'
		case 'A' <= r && r <= 'Z':
			return r | 0x20
		}
		return r
	}
	switch r {
	case 'İ':
		if l.turkish {
			return 'i'
		}
		return r
	case 'ı': // the upper case I is that of another letter
		return r
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// bareRunes is how many runes have their form without diacritics in a table.
const bareRunes = 0x2000

var bareTable = sync.OnceValue(func() *[bareRunes]rune {
	var table [bareRunes]rune
	for r := range rune(bareRunes) {
		table[r] = findBare(r)
	}
	return &table
})

// bare is r without diacritics; 0 when it is nothing but one.
func bare(r rune) rune {
	if r < bareRunes {
		return bareTable()[r]
	}
	return findBare(r)
}

// findBare takes the diacritics out of r's canonical decomposition. What does not make one rune again stays as it is.
func findBare(r rune) rune {
	if unicode.Is(unicode.Diacritic, r) {
		return 0
	}
	var parts, left [utf8.UTFMax * 4]byte
	rest := left[:0]
	for _, part := range string(norm.NFD.AppendString(parts[:0], string(r))) {
		if !unicode.Is(unicode.Diacritic, part) {
			rest = utf8.AppendRune(rest, part)
		}
	}
	composed := norm.NFC.Bytes(rest)
	if one, size := utf8.DecodeRune(composed); size == len(composed) && one != utf8.RuneError {
		return one
	}
	return r
}

// appendFolded appends s as form has it: in lower case unless KeepCase, without diacritics unless KeepDiacritics.
func (l *Language) appendFolded(dst []byte, s string, form Form) []byte {
	for _, r := range s {
		if r < utf8.RuneSelf && r != '^' && r != '`' && (form&KeepCase != 0 || r != 'I' || !l.turkish) {
			if form&KeepCase == 0 && 'A' <= r && r <= 'Z' {
				r |= 0x20
			}
			dst = append(dst, byte(r))
			continue
		}
		if form&KeepCase == 0 {
			r = l.lower(r)
		}
		if form&KeepDiacritics == 0 {
			if r = bare(r); r == 0 {
				continue
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}
