package update

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
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

// TestManyFields parses and applies a modifier of very many fields, which come in the worst order. Where each field looks at all others,
// the test runs into the time limit of the package.
func TestManyFields(t *testing.T) {
	const fields = 400_000
	b := bson.Build().Object("$set")
	for i := range fields {
		b.Int32(fmt.Sprintf("f%06d", fields-i), int32(i))
	}
	l := newLanguage()
	u, err := l.updates.Parse(b.End().Doc().Value(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := u.Apply(nil, bson.MustDoc(`{_id: 1}`), Args{Env: l.env})
	if err != nil || out.Count() != fields+1 || out.Lookup("f000001").Int32() != fields-1 {
		t.Error(out.Count(), err)
	}
}
