// Package mapping has the definitions of search indexes of the type "search": as what the paths of a collection's documents are indexed.
package mapping

import "github.com/ebbdb/ebb/internal/fulltext/analysis"

// Definition is what a search index is defined as.
type Definition struct {
	// Root are the fields of documents.
	Root *Document
	// Stored are the fields that returnStoredSource gives, nil where the index stores none.
	Stored *Stored
	// Synonyms are the synonym mappings, by their names.
	Synonyms map[string]Synonyms
}

// Synonyms are those that the documents of a collection have.
type Synonyms struct {
	Analyzer   *analysis.Analyzer
	Collection string
}

// Stored are fields of a document.
type Stored struct {
	// Include says that the paths are those that are stored, not those that are left out.
	Include bool
	Paths   []string

	tree pathTree // of Paths, where Parse has made it
}

// Document is how the fields of a document are indexed.
type Document struct {
	// Dynamic is as what a field is indexed that Fields has not; nil: not at all.
	Dynamic *Field
	Fields  map[string]*Field
}

// Field is as what a path is indexed: as several types, each of which is nil or false where it is none of them.
type Field struct {
	String       *String
	Token        *Token
	Autocomplete *Autocomplete
	Number       *Number
	Geo          *Geo
	Vector       *Vector
	Document     *Document
	Embedded     *Embedded

	Date, Boolean, ObjectID, UUID, Null bool
	StringFacet, NumberFacet, DateFacet bool
	// Sortable is one of the types sortableDateBetaV1 and sortableNumberBetaV1: values are sorted by, and not searched for.
	// sortableStringBetaV1 is a Token.
	Sortable bool
}

// String is a path whose strings are analyzed.
type String struct {
	Analyzer, SearchAnalyzer *analysis.Analyzer
	// Multi are other analyses of the same strings, by their names.
	Multi map[string]*String
	// Similarity is how scores are computed.
	Similarity Similarity
	// NoNorms says that scores do not look at how long a text is.
	NoNorms bool
	// NoPositions says that indexOptions leave positions out, so that there are no phrases.
	NoPositions bool
	// NoFrequencies says that they leave out how often a term is there, too.
	NoFrequencies bool
	// IgnoreAbove is how many characters a string has at most to be indexed, 0: any number.
	IgnoreAbove int
}

// Similarity is how a score is computed of how often a term is there.
type Similarity int

// The similarities.
const (
	BM25 Similarity = iota
	BooleanSimilarity
	StableTfl
)

// Token is a path whose strings are compared whole.
type Token struct {
	// Lowercase is the normalizer "lowercase".
	Lowercase bool
}

// Autocomplete is a path whose strings are found by parts of them.
type Autocomplete struct {
	analysis.Autocomplete
	Similarity Similarity
}

// Number is a path whose numbers are indexed.
type Number struct {
	// Int64 is the representation "int64": what is behind the point is cut.
	Int64 bool
	// NoIntegers and NoDoubles leave numbers of those types out.
	NoIntegers, NoDoubles bool
}

// Geo is a path with GeoJSON.
type Geo struct {
	// Shapes says that other shapes than points are indexed, which geoShape needs.
	Shapes bool
}

// Vector is a path with vectors.
type Vector struct {
	// Knn is the older type knnVector.
	Knn        bool
	Dimensions int
	Similarity string
}

// Embedded is an array whose documents are indexed each for itself.
type Embedded struct {
	Document
	Stored *Stored
}
