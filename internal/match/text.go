package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/textsearch"
)

// Text is a search of the collection's text index, which alone can answer it. It matches nothing before it is bound to one.
type Text struct {
	Search             string
	Language           string // "" for the index's default
	CaseSensitive      bool
	DiacriticSensitive bool

	spec  *textsearch.Spec
	query *textsearch.Query
}

// Bind reads the search in the language of a text index, by whose spec documents are matched from now on. It is for the
// one that plans a filter, before anybody else uses it.
func (n *Text) Bind(spec *textsearch.Spec) (*textsearch.Query, error) {
	language := spec.Default
	if n.Language != "" {
		language = textsearch.Find(n.Language)
	}
	var form textsearch.Form
	if n.CaseSensitive {
		form |= textsearch.KeepCase
	}
	if n.DiacriticSensitive {
		form |= textsearch.KeepDiacritics
	}
	q, err := textsearch.ParseQuery(n.Search, language, form)
	if err != nil {
		return nil, err
	}
	n.Language, n.spec, n.query = language.Name, spec, q
	return q, nil
}

// Text is the filter's search of a text index, nil when there is none.
func (f *Filter) Text() *Text {
	if f == nil {
		return nil
	}
	return TextIn(f.Root)
}

// TextIn is the search of a text index at or below n, where the parser lets it stand, nil when there is none.
func TextIn(n Node) *Text {
	switch n := n.(type) {
	case *Text:
		return n
	case *And, *Or:
		for _, c := range Children(n) {
			if t := TextIn(c); t != nil {
				return t
			}
		}
	}
	return nil
}

func (n *Text) match(c run, _ subject) (bool, error) {
	if n.spec == nil {
		return false, mongoerr.New(mongoerr.IndexNotFound, "text index required for $text query")
	}
	return n.spec.Finds(n.query, c.root)
}

func (n *Text) test(c run, _ bson.Value) (bool, error) { return n.match(c, subject{}) }

func parseText(p *parsing, arg bson.Value) (Node, error) {
	switch {
	case p.level != topLevel:
		return nil, badValue("$text can only be applied to the top-level document")
	case p.Allow&AllowText == 0:
		return nil, badValue("$text is not allowed in this context")
	case arg.Type != bson.TypeObject:
		return nil, badValue("$text expects an object")
	}
	n, d := &Text{}, arg.Doc()
	if d.Lookup("$search").IsMissing() {
		return nil, mongoerr.New(mongoerr.NoSuchKey, "Missing expected field \"$search\"")
	}
	for it := d.Iter(); it.Next(); {
		v, want := it.Value(), bson.TypeString
		switch it.Key() {
		case "$search", "$language":
		case "$caseSensitive", "$diacriticSensitive":
			want = bson.TypeBool
		default:
			return nil, badValue("extra fields in $text")
		}
		if v.Type != want {
			return nil, mongoerr.New(mongoerr.TypeMismatch, "\"%s\" had the wrong type. Expected %s, found %s", it.Key(), want, v.Type)
		}
		switch it.Key() {
		case "$search":
			n.Search = v.Str()
		case "$language":
			n.Language = v.Str()
		case "$caseSensitive":
			n.CaseSensitive = v.Bool()
		case "$diacriticSensitive":
			n.DiacriticSensitive = v.Bool()
		}
	}
	if n.Language != "" && textsearch.Find(n.Language) == nil {
		return nil, badValue("unsupported language: \"%s\" for text index version 3", n.Language)
	}
	return n, nil
}
