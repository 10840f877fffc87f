package analysis

import (
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// Limits of a definition's analyzers.
const (
	maxAnalyzers = 256
	maxSteps     = 64   // filters of an analyzer
	maxWords     = 8192 // of a list, or mappings
	maxMapped    = 256  // bytes that a mapping replaces
)

// ParseCustom reads the analyzers that a definition makes itself, by their names: each of character filters, a tokenizer and token filters, or
// of one that is there without being defined, changed ("baseAnalyzer").
func ParseCustom(specs bson.Value) (map[string]*Analyzer, error) {
	if specs.IsMissing() {
		return nil, nil
	}
	if specs.Type != bson.TypeArray {
		return nil, spec.At("analyzers", "must be a array")
	}
	if specs.Doc().Count() > maxAnalyzers {
		return nil, spec.At("analyzers", "cannot have more than %d elements", maxAnalyzers)
	}
	all := map[string]*Analyzer{}
	i := 0
	for it := specs.Doc().Iter(); it.Next(); i++ {
		path := "analyzers[" + strconv.Itoa(i) + "]"
		if it.Value().Type != bson.TypeObject {
			return nil, spec.At(path, "must be a document")
		}
		r := spec.New(path, it.Value().Doc())
		a := parseAnalyzer(r)
		if err := r.Done(); err != nil {
			return nil, err
		}
		if all[a.name] != nil {
			return nil, spec.At("analyzers", "cannot contain elements with the same name")
		}
		all[a.name] = a
	}
	return all, nil
}

func parseAnalyzer(r *spec.Reader) *Analyzer {
	name, _ := r.Text("name", true)
	for _, prefix := range []string{"lucene.", "builtin.", "mongodb."} {
		if strings.HasPrefix(name, prefix) {
			r.RefuseField("name", "cannot begin with %s", prefix)
		}
	}
	if !r.Value("baseAnalyzer").IsMissing() {
		return changedStock(name, r)
	}
	a := &Analyzer{name: name}
	chars, _ := r.Objects("charFilters", false, maxSteps)
	for _, c := range chars {
		a.chars = append(a.chars, parseCharFilter(c))
		r.Keep(c.Done())
	}
	if doc, ok := r.Object("tokenizer", true); ok {
		t := spec.New(r.Path("tokenizer"), doc)
		a.divide, a.graph = parseTokenizer(t)
		r.Keep(t.Done())
	}
	filters, _ := r.Objects("tokenFilters", false, maxSteps)
	for _, f := range filters {
		made, graph := parseFilter(f)
		a.filters = append(a.filters, made)
		r.Keep(f.Done())
		a.graph = graph == makesGraph || graph == keepsGraph && a.graph
	}
	a.normalChars, a.normal = a.chars, a.filters // as in Lucene: all of them
	return a
}

func parseCharFilter(r *spec.Reader) charFilter {
	switch r.Enum("type", "", "htmlStrip", "icuNormalize", "mapping", "persian") {
	case "htmlStrip":
		tags, _ := r.Texts("ignoredTags", false, maxWords)
		if len(setOf(tags, false)) < len(tags) {
			r.RefuseField("ignoredTags", "cannot contain duplicate elements")
		}
		return htmlStrip(setOf(tags, true))
	case "icuNormalize":
		return icuNormalize
	case "mapping":
		return parseMapping(r)
	}
	return persianSpaces
}

func parseMapping(r *spec.Reader) charFilter {
	doc, _ := r.Object("mappings", true)
	switch n := doc.Count(); {
	case r.Err() != nil:
	case n == 0:
		r.RefuseField("mappings", "cannot be empty")
	case n > maxWords:
		r.RefuseField("mappings", "cannot have more than %d elements", maxWords)
	}
	root := &mappingNode{}
	for it := doc.Iter(); r.Err() == nil && it.Next(); {
		switch {
		case len(it.Key()) > maxMapped:
			r.RefuseField("mappings", "cannot have a key of more than %d bytes", maxMapped)
		case it.Key() == "":
			r.RefuseField("mappings", "cannot contain the empty string as a key")
		case it.Value().Type != bson.TypeString:
			r.RefuseField("mappings."+it.Key(), "must be a string")
		default:
			root.add(it.Key(), strings.Clone(it.Value().Str()))
		}
	}
	return root.filter
}

// parseTokenizer reads a tokenizer; graph says that its tokens overlap.
func parseTokenizer(r *spec.Reader) (of tokenizer, graph bool) {
	kind := r.Enum("type", "", "edgeGram", "keyword", "nGram", "regexCaptureGroup", "regexSplit", "standard", "uaxUrlEmail", "whitespace")
	length := func() int { return r.IntWithin("maxTokenLength", 1, maxTokenLengthLimit, maxTokenLength) }
	switch kind {
	case "edgeGram", "nGram":
		least, most := gramSizes(r)
		return gramTokenizer(least, most, kind == "nGram"), true
	case "regexCaptureGroup":
		pattern := compile(r)
		group, _ := r.IntOr("group", 0, -1)
		if pattern != nil && group > pattern.NumSubexp() {
			r.Refuse("invalid group specified: pattern only has: %d capturing groups", pattern.NumSubexp())
		}
		return captured(pattern, group), false
	case "regexSplit":
		return split(compile(r)), false
	case "standard":
		return standard(length()), false
	case "uaxUrlEmail":
		return urlsAndEmails(length()), false
	case "whitespace":
		return runs(isBlack, length()), false
	}
	return whole, false
}

func gramSizes(r *spec.Reader) (least, most int) {
	least, _ = r.IntOr("minGram", 0, -1)
	most, _ = r.IntOr("maxGram", 0, -1)
	if r.Err() == nil && least > most {
		r.Refuse("minGram must not be greater than maxGram")
	}
	return least, most
}

// changedStock is an analyzer that needs no definition, with other words that it leaves out or does not stem.
func changedStock(name string, r *spec.Reader) *Analyzer {
	base, _ := r.NonEmpty("baseAnalyzer", true)
	c := change{ignoreCase: r.Bool("ignoreCase", true)}
	c.length, _ = r.IntOr("maxTokenLength", 1, 0)
	var hasStops, hasExcluded bool
	c.stops, hasStops = r.Texts("stopwords", false, maxWords)
	c.excluded, hasExcluded = r.Texts("stemExclusionSet", false, maxWords)
	if hasExcluded && len(c.stops) == 0 {
		r.Refuse("must have stopwords in order to support stem exclusion set")
	}
	c.hasStops = hasStops
	if r.Err() != nil {
		return nil
	}
	a, err := changed(base, c)
	if err != nil {
		r.Keep(err)
		return nil
	}
	a.name = name
	return a
}

// setOf has words, in lower case if case is ignored.
func setOf(words []string, ignoreCase bool) map[string]struct{} {
	set := make(map[string]struct{}, len(words))
	for _, w := range words {
		if ignoreCase {
			w = lower(w)
		}
		set[w] = struct{}{}
	}
	return set
}
