package update

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// FuzzApply holds that any update of any document fails with one of MongoDB's errors or gives valid BSON.
func FuzzApply(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		addSeeds(f, string(text))
	}
	l := newLanguage()
	f.Fuzz(func(t *testing.T, update, doc, filter []byte, position int16, insert bool) {
		if bson.Validate(update, 50) != nil || bson.Validate(doc, 50) != nil || bson.Validate(filter, 50) != nil {
			return
		}
		o := Options{Exprs: l.exprs}
		if !bson.Doc(filter).IsEmpty() {
			o.ArrayFilters = []bson.Value{bson.Doc(filter).Value()}
		}
		u, err := l.updates.Parse(bson.Doc(update).Lookup("u"), o)
		if err != nil {
			known(t, err)
			return
		}
		out, changed, err := u.Apply(nil, doc, Args{Env: l.env, Details: &match.Details{Position: int(position)}, Insert: insert})
		if err != nil {
			known(t, err)
			return
		}
		if err := bson.Validate(out, bson.MaxDepth+1); err != nil {
			t.Errorf("%v\nupdate %s\nof %s", err, u.Text(), bson.Doc(doc).Text())
		}
		if !changed && !insert && string(out) != string(doc) {
			t.Errorf("unchanged, but differs\nupdate %s\nof %s", u.Text(), bson.Doc(doc).Text())
		}
	})
}

func known(t *testing.T, err error) {
	var e *mongoerr.Error
	if !errors.As(err, &e) {
		t.Errorf("not an error of MongoDB's: %v", err)
	}
}

func addSeeds(f *testing.F, text string) {
	for block := range strings.SplitSeq(text, "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		if len(lines) < 3 {
			continue
		}
		u, err := bson.Parse(lines[1])
		doc, err2 := bson.ParseDoc(lines[2])
		if err == nil && err2 == nil {
			f.Add([]byte(bson.Build().Value("u", u).Doc()), []byte(doc), []byte(bson.EmptyDoc), int16(-1), false)
		}
	}
}
