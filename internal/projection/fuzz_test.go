package projection

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

// FuzzApply holds that any projection of any document fails with one of MongoDB's errors or gives valid BSON.
func FuzzApply(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if d, err := bson.ParseDoc(strings.TrimSpace(line)); err == nil {
				f.Add([]byte(d), []byte(bson.MustDoc(`{_id: 1, a: [{b: 1, x: 2}, 5, [1]], b: {c: [1]}, k: 7}`)), byte(Find), int16(0))
			}
		}
	}
	l := newLanguage()
	f.Fuzz(func(t *testing.T, spec, doc []byte, mode byte, position int16) {
		if bson.Validate(spec, 50) != nil || bson.Validate(doc, 50) != nil {
			return
		}
		p, err := l.projections.Parse(spec, Options{Mode: Mode(mode % 3), Exprs: l.exprs, Filter: bson.EmptyDoc})
		if err != nil {
			known(t, err)
			return
		}
		p.Dependencies()
		out, err := p.Apply(nil, doc, l.env, &match.Details{Position: int(position)})
		if err != nil {
			known(t, err)
			return
		}
		if err := bson.Validate(out, bson.MaxDepth+50); err != nil {
			t.Errorf("%v\nprojection %s\nof %s", err, p.Text(), bson.Doc(doc).Text())
		}
	})
}

func known(t *testing.T, err error) {
	var e *mongoerr.Error
	if !errors.As(err, &e) {
		t.Errorf("not an error of MongoDB's: %v", err)
	}
}
