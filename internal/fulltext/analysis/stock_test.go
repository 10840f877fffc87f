package analysis

import (
	"fmt"
	"strings"
	"testing"
)

// shown writes tokens as "term@position[start:end]", and leaves out what is as expected: one token a position, and the text of the token where
// it says that it is, in lower case.
func shown(text string, tokens []Token) string {
	var out []string
	for i, t := range tokens {
		s := t.Term
		if t.Position != i {
			s += fmt.Sprintf("@%d", t.Position)
		}
		if lower(text[t.Start:t.End]) != lower(t.Term) {
			s += "[" + text[t.Start:t.End] + "]"
		}
		out = append(out, s)
	}
	return strings.Join(out, "|")
}

func TestStockAnalyzers(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"standard", "The QUICK brown-fox, 3.14 it's a_b x:y", "the|quick|brown|fox|3.14|it's|a_b|x:y"},
		{"standard", "", ""},
		{"standard", " !!! \\ \x00 --", ""},
		{"standard", "word\u200bjoined word\u00a0two word\\three a\u0001b", "word|joined|word|two|word|three|a|b"},
		{"standard", "word\ufeffjoined word\u200djoined", "word\ufeffjoined|word\u200djoined"},
		{"standard", "\ufeffwordjoined", "wordjoined"},
		{"standard", "日本語 ひらがな カタカナ 한국어", "日|本|語|ひ|ら|が|な|カタカナ|한국어"},
		{"standard", "สวัสดี ครับ", "สวัสดี|ครับ"},
		{"standard", "a😀😀b 🇩🇪🇫🇷 👩\u200d👩\u200d👧 #\ufe0f\u20e3 © ©\ufe0f 👍🏽", "a|😀|😀|b|🇩🇪|🇫🇷|👩\u200d👩\u200d👧|#\ufe0f\u20e3|©\ufe0f|👍🏽"},
		{"standard", "ΣΊΓΜΑΣ ДЕНЬ \U00010400 ﬁle STRAßE İI", "σίγμασ|день|\U00010428|ﬁle|straße|ii"},
		{"standard", "cafe\u0301 CAFÉ", "cafe\u0301|café"},
		{"standard", "one_ _two ___ don't. 'quoted' a.b. 1,000,5 a,b", "one_|_two|don't|quoted|a.b|1,000,5|a|b"},
		{"standard", strings.Repeat("a", 255) + " " + strings.Repeat("b", 256), strings.Repeat("a", 255) + "|" + strings.Repeat("b", 255) + "|b"},
		{"standard", strings.Repeat("é", 300), strings.Repeat("é", 255) + "|" + strings.Repeat("é", 45)},
		{"simple", "It's 3PM, Ünïcode—x", "it|s|pm|ünïcode|x"},
		{"whitespace", "It's 3PM,\u00a0x\u2003Y\tz", "It's|3PM,\u00a0x|Y|z"},
		{"keyword", " As it Is ", " As it Is "},
		{"keyword", "", ""},
	} {
		a, err := Stock("lucene." + c.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := shown(c.text, a.Tokens(nil, c.text)); got != c.want {
			t.Errorf("lucene.%s of %q:\ngot  %q\nwant %q", c.name, c.text, got, c.want)
		}
	}
}

func TestStockNames(t *testing.T) {
	if _, err := Stock("lucene.klingon"); err == nil || err.Error() != "references non-existent analyzers: lucene.klingon" {
		t.Errorf("an unknown name: %v", err)
	}
}

func TestAutocomplete(t *testing.T) {
	base, _ := Stock(Standard)
	for _, c := range []struct {
		a    Autocomplete
		text string
		want string
	}{
		{Autocomplete{Grams: EdgeGrams, Min: 2, Max: 4, Fold: true}, "Été à b", "et|ete|et|ete|ete |ete |et|ete|ete |ete |a|a |a b|b"},
		{Autocomplete{Grams: EdgeGrams, Min: 2, Max: 3}, "abcd", "ab|abc|abc"},
		{Autocomplete{Grams: RightEdgeGrams, Min: 2, Max: 3}, "ab cd", "ba|dc|dc |dc |dc"},
		{Autocomplete{Grams: AllGrams, Min: 2, Max: 3}, "abcd", "ab|abc|bc|bcd|cd|abc"},
		{Autocomplete{Grams: AllGrams, Min: 2, Max: 15}, "x", "x"},
	} {
		c.a.Base = base
		var terms []string
		for _, tok := range c.a.Tokens(nil, c.text) {
			terms = append(terms, tok.Term)
		}
		if got := strings.Join(terms, "|"); got != c.want {
			t.Errorf("%+v of %q:\ngot  %q\nwant %q", c.a, c.text, got, c.want)
		}
	}
	a := Autocomplete{Base: base, Grams: EdgeGrams, Min: 2, Max: 5, Fold: true}
	for _, c := range []struct {
		query      []string
		sequential bool
		want       string
	}{
		{[]string{"Café Olé"}, true, "cafe "},
		{[]string{"Café Olé", "café"}, false, "cafe|ole|cafe "},
	} {
		if got := strings.Join(a.QueryTokens(c.query, c.sequential), "|"); got != c.want {
			t.Errorf("%q: got %q, want %q", c.query, got, c.want)
		}
	}
	a.Grams = RightEdgeGrams
	if got := a.QueryTokens([]string{"abcdefg"}, true); len(got) != 1 || got[0] != "gfedc" {
		t.Errorf("from the right: %q", got)
	}
}
