package analysis

import (
	"strings"
	"sync"

	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// Standard is the name of the analyzer that is used where none is named.
const Standard = "lucene.standard"

// stock are the analyzers that are there without being defined, by their names.
var stock = sync.OnceValue(func() map[string]*Analyzer {
	all := map[string]*Analyzer{}
	for _, name := range []string{"standard", "simple", "whitespace", "keyword"} {
		a := basic(name)
		all[a.name] = a
	}
	for i := range languages {
		a := languages[i].analyzer(options{})
		all[a.name] = a
	}
	return all
})

// basic is an analyzer that knows no language.
func basic(name string) *Analyzer {
	a := &Analyzer{name: "lucene." + name}
	switch name {
	case "standard":
		a.divide, a.filters = standard(maxTokenLength), []filter{lowercase}
	case "simple", "stop":
		a.divide, a.filters = runs(isLetter, maxTokenLength), []filter{lowercase}
	case "whitespace":
		a.divide = runs(isBlack, maxTokenLength)
	case "keyword":
		a.divide, a.keyword = whole, true
	}
	a.normal = a.filters[:len(a.filters):len(a.filters)]
	a.parts, a.sifts = !a.keyword, name == "standard"
	return a
}

// IsStock says that there is an analyzer with that name that needs no definition, though it may be one that this server has not.
func IsStock(name string) bool {
	of, ok := strings.CutPrefix(name, "lucene.")
	_, known := unsupported[of]
	return ok && (known || of == "stop") || stock()[name] != nil
}

// Stock is the analyzer with a name that needs no definition.
func Stock(name string) (*Analyzer, error) {
	if a := stock()[name]; a != nil {
		return a, nil
	}
	switch {
	case name == "lucene.stop":
		return nil, spec.Wrong("StopAnalyzer must have stopwords")
	case IsStock(name):
		return nil, spec.Wrong("analyzer '%s' is not supported by this server", name)
	}
	return nil, spec.Wrong("references non-existent analyzers: %s", name)
}

// change is what a definition changes of an analyzer that needs none.
type change struct {
	stops, excluded []string
	hasStops        bool
	ignoreCase      bool
	length          int // 0 where it is not said
}

// changed is an analyzer with a change.
func changed(name string, c change) (*Analyzer, error) {
	if name != "lucene.stop" {
		if _, err := Stock(name); err != nil {
			return nil, err
		}
	}
	short := strings.TrimPrefix(name, "lucene.")
	o := options{excluded: setOf(c.excluded, c.ignoreCase), ignoreCase: c.ignoreCase}
	if c.hasStops {
		o.stops = setOf(c.stops, c.ignoreCase)
	}
	if c.length > 0 && short != "standard" {
		return nil, spec.Wrong("%s does not support maxTokenLength", name)
	}
	for i := range languages {
		l := &languages[i]
		if l.name != short {
			continue
		}
		if (l.bigrams || l.name == "persian") && len(c.excluded) > 0 {
			return nil, spec.Wrong("%s does not support stemExclusionSet", name)
		}
		return l.analyzer(o), nil
	}
	a := basic(short)
	switch {
	case len(c.excluded) > 0:
		return nil, spec.Wrong("%s does not support stemExclusionSet", name)
	case short == "stop" && !c.hasStops:
		return nil, spec.Wrong("StopAnalyzer must have stopwords")
	case c.hasStops && short != "standard" && short != "stop":
		return nil, spec.Wrong("%s does not support stopwords", name)
	case c.length > maxTokenLengthLimit:
		return nil, spec.Wrong("maxTokenLength of more than %d is not supported", maxTokenLengthLimit)
	case c.length > 0:
		a.divide = standard(c.length)
	}
	a.sifts = false
	if c.hasStops {
		a.filters = append(a.normal, without(o.stops, c.ignoreCase))
	}
	return a, nil
}
