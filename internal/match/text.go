package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/textsearch"
)

// Text is a search of the collection's text index, which alone can answer it.
type Text struct {
	Search             string
	Language           string // "" for the index's default
	CaseSensitive      bool
	DiacriticSensitive bool
}

func (n *Text) match(run, subject) (bool, error) {
	return false, mongoerr.New(mongoerr.IndexNotFound, "text index required for $text query")
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
