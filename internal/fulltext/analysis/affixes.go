package analysis

import (
	"strings"
	"unicode/utf8"
)

// Bulgarian (Savoy, "Searching Strategies for the Bulgarian Language") and Indonesian (Tala, "A Study of Stemming Effects on Information Retrieval in
// Bahasa Indonesia"), as Lucene's analyzers stem them.

var (
	bulgarianArticles = []ending{
		{6, "ият", "", true}, {5, "ът", "", true}, {5, "то", "", true}, {5, "те", "", true}, {5, "та", "", true}, {5, "ия", "", true}, {4, "ят", "", true},
	}
	bulgarianPlurals = []ending{
		{6, "овци", "о", true}, {6, "ове", "", true}, {6, "еве", "й", true}, {5, "ища", "", true}, {5, "та", "", true}, {5, "ци", "к", true},
		{5, "зи", "г", true},
	}
	bulgarianShortPlurals = []ending{{4, "си", "х", true}, {4, "и", "", true}}
)

func bulgarian(word string) string {
	n := utf8.RuneCountInString(word)
	if n < 4 {
		return word
	}
	if n > 5 && ends(word, "ища") {
		return strings.TrimSuffix(word, "ища")
	}
	word, _ = endings(word, bulgarianArticles)
	word = bulgarianSingular(word)
	if utf8.RuneCountInString(word) > 3 {
		word = strings.TrimSuffix(word, "я")
		for _, vowel := range []string{"а", "о", "е"} {
			if rest, ok := strings.CutSuffix(word, vowel); ok {
				word = rest
				break
			}
		}
	}
	word, _ = endings(word, []ending{{4, "ен", "н", true}})
	if utf8.RuneCountInString(word) > 5 {
		last, width := utf8.DecodeLastRuneInString(word)
		if rest, ok := strings.CutSuffix(word[:len(word)-width], "ъ"); ok {
			word = rest + string(last)
		}
	}
	return word
}

func bulgarianSingular(word string) string {
	word, done := endings(word, bulgarianPlurals)
	if done {
		return word
	}
	if rest, ok := strings.CutSuffix(word, "и"); ok && utf8.RuneCountInString(word) > 5 {
		middle, width := utf8.DecodeLastRuneInString(rest)
		if root, ok := strings.CutSuffix(rest[:len(rest)-width], "е"); ok {
			return root + "я" + string(middle)
		}
	}
	word, _ = endings(word, bulgarianShortPlurals)
	return word
}

// indonesianAffix is a beginning that a word loses: vowel says that a vowel must follow it, to is what is there instead, and kind is what endings
// do not go with it.
type indonesianAffix struct {
	from, to string
	vowel    bool
	kind     string
}

var (
	indonesianFirst = []indonesianAffix{
		{"meng", "", false, "meng"}, {"meny", "s", true, "meng"}, {"men", "", false, "meng"}, {"mem", "", false, "meng"}, {"me", "", false, "meng"},
		{"peng", "", false, "peng"}, {"peny", "s", true, "peng"}, {"peny", "", false, "peng"}, {"pen", "t", true, "peng"}, {"pen", "", false, "peng"},
		{"pem", "", false, "peng"}, {"di", "", false, "di"}, {"ter", "", false, "ter"}, {"ke", "", false, "ke"},
	}
	indonesianSecond = []indonesianAffix{{"ber", "", false, "ber"}, {"per", "", false, ""}, {"pe", "", false, "pe"}}
)

// indonesianWord is a word while it is stemmed: as long as it has more than two syllables, it can lose one.
type indonesianWord struct {
	text      string
	syllables int
	lost      map[string]bool
}

func indonesian(word string) string {
	w := indonesianWord{text: word, lost: map[string]bool{}}
	for i := range len(word) {
		if isVowel(word[i]) {
			w.syllables++
		}
	}
	w.cut("kah", "lah", "pun")
	w.cut("ku", "mu", "nya")
	if w.begin(indonesianFirst) {
		if w.end() {
			w.second()
		}
	} else {
		w.second()
		w.end()
	}
	return w.text
}

func isVowel(c byte) bool { return strings.IndexByte("aeiou", c) >= 0 }

// cut takes the first of some endings that the word has.
func (w *indonesianWord) cut(of ...string) bool {
	for _, e := range of {
		if rest, ok := strings.CutSuffix(w.text, e); ok && w.syllables > 2 {
			w.text = rest
			w.syllables--
			return true
		}
	}
	return false
}

func (w *indonesianWord) begin(with []indonesianAffix) bool {
	for _, a := range with {
		rest, ok := strings.CutPrefix(w.text, a.from)
		if ok && w.syllables > 2 && (!a.vowel || rest != "" && isVowel(rest[0])) {
			w.lose(a.to+rest, a.kind)
			return true
		}
	}
	return false
}

func (w *indonesianWord) lose(left, kind string) {
	w.text = left
	w.syllables--
	w.lost[kind] = true
}

// second takes the second beginning.
func (w *indonesianWord) second() {
	t := w.text
	switch {
	case w.syllables <= 2:
	case t == "belajar":
		w.lose("ajar", "ber")
	case t == "pelajar":
		w.lose("ajar", "")
	case !strings.HasPrefix(t, "ber") && strings.HasPrefix(t, "be") && len(t) > 4 && !isVowel(t[2]) && t[3:5] == "er":
		w.lose(t[2:], "ber")
	default:
		w.begin(indonesianSecond)
	}
}

// end takes an ending that goes with what the word began with.
func (w *indonesianWord) end() bool {
	switch {
	case ends(w.text, "kan") && !w.lost["ke"] && !w.lost["peng"] && !w.lost["pe"]:
		return w.cut("kan")
	case ends(w.text, "an") && !w.lost["di"] && !w.lost["meng"] && !w.lost["ter"]:
		return w.cut("an")
	case ends(w.text, "i") && !ends(w.text, "si") && !w.lost["ber"] && !w.lost["ke"] && !w.lost["peng"]:
		return w.cut("i")
	}
	return false
}
