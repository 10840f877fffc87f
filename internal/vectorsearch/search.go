package vectorsearch

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
)

// Search scores documents for one query by one index. It is used by one goroutine at a time.
type Search struct {
	query  *Query
	field  vectorField
	path   fieldpath.Path // of the vector; below the root where there is one
	root   *fieldpath.Path
	filter condition // of what has the vector
	parent condition // of the document around it
	vector Vector    // the one that is looked at
}

// Search is the query by an index that is defined so. explain says that it is to be explained, not run.
func (d *Definition) Search(q *Query, explain bool) (*Search, error) {
	field, ok := d.vectors[q.Path]
	switch {
	case q.explains && !explain:
		return nil, wrong(`"explainOptions" is only valid when the query is explained`)
	case !ok:
		return nil, wrong(`Path '%s' needs to be indexed as vector`, q.Path)
	case q.nested && d.NestedRoot == "":
		return nil, wrong(`"nestedOptions" needs an index with a nestedRoot`)
	case q.source && !d.StoresSource:
		return nil, wrong(`"storedSource" is not configured for this index`)
	case q.vector.Kind == PackedBit && field.similarity != Euclidean:
		return nil, wrong(`binary vectors need the similarity "euclidean"`)
	case q.vector.Dimensions() != field.dimensions:
		return nil, wrong(`vector field is indexed with %d dimensions but queried with %d`, field.dimensions, q.vector.Dimensions())
	case field.similarity == Cosine && q.vector.isZero():
		return nil, wrong(`cosine similarity cannot be calculated against a vector of length zero`)
	}
	q.vector.measure()
	s := &Search{query: q, field: field}
	name := q.Path
	if d.NestedRoot != "" {
		name, _ = d.below(q.Path)
		root, err := fieldpath.New(d.NestedRoot)
		if err != nil {
			return nil, err
		}
		s.root = &root
	}
	var err error
	if s.path, err = fieldpath.New(name); err != nil {
		return nil, err
	}
	if s.filter, err = (&filterParser{d, d.NestedRoot != ""}).filter(q.filter); err == nil {
		s.parent, err = (&filterParser{d, false}).filter(q.parent)
	}
	return s, err
}

// Score is how alike a document's vector is to the one that is looked for. There is none where the document has no such vector, or is
// not to be found.
func (s *Search) Score(d bson.Doc) (score float32, ok bool) {
	if !s.parent.holds(d) {
		return 0, false
	}
	if s.root == nil {
		return s.scoreOf(d)
	}
	n, sum, best := 0, float32(0), float32(0)
	s.root.Values(d, fieldpath.Names, func(v bson.Value) {
		if v.Type != bson.TypeObject {
			return
		}
		if score, ok := s.scoreOf(v.Doc()); ok {
			n++
			sum, best = sum+score, max(best, score)
		}
	})
	if s.query.mean && n > 0 {
		return sum / float32(n), true
	}
	return best, n > 0
}

// scoreOf is the score of what has the vector itself.
func (s *Search) scoreOf(d bson.Doc) (float32, bool) {
	if !s.filter.holds(d) || !s.vector.Read(s.path.Get(d), s.field.dimensions) || s.vector.Kind != s.query.vector.Kind || s.field.similarity == Cosine && s.vector.isZero() {
		return 0, false
	}
	return s.field.similarity.score(&s.query.vector, &s.vector), true
}
