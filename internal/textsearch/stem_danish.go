package textsearch

const danishVowels = "aeiouyæåø"

// stemDanish is Snowball's stemmer for Danish.
func stemDanish(word string, _ bool) string {
	s := newStemming([]rune(word), danishVowels)
	s.danishInflection()
	s.danishPair()
	s.danishDerivation()
	if n := len(s.word); n > s.r1 && n > 1 && s.word[n-1] == s.word[n-2] && !s.isVowel(n-1) {
		s.cut(n - 1)
	}
	return string(s.word)
}

func (s *stemming) danishInflection() {
	ending, at := s.longest(s.r1, "hed", "ethed", "ered", "e", "erede", "ende", "erende", "ene", "erne", "ere", "en", "heden", "eren", "er",
		"heder", "erer", "heds", "es", "endes", "erendes", "enes", "ernes", "eres", "ens", "hedens", "erens", "ers", "ets", "erets", "et",
		"eret", "s")
	if at >= 0 && (ending != "s" || s.is(at-1, "abcdfghjklmnoprtvyzå")) {
		s.cut(at)
	}
}

// danishPair takes one letter off two that are one sound.
func (s *stemming) danishPair() {
	if _, at := s.longest(s.r1, "gd", "dt", "gt", "kt"); at >= 0 {
		s.cut(at + 1)
	}
}

func (s *stemming) danishDerivation() {
	if s.at("igst") >= 0 {
		s.cut(len(s.word) - 2)
	}
	switch ending, at := s.longest(s.r1, "ig", "lig", "elig", "els", "løst"); {
	case at < 0:
	case ending == "løst":
		s.cut(len(s.word) - 1)
	default:
		s.cut(at)
		s.danishPair()
	}
}
