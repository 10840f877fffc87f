package analysis

import (
	"embed"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	snowarabic "github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/irish"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/porter"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/turkish"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
	"github.com/ebbdb/ebb/internal/textsearch/stopwords"
	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/width"
)

// snowball is one of Snowball's stemmers.
type snowball func(*snowballstem.Env) bool

// maxStemmed is how long a word is at most to be stemmed, in bytes: no word of a language is so long, and some stemmers take a time that grows
// with the square.
const maxStemmed = 1024

func (s snowball) stem(word string) string {
	if len(word) > maxStemmed {
		return word
	}
	env := snowballstem.NewEnv(word)
	s(env)
	return env.Current()
}

// snowballs are Snowball's stemmers by the names that definitions have for them.
var snowballs = map[string]snowball{
	"arabic": snowarabic.Stem, "danish": danish.Stem, "dutch": dutch.Stem, "english": english.Stem, "finnish": finnish.Stem, "french": french.Stem,
	"german": german.Stem, "german2": german.Stem, "hungarian": hungarian.Stem, "irish": irish.Stem, "italian": italian.Stem,
	"norwegian": norwegian.Stem, "porter": porter.Stem, "portuguese": portuguese.Stem, "romanian": romanian.Stem, "russian": russian.Stem,
	"spanish": spanish.Stem, "swedish": swedish.Stem, "turkish": turkish.Stem,
}

// stemmerNames are all that definitions can name.
var stemmerNames = []string{
	"arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "estonian", "finnish", "french", "german", "german2", "hungarian",
	"irish", "italian", "lithuanian", "norwegian", "porter", "portuguese", "romanian", "russian", "spanish", "swedish", "turkish",
}

func parseSnowball(r *spec.Reader) filter {
	name := r.Enum("stemmerName", "", stemmerNames...)
	if r.Err() != nil {
		return unchanged
	}
	s := snowballs[name]
	if s == nil {
		r.RefuseField("stemmerName", "'%s' is not supported by this server", name)
		return unchanged
	}
	return stems(s.stem)
}

// language is what the analyzer of a language does with the tokens of the standard tokenizer.
type language struct {
	name    string
	chars   []charFilter
	elided  string              // what is left out with an apostrophe behind it
	first   filter              // before everything
	lower   filter              // nil for the usual one
	digits  bool                // digits of other scripts are 0 to 9
	forms   func(string) string // before stop words
	after   func(string) string // after stop words
	stem    func(string) string
	bigrams bool
}

// languages are those that have an analyzer, but for those that need a dictionary.
var languages = []language{
	{name: "english", first: each(englishPossessive), stem: snowballs["porter"].stem},
	{name: "danish", stem: snowballs["danish"].stem},
	{name: "dutch", stem: dutchStem},
	{name: "finnish", stem: snowballs["finnish"].stem},
	{name: "french", elided: "l m t qu n s j d c jusqu quoiqu lorsqu puisqu", stem: frenchLight},
	{name: "german", after: germanNormal, stem: germanLight},
	{name: "hungarian", stem: snowballs["hungarian"].stem},
	{name: "irish", elided: "d m b", first: without(setOf([]string{"h", "n", "t"}, true), true), lower: each(irishLower), stem: snowballs["irish"].stem},
	{name: "italian", elided: "c l all dall dell nell sull coll pell gl agl dagl degl negl sugl un m t s v d", stem: italianLight},
	{name: "norwegian", stem: snowballs["norwegian"].stem},
	{name: "portuguese", stem: portugueseLight},
	{name: "romanian", stem: snowballs["romanian"].stem},
	{name: "russian", stem: snowballs["russian"].stem},
	{name: "spanish", stem: spanishLight},
	{name: "swedish", stem: snowballs["swedish"].stem},
	{name: "turkish", first: each(beforeApostrophe), lower: each(turkishLower), stem: snowballs["turkish"].stem},
	{name: "arabic", digits: true, after: arabicForms.Replace, stem: arabic},
	{name: "czech", stem: czech},
	{name: "bulgarian", stem: bulgarian},
	{name: "indonesian", stem: indonesian},
	{name: "persian", chars: []charFilter{persianSpaces}, digits: true, forms: func(s string) string { return persianForms.Replace(arabicForms.Replace(s)) },
		stem: persian},
	{name: "cjk", bigrams: true}, {name: "chinese", bigrams: true}, {name: "japanese", bigrams: true}, {name: "korean", bigrams: true},
}

// unsupported are the analyzers that this server has not: they need dictionaries, or stemmers that nobody has written here yet.
var unsupported = setOf(strings.Fields(`armenian basque bengali brazilian catalan galician greek hindi kuromoji latvian lithuanian
	morfologik nori polish smartcn sorani thai ukrainian`), false)

// options are what a definition changes of an analyzer.
type options struct {
	stops      map[string]struct{} // nil: those of the language
	excluded   map[string]struct{}
	ignoreCase bool
}

// analyzer makes the analyzer of a language.
func (l *language) analyzer(o options) *Analyzer {
	a := &Analyzer{name: "lucene." + l.name, chars: l.chars, divide: standard(maxTokenLength), parts: !l.bigrams && len(l.chars) == 0}
	both := func(f filter) {
		a.filters, a.normal = append(a.filters, f), append(a.normal, f)
	}
	if o.stops == nil {
		o.stops, o.ignoreCase = stopsOf(l), false
	}
	if l.elided != "" && l.name != "irish" {
		both(each(elision(l.elided)))
	}
	if l.first != nil {
		a.filters = append(a.filters, l.first)
	}
	if l.elided != "" && l.name == "irish" {
		both(each(elision(l.elided)))
	}
	if l.bigrams {
		both(each(foldWidth))
	}
	if l.lower != nil {
		both(l.lower)
	} else {
		both(lowercase)
	}
	if l.digits {
		both(each(foldDigits))
	}
	if l.forms != nil {
		both(each(l.forms))
	}
	if l.bigrams {
		a.filters = append(a.filters, bigrams)
	}
	a.filters = append(a.filters, without(o.stops, o.ignoreCase))
	if len(o.excluded) > 0 {
		a.filters = append(a.filters, protected(o.excluded, o.ignoreCase))
	}
	if l.after != nil {
		both(each(l.after))
	}
	if l.stem != nil {
		a.filters = append(a.filters, stems(l.stem))
	}
	return a
}

// otherStops are the stop words of languages whose lists in Lucene are not those of text indexes.
//
//go:embed stopwords
var otherStops embed.FS

// stopsOf are the words that a language's analyzer leaves out.
func stopsOf(l *language) map[string]struct{} {
	switch {
	case l.name == "english":
		return setOf(strings.Fields(`a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to
			was will with`), false)
	case l.bigrams:
		return setOf(strings.Fields(`a and are as at be but by for if in into is it no not of on or s such t that the their then there these they this
			to was will with www`), false)
	}
	if list, err := otherStops.ReadFile("stopwords/" + l.name + ".txt"); err == nil {
		return setOf(strings.Fields(string(list)), false)
	}
	return stopwords.Of(l.name)
}

// elision leaves an article out that a word begins with.
func elision(articles string) func(string) string {
	set := setOf(strings.Fields(articles), true)
	return func(word string) string {
		i := strings.IndexAny(word, "'’")
		if i <= 0 {
			return word
		}
		if _, is := set[lower(word[:i])]; !is {
			return word
		}
		_, n := utf8.DecodeRuneInString(word[i:])
		return word[i+n:]
	}
}

// beforeApostrophe is what a word has before its apostrophe.
func beforeApostrophe(word string) string {
	if i := strings.IndexAny(word, "'’"); i >= 0 {
		return word[:i]
	}
	return word
}

// turkishLower knows an I without a dot.
func turkishLower(word string) string {
	return strings.ToLowerSpecial(unicode.TurkishCase, strings.ReplaceAll(word, "I\u0307", "i"))
}

// irishLower writes a prefix before a vowel in upper case apart.
func irishLower(word string) string {
	if len(word) > 1 && (word[0] == 'n' || word[0] == 't') {
		if r, _ := utf8.DecodeRuneInString(word[1:]); strings.ContainsRune("AEIOUÁÉÍÓÚ", r) {
			return word[:1] + "-" + lower(word[1:])
		}
	}
	return lower(word)
}

// dutchStem knows words that Snowball's stemmer takes too much of.
func dutchStem(word string) string {
	switch word {
	case "fiets", "bromfiets":
		return word
	case "ei":
		return "eier"
	case "kind":
		return "kinder"
	}
	return snowballs["dutch"].stem(word)
}

// foldDigits writes the digits of all scripts as 0 to 9.
func foldDigits(word string) string {
	if isASCII(word) {
		return word
	}
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf && unicode.Is(unicode.Nd, r) {
			return rune(digit(r))
		}
		return r
	}, word)
}

// foldWidth writes Latin letters in half and kana in full width.
func foldWidth(word string) string {
	if isASCII(word) {
		return word
	}
	folded := width.Fold.String(word)
	if strings.ContainsAny(folded, "\u3099\u309a") {
		return norm.NFC.String(folded)
	}
	return folded
}

// bigrams makes a token of each two characters of Chinese, Japanese or Korean that stand side by side; one that stands alone stays.
func bigrams(tokens []Token) []Token {
	out := make([]Token, 0, len(tokens))
	var chars []Token // of a run, one character each
	position := 0
	flush := func() {
		for i := 0; i+1 < len(chars); i++ {
			pair := chars[i]
			pair.Term += chars[i+1].Term
			pair.End, pair.Position = chars[i+1].End, position
			out = append(out, pair)
			position++
		}
		if len(chars) == 1 {
			chars[0].Position = position
			out = append(out, chars[0])
			position++
		}
		chars = chars[:0]
	}
	for _, t := range tokens {
		r, _ := utf8.DecodeRuneInString(t.Term)
		if !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) && r != 'ー' {
			flush()
			t.Position = position
			out = append(out, t)
			position++
			continue
		}
		if len(chars) > 0 && chars[len(chars)-1].End != t.Start {
			flush()
		}
		whole := t.End-t.Start == len(t.Term)
		for i, n := 0, 0; i < len(t.Term); i += n {
			c := t
			_, n = utf8.DecodeRuneInString(t.Term[i:])
			if c.Term = t.Term[i : i+n]; whole {
				c.Start, c.End = t.Start+i, t.Start+i+n
			}
			chars = append(chars, c)
		}
	}
	flush()
	return out
}
