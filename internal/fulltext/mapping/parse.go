package mapping

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext/analysis"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// Limits of a definition. MongoDB has other ones, or none: these keep what is kept of a definition small.
const (
	maxDepth     = 64   // documents in one another
	maxFields    = 4096 // of all documents together
	maxTypes     = 32   // of a field
	maxNames     = 256  // synonyms, type sets, fields to sort by
	maxStored    = 4096 // paths of storedSource
	maxEmbedding = 5    // embeddedDocuments in one another
)

// parser is what is known of a definition while it is read.
type parser struct {
	analyzers map[string]*analysis.Analyzer
	indexed   string // "analyzer" of the definition, which fields have that name none
	searched  string // "searchAnalyzer"
	sets      map[string]*Field
	fields    int
	missing   []string // analyzers that are not there
	unknown   []string // typeSets that are not there
	plain     *Field   // what "dynamic: true" makes of a field
}

// Parse reads the definition of an index.
func Parse(definition bson.Doc) (*Definition, error) {
	r := spec.New("", definition)
	p := &parser{sets: map[string]*Field{}}
	if !r.Value("nestedRoot").IsMissing() {
		return nil, spec.Wrong("`nestedRoot` is not supported in search index definitions. Remove `nestedRoot` from the definition, or set the index `type` to " +
			"`\"vectorSearch\"` if you intended to create a vector search index.")
	}
	p.indexed, _ = r.NonEmpty("analyzer", false)
	p.searched, _ = r.NonEmpty("searchAnalyzer", false)
	mappings, _ := r.Object("mappings", true)
	if r.Err() == nil {
		custom, err := analysis.ParseCustom(r.Value("analyzers"))
		r.Keep(err)
		p.analyzers = custom
	}
	d := &Definition{Root: &Document{}}
	p.declareSets(r)
	p.plain = p.dynamic()
	if r.Err() == nil {
		r.Keep(p.document(d.Root, spec.New("mappings", mappings), place{}))
	}
	d.Stored = storedSource(r)
	p.readSets(r)
	d.Synonyms = p.synonyms(r)
	p.sort(r, d.Root)
	if n, ok := r.Int("numPartitions", false); ok && !slices.Contains([]int{1, 2, 4, 8, 16, 32, 64}, n) {
		r.RefuseField("numPartitions", "numPartitions %d must be of 1, 2, 4, 8, 16, 32, or 64.", n)
	}
	for _, name := range []string{p.indexed, p.searched} {
		if name != "" && r.Err() == nil {
			_, err := p.named(name)
			r.Keep(err)
		}
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	return d, p.unresolved()
}

// unresolved is an error about names that stand for nothing.
func (p *parser) unresolved() error {
	distinct := func(names []string) string {
		return strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), ", ")
	}
	if len(p.unknown) > 0 {
		return spec.Wrong("Invalid typeSets defined in index definition: [%s]", distinct(p.unknown))
	}
	if len(p.missing) > 0 {
		return spec.Wrong("references non-existent analyzers: %s", distinct(p.missing))
	}
	return nil
}

// named is the analyzer with a name. One that is not there is told at the end, with all others.
func (p *parser) named(name string) (*analysis.Analyzer, error) {
	if a := p.analyzers[name]; a != nil {
		return a, nil
	}
	if !analysis.IsStock(name) {
		p.missing = append(p.missing, name)
		return nil, nil
	}
	return analysis.Stock(name)
}

// first is the first name that is one.
func first(names ...string) string {
	for _, name := range names {
		if name != "" {
			return name
		}
	}
	return analysis.Standard
}

// place is where a document of the definition is: in how many others, and how many of them are embeddedDocuments.
type place struct {
	depth, embedded int
	root            string // the path of the embeddedDocuments around it
}

// document reads what "mappings", and fields of the types document and embeddedDocuments have.
func (p *parser) document(d *Document, r *spec.Reader, at place) error {
	if at.depth > maxDepth {
		r.Refuse("cannot be nested more than %d levels deep", maxDepth)
		return r.Err()
	}
	switch v := r.Value("dynamic"); v.Type {
	case bson.TypeMissing:
	case bson.TypeBool:
		if v.Bool() {
			d.Dynamic = p.plain
		}
	case bson.TypeObject:
		set := spec.New(r.Path("dynamic"), v.Doc())
		name, _ := set.NonBlank("typeSet", true)
		r.Keep(set.Done())
		if d.Dynamic = p.sets[name]; d.Dynamic == nil {
			p.unknown = append(p.unknown, name)
		}
	default:
		r.RefuseField("dynamic", "must be a boolean or document")
	}
	fields, _ := r.Object("fields", false)
	for it := fields.Iter(); r.Err() == nil && it.Next(); {
		if p.fields++; p.fields > maxFields {
			r.RefuseField("fields", "cannot define more than %d fields", maxFields)
			break
		}
		f, err := p.field(r.Path("fields")+"."+it.Key(), it.Value(), at)
		if err != nil {
			return err
		}
		if d.Fields == nil {
			d.Fields = map[string]*Field{}
		}
		d.Fields[strings.Clone(it.Key())] = f
	}
	return r.Done()
}

// field reads as what a field is indexed: a type, or several.
func (p *parser) field(path string, v bson.Value, at place) (*Field, error) {
	f := &Field{}
	var kinds []string
	whole := path
	add := func(path string, v bson.Value) error {
		if v.Type != bson.TypeObject {
			return spec.At(path, "must be a document")
		}
		r := spec.New(path, v.Doc())
		kind := r.Enum("type", "", typeNames...)
		if r.Err() != nil {
			return r.Err()
		}
		if slices.Contains(kinds, kind) {
			return spec.At(whole, `field contained multiple "[%s]" type definitions`, kind)
		}
		kinds = append(kinds, kind)
		if err := p.addType(f, kind, r, at); err != nil {
			return err
		}
		return r.Done()
	}
	switch v.Type {
	case bson.TypeNull:
		return nil, spec.At(path, "cannot be null")
	case bson.TypeArray:
		if v.Doc().Count() > maxTypes {
			return nil, spec.At(path, "cannot have more than %d elements", maxTypes)
		}
		i := 0
		for it := v.Doc().Iter(); it.Next(); i++ {
			if err := add(path+"["+strconv.Itoa(i)+"]", it.Value()); err != nil {
				return nil, err
			}
		}
	default:
		if err := add(path, v); err != nil {
			return nil, err
		}
	}
	return f, checkTypes(path, kinds, f, at)
}
