package analysis

import (
	"slices"
	"testing"
)

// FuzzSieve: what a sieve finds in a text are the tokens that the text has.
func FuzzSieve(f *testing.F) {
	for _, text := range []string{"the quick brown fox", "U.S.A. can't 3.14 1,000 a_b __ _x x_ C++ c# foo:bar", "Été à l'œuvre, naïve", "日本語 テキスト", "😀 flag 🇩🇪 1️⃣", "a\u0301b x\u200dy \ufeffz",
		"QUICK Quick", "a'b' 'c' d.e. .f 1.2.3 4,5 6;7 8:9", "สวัสดี ชาวโลก", "x\u00a0y\u2000z\u3000w\u00ad.", "\x01a\x1fb\\c"} {
		f.Add(text, "quick")
	}
	a, err := Stock(Standard)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text, term string) {
		tokens := a.Tokens(nil, text)
		for _, wanted := range []string{lower(term), termOf(tokens, 0), termOf(tokens, len(tokens)/2), termOf(tokens, len(tokens)-1)} {
			var want, got []int
			for _, tok := range tokens {
				if tok.Term == wanted {
					want = append(want, tok.Position)
				}
			}
			s := NewSieve(slices.Values([]string{wanted}))
			n := a.Sift(s, text, func(found string, at int) {
				if found == wanted {
					got = append(got, at)
				}
				if at >= len(tokens) || tokens[at].Term != found {
					t.Fatalf("%q: %q is not the token %d", text, found, at)
				}
			})
			all := 0
			a.Sift(nil, text, func(found string, at int) {
				if at != all || tokens[at].Term != found {
					t.Fatalf("%q: %q is not the token %d", text, found, at)
				}
				all++
			})
			if all != n || n != len(tokens) || !slices.Equal(got, want) {
				t.Fatalf("%q in %q: %d tokens, at %v; not %d, at %v", wanted, text, n, got, len(tokens), want)
			}
		}
	})
}

func termOf(tokens []Token, i int) string {
	if i < 0 || i >= len(tokens) {
		return ""
	}
	return tokens[i].Term
}
