package fulltext

import "github.com/ebbdb/ebb/internal/fulltext/spec"

// vectorOperator is knnBeta or vectorSearch, which look for vectors in an index for text. The stage $vectorSearch does, too, by an index of its own.
type vectorOperator struct {
	name       string
	path       string
	dimensions int
}

func parseKnnBeta(p *parser, a *spec.Reader) operator {
	v := &vectorOperator{name: "knnBeta"}
	if p.depth > 1 {
		a.Refuse("knnBeta is not allowed to be nested")
	}
	for _, path := range readFieldPaths(a, "path") {
		v.path = path
	}
	v.dimensions = readVector(a, "vector")
	if sub := a.Inner("filter"); sub != nil {
		p.operator(sub)
	}
	if !a.Has("k") {
		a.RefuseField("k", "is required")
	}
	a.Positive("k", 1)
	return v
}

func parseVectorOperator(p *parser, a *spec.Reader) operator {
	v := &vectorOperator{name: "vectorSearch"}
	if p.depth > 1 {
		a.Refuse("vectorSearch is not allowed to be nested")
	}
	paths := readFieldPaths(a, "path")
	if len(paths) > 1 {
		a.Refuse("vectorSearch can have only one field path")
	}
	for _, path := range paths {
		v.path = path
	}
	v.dimensions = readVector(a, "queryVector")
	exact := a.Bool("exact", false)
	for _, name := range []string{"limit", "numCandidates"} {
		switch {
		case name == "numCandidates" && exact && a.Has(name):
			a.RefuseField(name, `must be omitted when "exact" is true`)
		case name == "numCandidates" && exact:
		case !a.Has(name):
			a.RefuseField(name, "is required")
		}
		a.Positive(name, 1)
	}
	if sub := a.Inner("filter"); sub != nil {
		p.operator(sub)
	}
	return v
}

// allows refuses the options of a query that do not go with vectors.
func (v *vectorOperator) allows(a *spec.Reader) {
	if v.name == "knnBeta" {
		if a.Has("sortBetaV1") {
			a.Refuse("knnBeta is not allowed to be used with the sort option")
		}
		return
	}
	switch {
	case a.Has("sort"), a.Has("sortBetaV1"):
		a.Refuse("Sort option is not supported with the 'vectorSearch' operator. Use $sort stage instead.")
	case a.Has("searchBefore"), a.Has("searchAfter"):
		a.Refuse("Pagination is not supported with the 'vectorSearch' operator. Use $skip and $limit stages instead.")
	case a.Has("highlight"):
		a.Refuse("Highlighting is not supported with the 'vectorSearch' operator.")
	case a.Has("tracking"):
		a.Refuse("Term tracking is not supported with the 'vectorSearch' operator.")
	}
}

// vector reads an array of numbers, and says how many there are.
func readVector(a *spec.Reader, name string) int {
	list := a.RequiredList(name, false)
	for _, e := range list {
		if !e.IsNumber() {
			a.RefuseAt(e.Path, "must be a number")
		}
	}
	return len(list)
}

func (v *vectorOperator) resolve(r *resolver) (node, error) {
	f := r.scope.field(v.path)
	switch {
	case v.name == "knnBeta" && (f == nil || f.Vector == nil):
		return nil, spec.Wrong("%s is not indexed as knnVector", v.path)
	case f == nil || f.Vector == nil:
		return nil, spec.Wrong(`%s must be indexed as "vector".`, v.path)
	case f.Vector.Dimensions != v.dimensions:
		return nil, spec.Wrong("vector field is indexed with %d dimensions but queried with %d", f.Vector.Dimensions, v.dimensions)
	}
	return nil, spec.Wrong("the operator %s is not supported by this server: use the stage $vectorSearch", v.name)
}
