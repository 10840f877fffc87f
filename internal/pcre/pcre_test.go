package pcre

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestMatches runs testdata/*.txt: "match" has the pattern (and options behind a blank) as a quoted Go string in the first
// line and quoted subjects below; the answer says for each whether it matches and where, with the groups, and which engine
// was used.
func TestMatches(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, c *datadriven.TestData) string {
			lines := strings.Split(c.Input, "\n")
			pattern, options := lines[0], ""
			if i := strings.LastIndexByte(pattern, '/'); i > 0 {
				pattern, options = pattern[1:i], pattern[i+1:]
			}
			r, err := Compile(pattern, options)
			if err != nil {
				return fmt.Sprintf("%d %s\n", mongoerr.From(err).Code, err)
			}
			var out strings.Builder
			engine := "RE2"
			if r.re2 == nil {
				engine = "backtracking"
			}
			if r.kind != general {
				engine = "plain"
			}
			out.WriteString(engine)
			if p, exact := r.Prefix(); p != "" {
				fmt.Fprintf(&out, ", prefix %q", p)
				if exact {
					out.WriteString(" is all")
				}
			}
			out.WriteString("\n")
			for _, line := range lines[1:] {
				s, err := strconv.Unquote(line)
				if err != nil {
					t.Fatal(line, err)
				}
				ok, err := r.Match(s, nil)
				if err != nil {
					fmt.Fprintf(&out, "%s: %v\n", line, err)
					continue
				}
				at, err := r.Find(s, nil)
				if err != nil {
					fmt.Fprintf(&out, "%s: %v, but %v\n", line, ok, err)
					continue
				}
				if ok != (at != nil) {
					t.Errorf("%s on %s: Match says %v, Find %v", lines[0], line, ok, at)
				}
				if back, err := r.back(); err == nil {
					if again, err := back.MatchString(s); err == nil && again != ok {
						t.Errorf("%s on %s: %v, but the backtracking engine says %v", lines[0], line, ok, again)
					}
				}
				fmt.Fprintf(&out, "%s: %v %v\n", line, ok, at)
			}
			return out.String()
		})
	})
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{`^a(b|c)*[^d-f\w]{2,3}?$`, `(?i)x(?<n>y)\k<n>`, `[[:alpha:]-\d]`, `\Qa.b\E++`, `(?(1)a|b)`, `a{1`, `(?#`, `\`} {
		f.Add(s, "imsx", "abc")
	}
	f.Fuzz(func(t *testing.T, pattern, options, subject string) {
		if len(pattern) > 100 || len(subject) > 100 {
			return
		}
		r, err := Compile(pattern, options)
		if err != nil {
			if c := mongoerr.From(err).Code; c == mongoerr.InternalError {
				t.Errorf("%q: %v", pattern, err)
			}
			return
		}
		if _, err := r.Match(subject, nil); err != nil && mongoerr.From(err).Code != 51156 {
			t.Errorf("%q on %q: %v", pattern, subject, err)
		}
	})
}
