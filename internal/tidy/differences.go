package tidy

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

const differencesPage = "docs/differences.md"

// differences reads docs/differences.md: headings "## <number>. <title>", whose numbers rise (those of what was
// mended are gone), and in each section at least one line
//
//	Test: `internal/ttl/TestHidden`, `internal/ttl/testdata/visibility.txt#Z18`
//
// A reference is a folder and a Go test in it, or a file and a word in it that names a test: a Test function, a case of a file of cases
// that a test reads, or what a script calls a test.
func differences(t *Tree) []Finding {
	page, err := fs.ReadFile(t.Root, differencesPage)
	if errors.Is(err, fs.ErrNotExist) {
		return []Finding{{Path: differencesPage, Text: "is missing: each known difference from MongoDB has a number there"}}
	}
	if err != nil {
		return []Finding{{Path: differencesPage, Text: err.Error()}}
	}

	heading := regexp.MustCompile(`^## (\d+)\. \S`)
	reference := regexp.MustCompile("`([^`]+)`")
	var out []Finding
	count, start, tested := 0, 0, true
	close := func() {
		if !tested {
			out = append(out, Finding{differencesPage, start, fmt.Sprintf("difference %d names no test: add a line \"Test: `folder/TestName`\" or \"Test: `file#word`\"", count)})
		}
	}
	for i, line := range strings.Split(string(page), "\n") {
		if found := heading.FindStringSubmatch(line); found != nil {
			close()
			n, _ := strconv.Atoi(found[1])
			if n <= count {
				out = append(out, Finding{differencesPage, i + 1, fmt.Sprintf("difference %d stands behind %d: a number is given once, and rises", n, count)})
			}
			count, start, tested = n, i+1, false
		}
		rest, ok := strings.CutPrefix(line, "Test:")
		if !ok {
			continue
		}
		for _, ref := range reference.FindAllStringSubmatch(rest, -1) {
			tested = true
			if missing := unresolved(t, ref[1]); missing != "" {
				out = append(out, Finding{differencesPage, i + 1, missing})
			}
		}
	}
	close()
	if count == 0 {
		out = append(out, Finding{Path: differencesPage, Text: "has no numbered difference (\"## 1. …\"): was the form changed?"})
	}
	return out
}

// unresolved says what is missing of a reference to a test, or nothing.
func unresolved(t *Tree, ref string) string {
	if file, word, ok := strings.Cut(ref, "#"); ok {
		text, err := fs.ReadFile(t.Root, path.Clean(file))
		if err != nil {
			return "no such file: " + file
		}
		if !regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(word) + `($|\W)`).Match(text) {
			return fmt.Sprintf("%s does not hold %q", file, word)
		}
		return unproven(t, path.Clean(file), word, string(text))
	}
	if dir, test := path.Split(ref); hasTest(t, dir, test, "") {
		return ""
	}
	return "no such test: " + ref
}
