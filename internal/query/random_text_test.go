package query

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/textsearch"
)

// TestRandomTexts searches random texts through text indexes of all kinds, while documents come, change and go: what is
// found, and what it scores, is what looking at all documents and adding up the scores of their words gives.
func TestRandomTexts(t *testing.T) {
	tryWorlds(t, world{}, (*tried).tryText)
}

// text is some words of few, in one of a few forms.
func (w world) text() string {
	var words []string
	for range w.r.IntN(6) {
		words = append(words, w.pick("coffee", "Coffees", "tea", "TEA", "the", "running", "run", "café", "cafe", "corriendo", "l'eau", "brown-fox", "brown fox", "数据"))
	}
	return strings.Join(words, w.pick(" ", " ", ", ", "\n"))
}

func (w world) textValue() string {
	switch w.r.IntN(8) {
	case 0:
		return w.pick("5", "null", "[]", "{}", `["tea", 5, ["coffee"], {a: "tea", b: "run"}]`)
	case 1:
		return fmt.Sprintf("[%q, %q]", w.text(), w.text())
	case 2:
		return fmt.Sprintf("{a: %q, language: %q}", w.text(), w.pick("english", "es", "none", "FR"))
	}
	return fmt.Sprintf("%q", w.text())
}

func (w world) textDocument(id int) string {
	fields := []string{fmt.Sprintf("_id: %d, k: %s", id, w.pick("1", "1", "2", "null"))}
	for _, f := range []string{"a", "b", "n"} {
		if w.chance(70) {
			fields = append(fields, f+": "+w.textValue())
		}
	}
	if w.chance(15) {
		fields = append(fields, "language: "+w.pick("'es'", "'none'", "'french'"))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func (w world) textIndex() string {
	key := w.pick(`{a: "text"}`, `{a: "text", b: "text"}`, `{"$**": "text"}`, `{k: 1, a: "text", "n.a": "text"}`, `{b: "text", k: -1}`, `{"n.a": "text", n: "text"}`)
	return fmt.Sprintf(`{name: "t", key: %s%s}`, key, w.pick("", "", ", weights: {b: 10}", ", default_language: 'none'", ", default_language: 'es'", ", partialFilterExpression: {k: 1}"))
}

func (w world) search() string {
	var parts []string
	for range 1 + w.r.IntN(4) {
		parts = append(parts, w.pick("", "", "", "-", "- ")+w.pick("coffee", "teas", "the", "runs", "CAFÉ", "brown", "数据", `"brown fox"`, `"Coffee"`, `"run`, "correr"))
	}
	s := fmt.Sprintf("$search: %q", strings.Join(parts, w.pick(" ", " ", "")))
	if w.chance(20) {
		s += ", $language: " + w.pick("'en'", "'none'", "'es'")
	}
	return s + w.pick("", "", ", $caseSensitive: true", ", $diacriticSensitive: true", ", $caseSensitive: true, $diacriticSensitive: true")
}

// tryText makes a collection with a text index at the first search, changes a document, and searches.
func (x *tried) tryText() bool {
	ctx, w := context.Background(), x.world
	if x.ns.Coll != "texts" {
		x.beginTexts()
	}
	doc := w.textDocument(w.r.IntN(20))
	fmt.Fprintf(&x.log, "%s\n", doc)
	one := bson.Build().Value("_id", bson.MustDoc(doc).Lookup("_id")).Doc()
	_, err := x.engine.Update(ctx, Update{NS: x.ns, Filter: one, Change: bson.MustDoc(doc).Value(), Upsert: true}, x.call())
	x.must(err)
	if w.chance(10) {
		_, _, err = x.engine.Delete(ctx, Delete{NS: x.ns, Filter: one}, x.call())
		x.must(err)
	}
	if w.chance(5) {
		v, err := x.engine.Store.Validate(ctx, x.ns, nil)
		x.must(err)
		if !v.Valid {
			x.t.Errorf("seed %d: %+v\n%s", x.seed, v, x.log.String())
		}
	}
	filter := fmt.Sprintf("{$text: {%s}, k: 1}", w.search())
	if got, want := x.found(filter), x.expected(filter); got != want {
		x.t.Errorf("seed %d: %s\n%s\n%s finds\n%s, not\n%s", x.seed, x.log.String(), x.coll.Index("t").Spec, filter, got, want)
	}
	return true
}

// beginTexts makes the collection, the index between the documents.
func (x *tried) beginTexts() {
	x.ns.Coll = "texts"
	x.log.Reset()
	for i := range 20 {
		if i == 10 {
			x.indexOf(x.world.textIndex())
		}
		doc := x.world.textDocument(i)
		fmt.Fprintf(&x.log, "%s\n", doc)
		_, refused, err := x.engine.Insert(context.Background(), x.ns, []bson.Doc{bson.MustDoc(doc)}, true, x.call())
		x.must(err)
		if len(refused) > 0 {
			x.must(refused[0].Err)
		}
	}
	if x.coll = x.engine.lookup(x.ns, &Call{}); x.coll.Index("t") == nil {
		x.t.Fatalf("seed %d: no index\n%s", x.seed, x.log.String())
	}
}

// found is what a find of filter gives, with scores, in the order of the _ids.
func (x *tried) found(filter string) string {
	ctx := context.Background()
	sorted := bson.MustDoc(`{s: {$meta: "textScore"}}`)
	f := Find{NS: x.ns, Filter: bson.MustDoc(filter), Projection: bson.MustDoc(`{_id: 1, s: {$meta: "textScore"}}`)}
	if x.world.chance(50) {
		f.Sort = sorted
	}
	r, err := x.engine.Find(ctx, f, x.call())
	x.must(err)
	var docs []bson.Doc
	before := float64(textsearch.MaxScore)
	x.must(r.All(ctx, func(d bson.Doc) error {
		if score := d.Lookup("s").AsDouble(); f.Sort != nil && score > before {
			x.t.Errorf("seed %d: %s: %v comes behind %v", x.seed, filter, score, before)
		} else {
			before = score
		}
		docs = append(docs, d.Clone())
		if x.world.chance(20) {
			r.Park()
		}
		return nil
	}))
	n, err := x.engine.Count(ctx, Count{NS: x.ns, Filter: f.Filter}, x.call())
	x.must(err)
	if int(n) != len(docs) {
		x.t.Errorf("seed %d: %s counts %d and finds %d", x.seed, filter, n, len(docs))
	}
	return inOrder(docs)
}

// expected is the same from all documents, one by one.
func (x *tried) expected(filter string) string {
	ctx := context.Background()
	d := x.coll.Index("t")
	f, err := x.engine.filters.Parse(bson.MustDoc(filter), match.Options{Allow: match.AllowAll})
	x.must(err)
	q, err := f.Text().Bind(d.Text())
	x.must(err)
	r, err := x.engine.Find(ctx, Find{NS: x.ns}, x.call())
	x.must(err)
	var docs []bson.Doc
	x.must(r.All(ctx, func(doc bson.Doc) error {
		if ok, err := f.Match(nil, doc); !ok || err != nil {
			return err
		}
		terms, err := d.Text().Terms(nil, doc, math.MaxInt)
		score := 0.0
		for _, t := range terms {
			if slices.Contains(q.Terms, t.Word) {
				score += t.Score
			}
		}
		docs = append(docs, bson.Build().Value("_id", doc.Lookup("_id")).Double("s", score).Doc())
		return err
	}))
	return inOrder(docs)
}

func inOrder(docs []bson.Doc) string {
	slices.SortFunc(docs, func(a, b bson.Doc) int {
		return cmp.Or(bson.Compare(a.Lookup("_id"), b.Lookup("_id")), bson.CompareDocs(a, b, nil))
	})
	var b strings.Builder
	for _, d := range docs {
		b.WriteString(d.String() + " ")
	}
	return b.String()
}
