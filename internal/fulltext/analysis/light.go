package analysis

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The stemmers of this file are those that Lucene's analyzers use where Snowball's go too far: the light stemmers of Jacques Savoy (University of
// Neuchâtel, "Light Stemming Approaches for the French, Portuguese, German and Hungarian Languages"), Czech of Dolamic and Savoy, Arabic light10,
// and Harman's plural stemmer. They take words in lower case. Lengths are in characters.

// ending is a rule: a word that is longer than so many characters and ends so ends otherwise. A last rule is the last that a word is held to.
type ending struct {
	longer   int
	from, to string
	last     bool
}

// endings holds a word to rules.
func endings(word string, rules []ending) (out string, ended bool) {
	n := utf8.RuneCountInString(word)
	for _, r := range rules {
		if n > r.longer && strings.HasSuffix(word, r.from) {
			word = word[:len(word)-len(r.from)] + r.to
			if r.last {
				return word, true
			}
			n = utf8.RuneCountInString(word)
		}
	}
	return word, false
}

// ends says that a word has one of some endings.
func ends(word string, with ...string) bool {
	for _, e := range with {
		if strings.HasSuffix(word, e) {
			return true
		}
	}
	return false
}

// unmarked replaces letters with others, each of a pair of the list.
func unmarked(pairs ...string) *strings.Replacer {
	var list []string
	for _, p := range pairs {
		to, from, _ := strings.Cut(p, ":")
		for _, r := range from {
			list = append(list, string(r), to)
		}
	}
	return strings.NewReplacer(list...)
}

var (
	germanMarks     = unmarked("a:äàáâ", "o:öòóô", "i:ïìíî", "u:üùúû")
	romanceMarks    = unmarked("a:àáâä", "o:òóôö", "e:èéêë", "u:ùúûü", "i:ìíîï")
	portugueseMarks = unmarked("a:àáâäã", "o:òóôöõ", "e:èéêë", "u:ùúûü", "i:ìíîï", "c:ç")
	frenchMarks     = unmarked("a:àáâ", "o:ô", "e:èéê", "u:ùû", "i:î", "c:ç")
)

func germanLight(word string) string {
	word = germanMarks.Replace(word)
	before := func(letters string, at int) bool { // a letter at that place from the end is one of those
		i := len(word) - at
		return i >= 0 && strings.IndexByte(letters, word[i]) >= 0
	}
	const hard = "bdfghklmnt"
	switch n := utf8.RuneCountInString(word); {
	case n > 5 && ends(word, "ern"):
		word = word[:len(word)-3]
	case n > 4 && ends(word, "em", "en", "er", "es"):
		word = word[:len(word)-2]
	case n > 3 && (ends(word, "e") || ends(word, "s") && before(hard, 2)):
		word = word[:len(word)-1]
	}
	switch n := utf8.RuneCountInString(word); {
	case n > 5 && ends(word, "est"):
		word = word[:len(word)-3]
	case n > 4 && (ends(word, "er", "en") || ends(word, "st") && before(hard, 3)):
		word = word[:len(word)-2]
	}
	return word
}

// germanNormal writes umlauts and ß as if they were others: ä and ae as a, ß as ss.
func germanNormal(word string) string {
	if isASCII(word) && !strings.Contains(word, "e") {
		return word
	}
	const (
		ordinary = iota
		vowel    // a u behind it is no umlaut with an e
		umlaut   // an e behind it makes an umlaut
	)
	state := ordinary
	out := make([]byte, 0, len(word)+1)
	for _, r := range word {
		switch r {
		case 'a', 'o':
			state = umlaut
		case 'u':
			if state == ordinary {
				state = umlaut
			} else {
				state = vowel
			}
		case 'e':
			was := state
			if state = vowel; was == umlaut {
				continue
			}
		case 'i', 'q', 'y':
			state = vowel
		case 'ä':
			r, state = 'a', vowel
		case 'ö':
			r, state = 'o', vowel
		case 'ü':
			r, state = 'u', vowel
		case 'ß':
			out = append(out, 's')
			r, state = 's', ordinary
		default:
			state = ordinary
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}

func spanishLight(word string) string {
	if utf8.RuneCountInString(word) < 5 {
		return word
	}
	word = romanceMarks.Replace(word)
	switch {
	case ends(word, "o", "a", "e"):
		return word[:len(word)-1]
	case ends(word, "eses"):
		return word[:len(word)-2]
	case ends(word, "ces"):
		return word[:len(word)-3] + "z"
	case ends(word, "os", "as", "es"):
		return word[:len(word)-2]
	}
	return word
}

func italianLight(word string) string {
	if utf8.RuneCountInString(word) < 6 {
		return word
	}
	word = romanceMarks.Replace(word)
	switch {
	case ends(word, "ie", "he", "hi", "ii", "ia", "io"):
		return word[:len(word)-2]
	case ends(word, "e", "i", "a", "o"):
		return word[:len(word)-1]
	}
	return word
}

var (
	portugueseEndings = []ending{
		{4, "res", "r", true}, {4, "ses", "s", true}, {4, "les", "l", true}, {4, "zes", "z", true},
		{3, "ns", "m", true}, {4, "eis", "el", true}, {4, "éis", "el", true}, {4, "ais", "al", true}, {4, "óis", "ol", true}, {4, "is", "il", true},
		{3, "ões", "ão", true}, {3, "ães", "ão", true}, {6, "mente", "", true}, {3, "s", "", true},
	}
	portugueseFeminine = []ending{
		{7, "inha", "inho", true}, {7, "iaca", "iaco", true}, {7, "eira", "eiro", true},
		{6, "osa", "oso", true}, {6, "ica", "ico", true}, {6, "ida", "ido", true}, {6, "ada", "ado", true}, {6, "iva", "ivo", true},
		{6, "ama", "amo", true}, {6, "ona", "ão", true}, {6, "ora", "or", true}, {6, "esa", "ês", true}, {6, "na", "no", true},
	}
)

func portugueseLight(word string) string {
	if utf8.RuneCountInString(word) < 4 {
		return word
	}
	word, _ = endings(word, portugueseEndings)
	if n := utf8.RuneCountInString(word); n > 3 && ends(word, "a") {
		word, _ = endings(word, portugueseFeminine)
	}
	if n := utf8.RuneCountInString(word); n > 4 && ends(word, "e", "a", "o") {
		word = word[:len(word)-1]
	}
	return portugueseMarks.Replace(word)
}

var frenchEndings = []ending{
	{9, "issement", "ir", true}, {8, "issant", "ir", true}, {6, "ement", "e", true}, {11, "ficatrice", "fier", true}, {10, "ficateur", "fier", true},
	{9, "catrice", "quer", true}, {8, "cateur", "quer", true}, {8, "atrice", "er", true}, {7, "ateur", "er", true}, {6, "trice", "teur", false},
	{5, "ième", "", true}, {7, "teuse", "ter", true}, {6, "teur", "ter", true}, {5, "euse", "eu", true}, {8, "ère", "er", true}, {7, "ive", "if", true},
	{4, "folle", "fou", true}, {4, "molle", "mou", true}, {9, "nnelle", "n", true}, {9, "nnel", "n", true}, {4, "ète", "et", false},
	{8, "ique", "", false}, {8, "esse", "e", true}, {7, "inage", "in", true}, {9, "isation", "", true}, {9, "isateur", "", true},
	{8, "ation", "", true}, {8, "ition", "", true},
}

func frenchLight(word string) string {
	n := utf8.RuneCountInString(word)
	if n > 5 && ends(word, "x") {
		if ends(word, "aux") && !ends(word, "eaux") {
			word = word[:len(word)-2] + "l"
		} else {
			word = word[:len(word)-1]
		}
		n--
	}
	if n > 3 && ends(word, "x") {
		word, n = word[:len(word)-1], n-1
	}
	if n > 3 && ends(word, "s") {
		word = word[:len(word)-1]
	}
	long := word
	word, _ = endings(word, frenchEndings)
	n = utf8.RuneCountInString(word)
	switch {
	case ends(long, "ement") && n > 3 && ends(word, "ive"):
		word = word[:len(word)-2] + "f"
	case ends(long, "isation") && n > 5 && ends(word, "ual"):
		word = word[:len(word)-2] + "el"
	}
	return frenchNormal(word)
}

func frenchNormal(word string) string {
	if utf8.RuneCountInString(word) > 4 {
		word = withoutDoubles(frenchMarks.Replace(word))
	}
	n := utf8.RuneCountInString(word)
	if n > 4 && ends(word, "ie") {
		word, n = word[:len(word)-2], n-2
	}
	if n > 4 {
		word = strings.TrimSuffix(word, "r")
		word = strings.TrimSuffix(word, "e")
		word = strings.TrimSuffix(word, "e")
		last, width := utf8.DecodeLastRuneInString(word)
		if before, _ := utf8.DecodeLastRuneInString(word[:len(word)-width]); before == last && unicode.IsLetter(last) {
			word = word[:len(word)-width]
		}
	}
	return word
}

// withoutDoubles leaves out a letter that is as the one before it.
func withoutDoubles(word string) string {
	return strings.Map(func() func(rune) rune {
		before := rune(-1)
		return func(r rune) rune {
			if r == before && unicode.IsLetter(r) {
				return -1
			}
			before = r
			return r
		}
	}(), word)
}

var (
	czechCases = []ending{
		{7, "atech", "", true}, {6, "ětem", "", true}, {6, "etem", "", true}, {6, "atům", "", true},
		{5, "ech", "", true}, {5, "ich", "", true}, {5, "ích", "", true}, {5, "ého", "", true}, {5, "ěmi", "", true}, {5, "emi", "", true},
		{5, "ému", "", true}, {5, "ěte", "", true}, {5, "ete", "", true}, {5, "ěti", "", true}, {5, "eti", "", true}, {5, "ího", "", true},
		{5, "iho", "", true}, {5, "ími", "", true}, {5, "ímu", "", true}, {5, "imu", "", true}, {5, "ách", "", true}, {5, "ata", "", true},
		{5, "aty", "", true}, {5, "ých", "", true}, {5, "ama", "", true}, {5, "ami", "", true}, {5, "ové", "", true}, {5, "ovi", "", true},
		{5, "ými", "", true},
		{4, "em", "", true}, {4, "es", "", true}, {4, "ém", "", true}, {4, "ím", "", true}, {4, "ům", "", true}, {4, "at", "", true},
		{4, "ám", "", true}, {4, "os", "", true}, {4, "us", "", true}, {4, "ým", "", true}, {4, "mi", "", true}, {4, "ou", "", true},
		{3, "a", "", true}, {3, "e", "", true}, {3, "i", "", true}, {3, "o", "", true}, {3, "u", "", true}, {3, "ů", "", true}, {3, "y", "", true},
		{3, "á", "", true}, {3, "é", "", true}, {3, "í", "", true}, {3, "ý", "", true}, {3, "ě", "", true},
	}
	czechPossessives = []ending{{5, "ov", "", true}, {5, "in", "", true}, {5, "ův", "", true}}
	czechSounds      = []ending{{0, "čt", "ck", true}, {0, "št", "sk", true}, {0, "c", "k", true}, {0, "č", "k", true}, {0, "z", "h", true}, {0, "ž", "h", true}}
)

func czech(word string) string {
	word, _ = endings(word, czechCases)
	word, _ = endings(word, czechPossessives)
	word, done := endings(word, czechSounds)
	if done || word == "" {
		return word
	}
	last, width := utf8.DecodeLastRuneInString(word)
	rest := word[:len(word)-width]
	if stem, ok := strings.CutSuffix(rest, "e"); ok {
		return stem + string(last)
	}
	if stem, ok := strings.CutSuffix(rest, "ů"); ok && stem != "" {
		return stem + "o" + string(last)
	}
	return word
}

// arabicForms writes letters in one of their forms, without vowel signs.
var arabicForms = strings.NewReplacer("آ", "ا", "أ", "ا", "إ", "ا", "ى", "ي", "ة", "ه", "ـ", "",
	"\u064b", "", "\u064c", "", "\u064d", "", "\u064e", "", "\u064f", "", "\u0650", "", "\u0651", "", "\u0652", "")

// arabic stems a word whose letters are in one form.
func arabic(word string) string {
	n := utf8.RuneCountInString(word)
	for _, p := range []string{"ال", "وال", "بال", "كال", "فال", "لل", "و"} {
		length := utf8.RuneCountInString(p)
		if (length > 1 && n >= length+2 || n >= 4) && strings.HasPrefix(word, p) && n >= length+2 {
			word, n = word[len(p):], n-length
			break
		}
	}
	for _, s := range []string{"ها", "ان", "ات", "ون", "ين", "يه", "ية", "ه", "ة", "ي"} {
		length := utf8.RuneCountInString(s)
		if n >= length+2 && strings.HasSuffix(word, s) {
			word, n = word[:len(word)-len(s)], n-length
		}
	}
	return word
}

// persianForms writes letters as Arabic does.
var persianForms = strings.NewReplacer("ی", "ي", "ے", "ي", "ک", "ك", "ۀ", "ه", "ہ", "ه", "\u0654", "")

// englishMinimal leaves the s of a plural out (Harman, "How effective is suffixing?").
func englishMinimal(word string) string {
	n := utf8.RuneCountInString(word)
	if n < 3 || !ends(word, "s") || ends(word, "us", "ss") {
		return word
	}
	if ends(word, "es") {
		switch {
		case n > 3 && ends(word, "ies") && !ends(word, "aies", "eies"):
			return word[:len(word)-3] + "y"
		case ends(word, "ies", "aes", "oes", "ees"):
			return word
		}
	}
	return word[:len(word)-1]
}

// englishPossessive leaves 's out.
func englishPossessive(word string) string {
	if !ends(word, "s", "S") {
		return word
	}
	for _, quote := range []string{"'", "’", "＇"} {
		if rest := word[:len(word)-1]; strings.HasSuffix(rest, quote) {
			return rest[:len(rest)-len(quote)]
		}
	}
	return word
}

// persian leaves endings out, one after the other.
func persian(word string) string {
	n := utf8.RuneCountInString(word)
	for _, s := range []string{"ات", "ان", "ترين", "تر", "يي", "ي", "ها", "\u200c"} {
		if length := utf8.RuneCountInString(s); n >= length+2 && strings.HasSuffix(word, s) {
			word, n = word[:len(word)-len(s)], n-length
		}
	}
	return word
}
