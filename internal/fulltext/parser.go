package fulltext

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// parser reads the operators of a query.
type parser struct {
	depth int
	count int // of operators and expressions
	joins int
	scope scopeName
	// unaffected are the names of facets that an operator says it is not for.
	unaffected []string
	// asked is what is searched for with synonyms, by the names of their mappings.
	asked map[string][]string
}

// scopeName is the array whose documents an operator looks at, and what says so.
type scopeName struct{ path, source string }

const (
	// maxDepth bounds how deep operators lie in one another.
	maxDepth = 100
	// maxJoins bounds how often an operator changes what is looked at.
	maxJoins = 5
)

type parseOperator func(p *parser, a *spec.Reader) operator

// operators are the ones there are, in the order in which messages name them.
func operators() []namedOperator {
	return []namedOperator{
		{"autocomplete", parseAutocomplete, "path"}, {"compound", parseCompound, ""}, {"embeddedDocument", parseEmbedded, "path"},
		{"equals", parseEquals, "path"}, {"exists", parseExists, "path"}, {"geoShape", parseGeoShape, "path"}, {"geoWithin", parseGeoWithin, "path"},
		{"hasAncestor", parseHasAncestor, ""}, {"hasRoot", parseHasRoot, ""}, {"in", parseIn, "path"}, {"knnBeta", parseKnnBeta, "path"},
		{"moreLikeThis", parseMoreLikeThis, ""}, {"near", parseNear, "path"}, {"phrase", parsePhrase, "path"}, {"queryString", parseQueryString, "defaultPath"},
		{"range", parseRange, "path"}, {"regex", parseRegex, "path"}, {"search", parseSearchOperator, "path"}, {"span", parseSpan, ""},
		{"term", parseTerm, "path"}, {"text", parseText, "path"}, {"vectorSearch", parseVectorOperator, "path"}, {"wildcard", parseWildcard, "path"},
	}
}

type namedOperator struct {
	name  string
	parse parseOperator
	path  string // the field with its paths, "" where they lie deeper
}

func operatorNames() []string {
	var names []string
	for _, o := range operators() {
		names = append(names, o.name)
	}
	return names
}

// operator reads a document that has one operator and nothing else.
func (p *parser) operator(a *spec.Reader) operator {
	a.OneOf(operatorNames()...)
	op := p.named(a)
	a.Done()
	if op == nil {
		return nowhere{}
	}
	return op
}

// counts counts an operator or an expression.
func (p *parser) counts(a *spec.Reader) {
	if p.count++; p.count > maxClauses {
		a.Keep(tooManyClauses())
	}
}

// named reads the operator that is among a document's fields, nil where there is none.
func (p *parser) named(a *spec.Reader) operator {
	for _, o := range operators() {
		sub := a.Inner(o.name)
		if sub == nil {
			continue
		}
		p.counts(a)
		if p.depth++; p.depth > maxDepth {
			a.Refuse("operators cannot lie in one another more than %d deep", maxDepth)
			return nowhere{}
		}
		defer func() { p.depth-- }()
		if a.Err() != nil {
			return nowhere{}
		}
		op := o.parse(p, sub)
		p.below(sub, o)
		op = p.modified(sub, o.name, op)
		sub.Done()
		return op
	}
	return nil
}

// below holds the paths of an operator to the array whose documents are looked at.
func (p *parser) below(a *spec.Reader, o namedOperator) {
	if p.scope.path == "" || o.path == "" || a.Err() != nil {
		return
	}
	paths, _ := a.List(o.path, true)
	for _, e := range paths {
		path := e.Value
		if path.Type == bson.TypeObject {
			if path = e.Doc().Lookup("value"); path.IsMissing() {
				continue // a pattern finds what there is
			}
		}
		if path.Type != bson.TypeString || strings.HasPrefix(path.Str(), p.scope.path+".") {
			continue
		}
		if p.scope.source == "embeddedDocument.path" {
			a.Refuse("%s is not a subfield of %s", path.Str(), p.scope.path)
		}
		a.Refuse("%s operator path '%s' must be a descendant of %s '%s'", o.name, path.Str(), p.scope.source, p.scope.path)
	}
}

// join reads an operator that looks at other documents.
func (p *parser) join(a *spec.Reader, to scopeName, sub *spec.Reader) operator {
	from := p.scope
	p.scope, p.joins = to, p.joins+1
	defer func() { p.scope, p.joins = from, p.joins-1 }()
	if p.joins >= maxJoins {
		a.Refuse("Query must contain less than %d occurrences of hasAncestor + hasRoot + embeddedDocuments.", maxJoins-1)
		return nowhere{}
	}
	if sub.Has("moreLikeThis") {
		a.Refuse("Operator: moreLikeThis not allowed in embeddedDocument operator")
	}
	return p.operator(sub)
}

// needsRoot refuses an operator that looks upwards where nothing is above.
func (p *parser) needsRoot(a *spec.Reader, name string) {
	if p.scope.path == "" {
		a.Refuse("%s operator requires embeddedDocument.path, hasAncestor.ancestorPath, or returnScope.path to be set.", name)
	}
}

// nowhere is in place of an operator that could not be read.
type nowhere struct{}

func (nowhere) resolve(*resolver) (node, error) { return nothing{}, nil }

// everywhere is what a collector searches for that has no operator.
type everywhere struct{}

func (everywhere) resolve(r *resolver) (node, error) {
	return &constant{slot: r.slot(), name: "*:*", holds: func() bool { return true }}, nil
}
