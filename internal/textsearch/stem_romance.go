package textsearch

import (
	"slices"
	"strings"
)

// romance is a word of Portuguese or Italian on its way to its stem. It has a third region, RV: what is behind the first
// vowels and consonants, from where endings of verbs are taken away.
type romance struct {
	*stemming
	rv int
}

func newRomance(word []rune, vowels string) *romance {
	s := &romance{newStemming(word, vowels), len(word)}
	s.r1 = s.region(0) // which may begin at once, other than in German
	s.r2 = s.region(s.r1)
	next := func(from int, vowel bool) int {
		for i := from; i < len(word); i++ {
			if s.isVowel(i) == vowel {
				return i + 1
			}
		}
		return len(word)
	}
	switch {
	case len(word) < 3:
	case !s.isVowel(1):
		s.rv = next(2, true)
	case s.isVowel(0):
		s.rv = next(2, false)
	default:
		s.rv = 3
	}
	return s
}

// romanceRule is what becomes of some endings that begin in a region: another ending takes their place, and what stands
// before them, in R2, goes too.
type romanceRule struct {
	region  byte // 1, 2 or 'v'
	endings []string
	instead string
	before  []string
	// further may stand before the first of before, and goes in R2.
	further string
}

func rule(region byte, endings, instead, before, further string) romanceRule {
	return romanceRule{region, strings.Fields(endings), instead, strings.Fields(before), further}
}

// derivation applies the rule of the longest ending, and says whether it did anything.
func (s *romance) derivation(rules []romanceRule) bool {
	at, by := -1, romanceRule{}
	for _, r := range rules {
		if _, found := s.longest(0, r.endings...); found >= 0 && (at < 0 || found < at) {
			at, by = found, r
		}
	}
	from := s.rv
	switch by.region {
	case 1:
		from = s.r1
	case 2:
		from = s.r2
	}
	if at < from || at < 0 {
		return false
	}
	s.word = append(s.word[:at], []rune(by.instead)...)
	for i, before := range by.before {
		if s.at(before) < 0 {
			continue
		}
		if s.cutIn(s.r2, before) && i == 0 && by.further != "" {
			s.cutIn(s.r2, by.further)
		}
		break
	}
	return true
}

// verb takes the longest of the endings in RV away, and says whether there was one.
func (s *romance) verb(endings []string) bool {
	_, at := s.longest(s.rv, endings...)
	if at >= 0 {
		s.cut(at)
	}
	return at >= 0
}

// in says whether the ending lies in RV.
func (s *romance) in(ending string) bool { at := s.at(ending); return at >= 0 && at >= s.rv }

var portugueseRules = []romanceRule{
	rule(2, "eza ezas ico ica icos icas ismo ismos ável ível ista istas oso osa osos osas amento amentos imento imentos adora ador aça~o adoras adores aço~es ante antes ância", "", "", ""),
	rule(2, "logia logias", "log", "", ""),
	rule(2, "uça~o uço~es", "u", "", ""),
	rule(2, "ência ências", "ente", "", ""),
	rule(1, "amente", "", "iv os ic ad", "at"),
	rule(2, "mente", "", "ante avel ível", ""),
	rule(2, "idade idades", "", "abil ic iv", ""),
	rule(2, "iva ivo ivas ivos", "", "at", ""),
}

var portugueseVerbs = strings.Fields(`ada ida ia aria eria iria ará ara erá era irá ava asse esse isse aste este iste ei arei erei irei am
	iam ariam eriam iriam aram eram iram avam em arem erem irem assem essem issem ado ido ando endo indo ara~o era~o ira~o ar er ir as
	adas idas ias arias erias irias arás aras erás eras irás avas es ardes erdes irdes ares eres ires asses esses isses astes estes istes
	is ais eis íeis aríeis eríeis iríeis áreis areis éreis ereis íreis ireis ásseis ésseis ísseis áveis ados idos ámos amos íamos aríamos
	eríamos iríamos áramos éramos íramos ávamos emos aremos eremos iremos ássemos êssemos íssemos imos armos ermos irmos eu iu ou ira iras`)

// stemPortuguese is Snowball's stemmer for Portuguese.
func stemPortuguese(word string, _ bool) string {
	s := newRomance([]rune(strings.NewReplacer("ã", "a~", "õ", "o~").Replace(word)), "aeiouáéíóúâêô")
	altered := s.derivation(portugueseRules) || s.portugueseEira() || s.verb(portugueseVerbs)
	switch {
	case altered && s.in("i") && s.at("ci") >= 0:
		s.cut(len(s.word) - 1)
	case !altered:
		s.verb([]string{"os", "a", "i", "o", "á", "í", "ó"})
	}
	s.portugueseE()
	return strings.NewReplacer("a~", "ã", "o~", "õ").Replace(string(s.word))
}

func (s *romance) portugueseEira() bool {
	ending, at := s.longest(s.rv, "ira", "iras")
	if at < 0 || !s.is(at-1, "e") {
		return false
	}
	s.cut(at + len(ending) - strings.Count(ending, "s") - 1)
	return true
}

func (s *romance) portugueseE() {
	switch n := len(s.word); {
	case s.verb([]string{"e", "é", "ê"}):
		if s.at("gu") >= 0 && s.in("u") || s.at("ci") >= 0 && s.in("i") {
			s.cut(n - 2)
		}
	case s.at("ç") >= 0:
		s.word[n-1] = 'c'
	}
}

var italianRules = []romanceRule{
	rule(2, "anza anze ico ici ica ice iche ichi ismo ismi abile abili ibile ibili ista iste isti istà istè istì oso osi osa ose mente atrice atrici ante anti", "", "", ""),
	rule(2, "azione azioni atore atori", "", "ic", ""),
	rule(2, "logia logie", "log", "", ""),
	rule(2, "uzione uzioni usione usioni", "u", "", ""),
	rule(2, "enza enze", "ente", "", ""),
	rule('v', "amento amenti imento imenti", "", "", ""),
	rule(1, "amente", "", "iv os ic abil", "at"),
	rule(2, "ità", "", "abil ic iv", ""),
	rule(2, "ivo ivi iva ive", "", "at", "ic"),
}

var italianVerbs = strings.Fields(`ammo ando ano are arono asse assero assi assimo ata ate ati ato ava avamo avano avate avi avo emmo enda
	ende endi endo erà erai eranno ere erebbe erebbero erei eremmo eremo ereste eresti erete erò erono essero ete eva evamo evano evate evi
	evo Yamo iamo immo irà irai iranno ire irebbe irebbero irei iremmo iremo ireste iresti irete irò irono isca iscano isce isci isco iscono
	issero ita ite iti ito iva ivamo ivano ivate ivi ivo ono uta ute uti uto ar ir`)

var italianPronouns = strings.Fields(`ci gli la le li lo mi ne si ti vi sene gliela gliele glieli glielo gliene mela mele meli melo mene tela
	tele teli telo tene cela cele celi celo cene vela vele veli velo vene`)

const italianVowels = "aeiouàèìòù"

// stemItalian is Snowball's stemmer for Italian in the version of libstemmer 2.
func stemItalian(word string, _ bool) string {
	letters := []rune(strings.NewReplacer("á", "à", "é", "è", "í", "ì", "ó", "ò", "ú", "ù").Replace(word))
	vowel := func(i int) bool {
		return i >= 0 && i < len(letters) && strings.ContainsRune(italianVowels, letters[i])
	}
	for i, r := range letters {
		afterQ := r == 'u' && i > 0 && letters[i-1] == 'q'
		if afterQ || (r == 'u' || r == 'i') && vowel(i-1) && vowel(i+1) {
			raise(letters, i)
		}
	}
	s := newRomance(letters, italianVowels)
	s.italianPronoun()
	if !s.derivation(italianRules) {
		s.verb(italianVerbs)
	}
	if s.verb([]string{"a", "e", "i", "o", "à", "è", "ì", "ò"}) {
		s.verb([]string{"i"})
	}
	if s.in("ch") || s.in("gh") {
		s.cut(len(s.word) - 1)
	}
	return s.lowered()
}

// italianPronoun takes a pronoun off a gerund, or off an infinitive, which gets its e back.
func (s *romance) italianPronoun() {
	_, at := s.longest(0, italianPronouns...)
	if at < 0 {
		return
	}
	rest := &romance{&stemming{word: slices.Clone(s.word[:at])}, s.rv}
	switch {
	case rest.in("ando") || rest.in("endo"):
		s.cut(at)
	case rest.in("ar") || rest.in("er") || rest.in("ir"):
		s.word = append(s.word[:at], 'e')
	}
}
