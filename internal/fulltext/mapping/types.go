package mapping

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/fulltext/analysis"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// maxDimensions is how many numbers a vector has at most.
const maxDimensions = 8192

var typeNames = []string{
	"autoEmbedVector", "autocomplete", "boolean", "date", "dateFacet", "document", "embeddedDocuments", "geo", "knnVector", "number", "numberFacet",
	"objectId", "sortableDateBetaV1", "sortableNumberBetaV1", "sortableStringBetaV1", "string", "stringFacet", "token", "uuid", "vector",
}

// addType reads one type of a field.
func (p *parser) addType(f *Field, kind string, r *spec.Reader, at place) error {
	f.Null = true // any field of an index says that it is null
	var err error
	switch kind {
	case "string":
		f.String, err = p.text(r, true)
	case "token", "sortableStringBetaV1":
		f.Token = &Token{}
		if kind == "token" {
			f.Token.Lowercase = r.Enum("normalizer", "none", "none", "lowercase") == "lowercase"
		}
	case "autocomplete":
		f.Autocomplete, err = p.autocomplete(r)
	case "number":
		f.Number = number(r)
	case "numberFacet":
		f.NumberFacet = true
		number(r)
	case "sortableNumberBetaV1":
		f.Sortable = true
	case "geo":
		f.Geo = &Geo{Shapes: r.Bool("indexShapes", false)}
	case "knnVector", "vector":
		f.Vector = vector(r, kind == "knnVector")
	case "document":
		f.Document = &Document{}
		err = p.document(f.Document, r, place{at.depth + 1, at.embedded, at.root})
	case "embeddedDocuments":
		if at.embedded == maxEmbedding {
			return spec.Wrong("embeddedDocuments fields cannot be nested more than %d levels deep", maxEmbedding)
		}
		f.Embedded = &Embedded{}
		f.Embedded.Stored = storedSource(r)
		err = p.document(&f.Embedded.Document, r, place{at.depth + 1, at.embedded + 1, r.Path("")})
	case "autoEmbedVector":
		err = spec.At(r.Path("type"), "'autoEmbedVector' is not supported by this server")
	default:
		f.addPlain(kind)
	}
	if err != nil {
		return err
	}
	return r.Err()
}

// addPlain adds a type that has no options.
func (f *Field) addPlain(kind string) {
	switch kind {
	case "date":
		f.Date = true
	case "sortableDateBetaV1":
		f.Sortable = true
	case "boolean":
		f.Boolean = true
	case "objectId":
		f.ObjectID = true
	case "uuid":
		f.UUID = true
	case "stringFacet":
		f.StringFacet = true
	case "dateFacet":
		f.DateFacet = true
	}
}

// checkTypes holds the types of a field against one another.
func checkTypes(path string, kinds []string, f *Field, at place) error {
	several := func(of ...string) bool {
		n := 0
		for _, kind := range of {
			if slices.Contains(kinds, kind) {
				n++
			}
		}
		return n > 1
	}
	switch {
	case several("sortableDateBetaV1", "sortableNumberBetaV1", "sortableStringBetaV1"):
		return spec.At(path, "can only define one of [sortableDateBetaV1, sortableNumberBetaV1, sortableStringBetaV1]")
	case several("knnVector", "vector"):
		return spec.At(path, "can only define one of [knnVector, vector]")
	case several("sortableStringBetaV1", "token"):
		return spec.At(path, "Can only define one of [SortableStringBetaV1, Token]")
	}
	if at.embedded > 0 {
		for _, kind := range kinds {
			if strings.HasPrefix(kind, "sortable") || kind == "knnVector" {
				return spec.At(strings.TrimSuffix(at.root, "."), "cannot define fields of type %s inside an embeddedDocuments field", kind)
			}
		}
	}
	if f.Document != nil && f.Embedded != nil {
		if both := embeddedInBoth(f.Document, &f.Embedded.Document, ""); both != "" {
			return spec.At(path, "cannot define multiple embeddedDocuments fields at sub-paths %s", both)
		}
	}
	return nil
}

// embeddedInBoth is a path at which both documents have embeddedDocuments, "" if there is none.
func embeddedInBoth(a, b *Document, at string) string {
	for name, f := range a.Fields {
		g := b.Fields[name]
		if g == nil {
			continue
		}
		if f.Embedded != nil && g.Embedded != nil {
			return at + name
		}
		for _, x := range []*Document{f.Document, f.below()} {
			for _, y := range []*Document{g.Document, g.below()} {
				if x == nil || y == nil {
					continue
				}
				if path := embeddedInBoth(x, y, at+name+"."); path != "" {
					return path
				}
			}
		}
	}
	return ""
}

// below are the fields of embedded documents, nil if there are none.
func (f *Field) below() *Document {
	if f.Embedded == nil {
		return nil
	}
	return &f.Embedded.Document
}

// text reads the options of the type string.
func (p *parser) text(r *spec.Reader, multi bool) (*String, error) {
	s := &String{}
	analyzer, _ := r.NonEmpty("analyzer", false)
	search, _ := r.NonEmpty("searchAnalyzer", false)
	s.Similarity = similarity(r)
	s.IgnoreAbove, _ = r.IntOr("ignoreAbove", 1, 0)
	options := r.Enum("indexOptions", "offsets", "docs", "freqs", "positions", "offsets")
	s.NoPositions, s.NoFrequencies = options == "docs" || options == "freqs", options == "docs"
	r.Bool("store", true) // highlights are made of the documents themselves
	s.NoNorms = r.Enum("norms", "include", "include", "omit") == "omit"
	if r.Err() != nil {
		return nil, r.Err()
	}
	var err error
	if s.Analyzer, err = p.named(first(analyzer, p.indexed)); err != nil {
		return nil, err
	}
	if s.SearchAnalyzer, err = p.named(first(search, analyzer, p.searched, p.indexed)); err != nil {
		return nil, err
	}
	others, _ := r.Object("multi", false)
	if others.Count() > maxNames {
		return nil, spec.At(r.Path("multi"), "cannot have more than %d elements", maxNames)
	}
	for it := others.Iter(); r.Err() == nil && it.Next(); {
		path := r.Path("multi") + "." + it.Key()
		switch {
		case it.Value().Type != bsonObject:
			return nil, spec.At(path, "must be a document")
		case strings.Contains(it.Key(), "."):
			return nil, spec.At(path, `multi path cannot contain "."`)
		}
		if s.Multi == nil {
			s.Multi = map[string]*String{}
		}
		if s.Multi[strings.Clone(it.Key())], err = p.multi(spec.New(path, it.Value().Doc()), multi); err != nil {
			return nil, err
		}
	}
	return s, r.Err()
}

func (p *parser) multi(r *spec.Reader, allowed bool) (*String, error) {
	if !allowed {
		r.Refuse("multi definition cannot contain nested multi definition")
	}
	if r.Enum("type", "", typeNames...) != "string" {
		r.Refuse("multi definition must be string field")
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	s, err := p.text(r, false)
	if err != nil {
		return nil, err
	}
	return s, r.Done()
}

func similarity(r *spec.Reader) Similarity {
	doc, ok := r.Object("similarity", false)
	if !ok {
		return BM25
	}
	sub := spec.New(r.Path("similarity"), doc)
	kind := sub.Enum("type", "", "bm25", "boolean", "stableTfl")
	r.Keep(sub.Done())
	switch kind {
	case "boolean":
		return BooleanSimilarity
	case "stableTfl":
		return StableTfl
	}
	return BM25
}

func (p *parser) autocomplete(r *spec.Reader) (*Autocomplete, error) {
	const defaultMin, defaultMax = 2, 15
	a := &Autocomplete{}
	var hasMin, hasMax bool
	a.Min, hasMin = r.IntOr("minGrams", 1, defaultMin)
	a.Max, hasMax = r.IntOr("maxGrams", 1, defaultMax)
	if a.Min > a.Max {
		switch {
		case hasMin && hasMax:
			r.Refuse("minGrams cannot be greater than maxGrams")
		case hasMin:
			r.Refuse("minGrams must be less than or equal to the default maxGrams value of %d", defaultMax)
		default:
			r.Refuse("maxGrams must be greater than or equal to the default minGrams value of %d", defaultMin)
		}
	}
	a.Fold = r.Bool("foldDiacritics", true)
	kinds := []string{"edgeGram", "rightEdgeGram", "nGram"}
	a.Grams = analysis.Grams(slices.Index(kinds, r.Enum("tokenization", "edgeGram", kinds...)))
	name, _ := r.Text("analyzer", false)
	a.Similarity = similarity(r)
	if r.Err() != nil {
		return nil, r.Err()
	}
	var err error
	if a.Base, err = p.named(first(name)); err != nil {
		return nil, err
	}
	if a.Base != nil && a.Base.IsGraph() {
		return nil, overlapping(strings.TrimSuffix(r.Path(""), "."), a.Base.Name())
	}
	return a, nil
}

// overlapping is an error about an analyzer whose tokens overlap, by the path of the field in the definition.
func overlapping(path, analyzer string) error {
	if in, ok := strings.CutPrefix(path, "mappings.fields."); ok {
		return spec.Wrong("autocomplete field at path %s uses graph token stream producing analyzer %s", strings.ReplaceAll(in, ".fields.", "."), analyzer)
	}
	return spec.At(path, "uses graph token stream producing analyzer %s", analyzer)
}

func number(r *spec.Reader) *Number {
	n := &Number{Int64: r.Enum("representation", "double", "double", "int64") == "int64"}
	n.NoDoubles = !r.Bool("indexDoubles", true)
	n.NoIntegers = !r.Bool("indexIntegers", true)
	if n.NoDoubles && n.NoIntegers {
		r.Refuse("indexDoubles and indexIntegers may not both be false")
	}
	return n
}

// vector reads the options of the types knnVector and vector. How vectors are kept and searched is not this server's: those options are looked
// at, and change nothing.
func vector(r *spec.Reader, knn bool) *Vector {
	v := &Vector{Knn: knn}
	name := "numDimensions"
	if knn {
		name = "dimensions"
	}
	v.Dimensions = r.IntWithin(name, 1, maxDimensions, -1)
	v.Similarity = r.Enum("similarity", "", "cosine", "dotProduct", "euclidean")
	if knn {
		return v
	}
	if r.Enum("quantization", "none", "none", "scalar", "binary") == "binary" && v.Dimensions%8 != 0 {
		r.Refuse("numDimensions %d must be a multiple of 8 for binary quantization", v.Dimensions)
	}
	hnsw := r.Enum("indexingMethod", "hnsw", "hnsw", "flat") == "hnsw"
	if doc, ok := r.Object("hnswOptions", false); ok {
		sub := spec.New(r.Path("hnswOptions"), doc)
		sub.IntWithin("maxEdges", 16, 64, 16)
		sub.IntWithin("numEdgeCandidates", 100, 3200, 100)
		r.Keep(sub.Done())
		if !hnsw {
			r.Refuse(`hnswOptions is only supported with "indexingMethod: hnsw".`)
		}
	}
	return v
}
