package ebbtest_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sectionF is how many cases each part of section F has, and the numbers that it leaves out.
func sectionF() (ids []string) {
	for _, part := range []struct {
		letter string
		last   int
		gaps   []int
	}{
		{"V", 26, []int{11, 23}},
		{"C", 12, []int{6, 8}},
		{"M", 26, []int{24}},
		{"P", 18, []int{5, 15, 17}},
		{"R", 37, []int{10, 26, 31, 33}},
		{"Z", 32, []int{5, 13, 19, 21, 27, 30}},
	} {
		missing := map[int]bool{}
		for _, n := range part.gaps {
			missing[n] = true
		}
		for n := 1; n <= part.last; n++ {
			if !missing[n] {
				ids = append(ids, fmt.Sprintf("%s%02d", part.letter, n))
			}
		}
	}
	return ids
}

// TestCoverage: each id of section F has a case, or a reason why it has none.
func TestCoverage(t *testing.T) {
	left, tested := leftOut(t), testedIDs(t)
	known := map[string]bool{}
	for _, id := range sectionF() {
		known[id] = true
		switch {
		case tested[id] && left[id] != "":
			t.Errorf("%s has a case, and coverage.txt says why it has none", id)
		case !tested[id] && left[id] == "":
			t.Errorf("%s has no case, and coverage.txt does not say why", id)
		}
	}
	for id := range left {
		if !known[id] {
			t.Errorf("coverage.txt speaks of %s, which section F does not have", id)
		}
	}
	t.Logf("%d of %d cases are tested, %d are left out", len(known)-len(left), len(known), len(left))
}

func leftOut(t *testing.T) map[string]string {
	f, err := os.Open("coverage.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if id, why, ok := strings.Cut(lines.Text(), "  "); ok && !strings.HasPrefix(id, "#") {
			out[id] = why
		}
	}
	return out
}

// testedIDs are the ids at the heads of cases, and in the comments of Go tests.
func testedIDs(t *testing.T) map[string]bool {
	out := map[string]bool{}
	for pattern, id := range map[string]*regexp.Regexp{
		"testdata/*.txt":                 regexp.MustCompile(`(?m)^case ([VCMPRZ]\d\d)`),
		"../internal/ttl/testdata/*.txt": regexp.MustCompile(`(?m)^case ([VCMPRZ]\d\d)`),
		"*_test.go":                      regexp.MustCompile(`(?m)^// Test\w+ \(([VCMPRZ]\d\d(?:, [VCMPRZ]\d\d)*)\)`),
		"../internal/ttl/*_test.go":      regexp.MustCompile(`(?m)^// Test\w+ \(([VCMPRZ]\d\d(?:, [VCMPRZ]\d\d)*)\)`),
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no files %s: %v", pattern, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range id.FindAllStringSubmatch(string(text), -1) {
				for _, one := range strings.Split(found[1], ", ") {
					out[one] = true
				}
			}
		}
	}
	return out
}
