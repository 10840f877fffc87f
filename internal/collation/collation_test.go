package collation

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestCollations runs testdata/*.txt. "sort" has a collation in its first line and strings, quoted where needed, in the
// second: the answer has them in order, equal ones joined by "=". "parse" has a document a line and answers with the full
// form or the error.
func TestCollations(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, c *datadriven.TestData) string {
			lines := strings.Split(c.Input, "\n")
			var out strings.Builder
			if c.Cmd == "parse" {
				for _, line := range lines {
					col, err := Parse(bson.MustDoc(line))
					if err != nil {
						fmt.Fprintf(&out, "%d %s\n", mongoerr.From(err).Code, err)
						continue
					}
					out.WriteString(col.Doc().Text() + "\n")
				}
				return out.String()
			}
			col, err := Parse(bson.MustDoc(lines[0]))
			if err != nil {
				return err.Error()
			}
			var words []string
			for _, w := range strings.Fields(lines[1]) {
				if w[0] == '"' {
					if w, err = strconv.Unquote(w); err != nil {
						t.Fatal(err)
					}
				}
				words = append(words, w)
			}
			checkAgreement(t, col, words)
			slices.SortStableFunc(words, col.CompareString)
			for i, w := range words {
				if i > 0 {
					out.WriteString([]string{" = ", " < "}[min(1, -col.CompareString(words[i-1], w))])
				}
				if strings.ContainsFunc(w, func(r rune) bool { return !strconv.IsGraphic(r) || r == ' ' }) || w == "" {
					w = strconv.QuoteToASCII(w)
				}
				out.WriteString(w)
			}
			return out.String() + "\n"
		})
	})
}

// checkAgreement wants comparison, with its short cut for ASCII, and keys to say the same.
func checkAgreement(t *testing.T, c *Collation, words []string) {
	for _, a := range words {
		for _, b := range words {
			got, want := c.CompareString(a, b), bytes.Compare([]byte(c.Key(a)), []byte(c.Key(b)))
			if got != want {
				t.Errorf("%v: CompareString(%q, %q) = %d, keys say %d", c.Spec, a, b, got, want)
			}
		}
	}
}

// TestASCIIShortCut compares all pairs of short strings of some characters with and without the short cut.
func TestASCIIShortCut(t *testing.T) {
	var words []string
	for _, a := range "aAbzZ09 -_.$" {
		words = append(words, string(a))
		for _, b := range "aBcC1 h" {
			words = append(words, string(a)+string(b))
		}
	}
	for _, doc := range []string{`{ locale: "en" }`, `{ locale: "en", strength: 1 }`, `{ locale: "en", strength: 1, caseLevel: true }`, `{ locale: "de", caseFirst: "upper" }`,
		`{ locale: "sv", strength: 2 }`, `{ locale: "fi" }`, `{ locale: "es", strength: 5 }`, `{ locale: "fr", strength: 2, caseLevel: true, caseFirst: "upper" }`,
		`{ locale: "it" }`, `{ locale: "pt" }`, `{ locale: "nl" }`, `{ locale: "ru" }`, `{ locale: "uk" }`, `{ locale: "pl" }`, `{ locale: "ja", strength: 4 }`, `{ locale: "ko" }`, `{ locale: "el" }`, `{ locale: "he" }`} {
		c, err := Parse(bson.MustDoc(doc))
		if err != nil {
			t.Fatal(err)
		}
		if c.ascii == nil {
			t.Errorf("%s has no short cut", doc)
		}
		checkAgreement(t, c, words)
	}
}

func TestSimpleIsNil(t *testing.T) {
	if c, err := Parse(bson.MustDoc(`{ locale: "simple", strength: 1 }`)); c != nil || err != nil {
		t.Error(c, err)
	}
	if !Equal(nil, nil) || Equal(nil, &Collation{}) {
		t.Error("equality of simple")
	}
}

func BenchmarkCompareASCII(b *testing.B) {
	c, _ := Parse(bson.MustDoc(`{ locale: "en", strength: 2 }`))
	b.ReportAllocs()
	for b.Loop() {
		c.CompareString("some words here", "some Words there")
	}
}

func BenchmarkCompareKeys(b *testing.B) {
	c, _ := Parse(bson.MustDoc(`{ locale: "en", strength: 2 }`))
	b.ReportAllocs()
	for b.Loop() {
		c.CompareString("some wörds here", "some Wörds there")
	}
}

// TestParseKeepsNothing: a collation outlives the message that it came in, whose memory the next message takes.
func TestParseKeepsNothing(t *testing.T) {
	doc := bson.MustDoc(`{locale: "sv", caseFirst: "upper", alternate: "shifted", maxVariable: "space"}`)
	c, err := Parse(doc)
	if err != nil {
		t.Fatal(err)
	}
	want := c.Spec
	want.Locale, want.CaseFirst, want.Alternate, want.MaxVariable = "sv", "upper", "shifted", "space"
	for i := range doc {
		doc[i] = '_'
	}
	if c.Spec != want {
		t.Errorf("it is %+v, not %+v", c.Spec, want)
	}
}
