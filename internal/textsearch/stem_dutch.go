package textsearch

import "strings"

const dutchVowels = "aeiouyè"

// stemDutch is Porter's stemmer for Dutch, which Snowball calls dutch before its version 3 and dutch_porter since.
func stemDutch(word string, _ bool) string {
	word = strings.NewReplacer("ä", "a", "ë", "e", "ï", "i", "ö", "o", "ü", "u", "á", "a", "é", "e", "í", "i", "ó", "o", "ú", "u").Replace(word)
	letters := []rune(word)
	vowel := func(i int) bool {
		return i >= 0 && i < len(letters) && strings.ContainsRune(dutchVowels, letters[i])
	}
	for i, r := range letters {
		if r == 'y' && (i == 0 || vowel(i-1)) || r == 'i' && vowel(i-1) && vowel(i+1) {
			raise(letters, i)
		}
	}
	s := newStemming(letters, dutchVowels)
	s.dutchInflection()
	removed := s.dutchE()
	s.dutchHeid()
	s.dutchDerivation(removed)
	s.dutchVowel()
	return s.lowered()
}

func (s *stemming) dutchInflection() {
	switch ending, at := s.longest(0, "heden", "en", "ene", "s", "se"); {
	case at < s.r1:
	case ending == "heden":
		s.word = append(s.word[:at], []rune("heid")...)
	case ending == "en" || ending == "ene":
		s.dutchEn(at)
	case !s.isVowel(at-1) && !s.is(at-1, "j"):
		s.cut(at)
	}
}

// dutchEn takes away an -en or -ene, which begins at at.
func (s *stemming) dutchEn(at int) {
	if s.isVowel(at-1) || strings.HasSuffix(string(s.word[:at]), "gem") {
		return
	}
	s.cut(at)
	s.undouble()
}

func (s *stemming) undouble() {
	if _, at := s.longest(0, "kk", "dd", "tt"); at >= 0 {
		s.cut(at + 1)
	}
}

func (s *stemming) dutchE() (removed bool) {
	at := s.at("e")
	if at < s.r1 || s.isVowel(at-1) {
		return false
	}
	s.cut(at)
	s.undouble()
	return true
}

func (s *stemming) dutchHeid() {
	if at := s.at("heid"); at >= s.r2 && !s.is(at-1, "c") {
		if !s.cutIn(s.r2, "heid") {
			return
		}
		if en := s.at("en"); en >= s.r1 {
			s.dutchEn(en)
		}
	}
}

func (s *stemming) dutchDerivation(removedE bool) {
	ending, at := s.longest(0, "end", "ing", "ig", "lijk", "baar", "bar")
	if at < 0 || at < s.r2 {
		return
	}
	switch ending {
	case "end", "ing":
		s.cut(at)
		if ig := s.at("ig"); ig >= s.r2 && !s.is(ig-1, "e") {
			s.cut(ig)
		} else {
			s.undouble()
		}
	case "ig":
		if !s.is(at-1, "e") {
			s.cut(at)
		}
	case "lijk":
		s.cut(at)
		s.dutchE()
	case "baar":
		s.cut(at)
	case "bar":
		if removedE {
			s.cut(at)
		}
	}
}

// dutchVowel makes one of two like vowels between consonants.
func (s *stemming) dutchVowel() {
	n := len(s.word)
	if n < 4 || s.isVowel(n-1) || s.word[n-1] == 'I' || s.isVowel(n-4) || !s.is(n-2, "aeou") || s.word[n-2] != s.word[n-3] {
		return
	}
	s.word = append(s.word[:n-2], s.word[n-1])
}
