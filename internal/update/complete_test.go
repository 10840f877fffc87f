package update

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sections are the first words of the commands in testdata.
func sections(t *testing.T) map[string]int {
	t.Helper()
	out := map[string]int{}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no testdata", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for block := range strings.SplitSeq("\n"+string(text), "\n\n") {
			word, _, _ := strings.Cut(strings.TrimSpace(block), " ")
			out[word]++
		}
	}
	return out
}

func TestEveryOperatorHasCases(t *testing.T) {
	have := sections(t)
	names := []string{"$", "$[]", "$[id]", "replace", "upsert", "$project", "$replaceRoot", "$replaceWith"}
	for _, op := range Operators() {
		names = append(names, op.Name)
		if op.Doc == "" || op.Since == "" {
			t.Errorf("%s: the row says nothing of the operator", op.Name)
		}
	}
	for _, name := range names {
		if have[name] == 0 {
			t.Errorf("%s: no cases in testdata", name)
		}
	}
}
