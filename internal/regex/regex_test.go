package regex

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestFindAll reads cases of testdata: the pattern and subject are quoted lines, the answer lists the matches.
func TestFindAll(t *testing.T) {
	datadriven.RunTest(t, "testdata/find.txt", func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		for _, line := range strings.Split(d.Input, "\n") {
			var subject string
			var pattern, options string
			if _, err := fmt.Sscanf(line, "%q %q", &pattern, &subject); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			d.MaybeScanArgs(t, "options", &options)
			re, err := Compile(pattern, options)
			if err != nil {
				fmt.Fprintln(&out, "error")
				continue
			}
			sep := ""
			err = re.FindAll(subject, func(loc []int) bool {
				fmt.Fprintf(&out, "%s%d", sep, loc[0])
				for i := 0; i < len(loc); i += 2 {
					if loc[i] < 0 {
						out.WriteString(" -")
					} else {
						fmt.Fprintf(&out, " %q", subject[loc[i]:loc[i+1]])
					}
				}
				sep = "; "
				return true
			})
			ok, _ := re.Match(subject)
			if ok != (sep != "") {
				t.Errorf("%s: Match says %v", line, ok)
			}
			if err != nil {
				fmt.Fprint(&out, err)
			}
			if sep == "" {
				out.WriteString("none")
			}
			out.WriteString("\n")
		}
		return out.String()
	})
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{`a+`, `[[:alpha:]]$`, `(?<=a)b\1`, `(*UCP)\w`, `\Qa`, `[]a]`, `[^]]`} {
		f.Add(s, "i", "aab\n")
	}
	f.Fuzz(func(t *testing.T, pattern, options, s string) {
		re, err := Compile(pattern, options)
		if err != nil || len(s) > 100 || len(pattern) > 100 {
			return
		}
		n := 0
		re.FindAll(s, func(loc []int) bool {
			n++
			return n < 200
		})
		if n >= 200 {
			t.Fatalf("%q on %q has too many matches", pattern, s)
		}
	})
}
