package textsearch

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Wildcard in the weights of an index stands for every text of a document.
const Wildcard = "$**"

// Spec is which texts of a document are searched, how much each counts, and what language they are in. It may be used by
// many goroutines at once.
type Spec struct {
	// Default is the language of texts that do not tell theirs.
	Default *Language

	override string
	weights  []weight // by path
	wildcard bool
	scratch  sync.Pool // of *scratch
}

type weight struct {
	path  string
	value float64
}

// NewSpec reads weights, field by field. Documents tell their language in the field override.
func NewSpec(weights bson.Doc, fallback *Language, override string) *Spec {
	s := &Spec{Default: fallback, override: override}
	for it := weights.Iter(); it.Next(); {
		if it.Key() == Wildcard {
			s.wildcard = true
			continue
		}
		s.weights = append(s.weights, weight{strings.Clone(it.Key()), it.Value().AsDouble()})
	}
	slices.SortFunc(s.weights, func(a, b weight) int { return strings.Compare(a.path, b.path) })
	s.scratch.New = func() any { return &scratch{} }
	return s
}

// text is one text of a document.
type text struct {
	string
	language *Language
	weight   float64
}

// walk is a walk through the texts of one document.
type walk struct {
	*Spec
	path []byte
	// visit says whether the walk goes on.
	visit func(text) bool
}

// each calls visit for the texts of doc that count, in their order, until it says no.
func (s *Spec) each(doc bson.Doc, visit func(text) bool) error {
	w := walk{Spec: s, visit: visit}
	_, err := w.document(doc, s.Default)
	return err
}

// document walks through a document, whose texts may be in another language than those around it.
func (w *walk) document(doc bson.Doc, l *Language) (more bool, err error) {
	if l, err = w.language(doc, l); err != nil {
		return false, err
	}
	outer := len(w.path)
	for it := doc.Iter(); it.Next(); {
		if w.wildcard && it.Key() == w.override {
			continue
		}
		w.path = w.path[:outer]
		if outer > 0 {
			w.path = append(w.path, '.')
		}
		w.path = append(w.path, it.Key()...)
		if more, err := w.value(it.Value(), l, false); !more || err != nil {
			return false, err
		}
	}
	w.path = w.path[:outer]
	return true, nil
}

func (w *walk) language(doc bson.Doc, around *Language) (*Language, error) {
	v := doc.Lookup(w.override)
	if v.IsMissing() {
		return around, nil
	}
	if v.Type != bson.TypeString {
		return nil, mongoerr.New(17261, "found language override field in document with non-string type")
	}
	l := Find(v.Str())
	if l == nil {
		return nil, mongoerr.New(17262, "language override unsupported: %s", v.Str())
	}
	return l, nil
}

// value takes v, which stands at the path, if that has a weight or leads to one that has.
func (w *walk) value(v bson.Value, l *Language, inArray bool) (more bool, err error) {
	switch v.Type {
	case bson.TypeString:
		weight, exact := w.weight(v.Type)
		if !exact && !w.wildcard {
			return true, nil
		}
		if !utf8.ValidString(v.Str()) {
			return false, errUTF8()
		}
		return w.visit(text{v.Str(), l, weight}), nil
	case bson.TypeObject:
		if w.wildcard || w.leads() {
			return w.document(v.Doc(), l)
		}
	case bson.TypeArray:
		if _, exact := w.weight(v.Type); w.wildcard || !inArray && (exact || w.leads()) {
			return w.array(v.Doc(), l)
		}
	}
	return true, nil
}

func (w *walk) array(array bson.Doc, l *Language) (more bool, err error) {
	outer := len(w.path)
	for it := array.Iter(); it.Next(); {
		w.path = w.path[:outer]
		if more, err := w.value(it.Value(), l, true); !more || err != nil {
			return false, err
		}
	}
	w.path = w.path[:outer]
	return true, nil
}

// weight is that of the path. Beside a wildcard a path without one has, as in MongoDB, that of the next in order.
func (w *walk) weight(t bson.Type) (value float64, exact bool) {
	i, exact := slices.BinarySearchFunc(w.weights, w.path, func(have weight, path []byte) int {
		return strings.Compare(have.path, string(path))
	})
	if i == len(w.weights) {
		return 1, false
	}
	return w.weights[i].value, exact
}

// leads says whether a path with a weight goes on from this one.
func (w *walk) leads() bool {
	at := len(w.path)
	w.path = append(w.path, '.')
	i, _ := slices.BinarySearchFunc(w.weights, w.path, func(have weight, path []byte) int {
		return strings.Compare(have.path, string(path))
	})
	leads := i < len(w.weights) && strings.HasPrefix(w.weights[i].path, string(w.path))
	w.path = w.path[:at]
	return leads
}

func errUTF8() error { return mongoerr.New(28755, "text contains invalid UTF-8") }
