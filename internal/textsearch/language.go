// Package textsearch is the language of text indexes: it parts texts into words, folds and stems them, weighs the words of
// a document, and reads what is searched for. It knows nothing of indexes, plans or collections.
package textsearch

import (
	"strings"
	"sync"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/turkish"
	"github.com/ebbdb/ebb/internal/textsearch/stopwords"
)

// Language is how the words of a language are told apart, which of them are too common to be searched, and what their
// stems are.
type Language struct {
	// Name is the language's name in English, or "none" for texts whose words stay as they are.
	Name string

	code    string
	stem    func(*snowballstem.Env) bool // nil where words are not stemmed
	stop    map[string]struct{}
	english bool // an apostrophe is part of a word
	turkish bool // I is ı in lower case
}

// languages are all languages by name and by code.
var languages = sync.OnceValue(func() map[string]*Language {
	all := map[string]*Language{}
	for _, l := range []Language{
		{Name: "none"},
		{Name: "danish", code: "da", stem: danish.Stem},
		{Name: "dutch", code: "nl", stem: dutch.Stem},
		{Name: "english", code: "en", stem: english.Stem, english: true},
		{Name: "finnish", code: "fi", stem: finnish.Stem},
		{Name: "french", code: "fr", stem: french.Stem},
		{Name: "german", code: "de", stem: german.Stem},
		{Name: "hungarian", code: "hu", stem: hungarian.Stem},
		{Name: "italian", code: "it", stem: italian.Stem},
		{Name: "norwegian", code: "nb", stem: norwegian.Stem},
		{Name: "portuguese", code: "pt", stem: portuguese.Stem},
		{Name: "romanian", code: "ro", stem: romanian.Stem},
		{Name: "russian", code: "ru", stem: russian.Stem},
		{Name: "spanish", code: "es", stem: spanish.Stem},
		{Name: "swedish", code: "sv", stem: swedish.Stem},
		{Name: "turkish", code: "tr", stem: turkish.Stem, turkish: true},
	} {
		all[l.Name] = &l
		if l.code != "" {
			l.stop = stopwords.Of(l.Name)
			all[l.code] = &l
		}
	}
	return all
})

// Find is the language with that name or two-letter code, in upper or lower case, or nil.
func Find(name string) *Language { return languages()[strings.ToLower(name)] }
