package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/sortpattern"
	"github.com/ebbdb/ebb/internal/vectorsearch"
)

// Search is $search or $searchMeta. What they give is opened beforehand.
type Search struct {
	written
	// Details says that the scores of documents are to be explained.
	Details bool
}

// IsSearch says whether a stage of the name is a Search.
func IsSearch(name string) bool {
	return name == "$search" || name == "$searchBeta" || name == "$searchMeta"
}

// Meta says that the stage is $searchMeta, which gives one document about all results.
func (s *Search) Meta() bool { return s.Name() == "$searchMeta" }

func parseSearch(p *parsing, arg bson.Value) ([]Stage, error) {
	if err := checkSearch(arg); err != nil {
		return nil, err
	}
	s := &Search{written: written{p.name, arg}}
	if s.Meta() {
		return one(s), nil
	}
	// The search process says what is wrong with an argument, when it runs; of $search the server reads these itself.
	if _, err := readFlag(arg.Doc(), "returnStoredSource"); err != nil {
		return nil, err
	}
	var err error
	s.Details, err = readFlag(arg.Doc(), "scoreDetails")
	return one(s), err
}

func checkSearch(arg bson.Value) error {
	switch arg.Type {
	case bson.TypeObject:
		return nil
	case bson.TypeArray:
		return mongoerr.New(mongoerr.FailedToParse, "the search stage specification must be an object, but found array")
	}
	return mongoerr.New(10065, "invalid parameter: expected an object ($search)")
}

func readFlag(spec bson.Doc, name string) (bool, error) {
	v := spec.Lookup(name)
	switch v.Type {
	case bson.TypeMissing:
		return false, nil
	case bson.TypeBool:
		return v.Bool(), nil
	}
	return false, mongoerr.New(13111, "wrong type for field (%s) %s != bool", name, v.Type)
}

func (s *Search) needs(d *Dependencies) bool {
	if s.Meta() {
		return false
	}
	return d.everything()
}

// Behind is p behind the stages of a view. A search is in a collection: it is refused where a view has stages, which may hide what it would tell.
func (p *Pipeline) Behind(front []Stage) (*Pipeline, error) {
	q := *p
	if len(front) == 0 {
		return &q, nil
	}
	switch s := p.First().(type) {
	case *Search, *VectorSearch:
		return nil, notFirst(s.Name())
	}
	q.Stages = append(front[:len(front):len(front)], p.Stages...)
	return &q, nil
}

// parseListSearchIndexes reads the argument, of which an index's id or name may be left.
func parseListSearchIndexes(_ *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(mongoerr.FailedToParse, "The $listSearchIndexes stage specification must be an object. Found: %s", arg.Type)
	}
	var id, name bson.Value
	if err := readStrict("$listSearchIndexes", arg.Doc(), want{name: "id", to: &id, types: aString}, want{name: "name", to: &name, types: aString}); err != nil {
		return nil, err
	}
	if !id.IsMissing() && !name.IsMissing() {
		return nil, mongoerr.New(mongoerr.InvalidOptions, "Cannot set both 'name' and 'id' for $listSearchIndexes.")
	}
	return server("$listSearchIndexes", arg)
}

// VectorSearch is $vectorSearch. The documents that it finds are opened beforehand.
type VectorSearch struct {
	written
	// Limit is how many documents are wanted, 0 where the argument does not say.
	Limit int64
}

func parseVectorSearch(p *parsing, arg bson.Value) ([]Stage, error) {
	if err := checkSearch(arg); err != nil {
		return nil, err
	}
	s := &VectorSearch{written: written{"$vectorSearch", arg}}
	var err error
	if s.Limit, err = vectorsearch.ParseLimit(arg.Doc().Lookup("limit")); err != nil {
		return nil, err
	}
	switch filter := arg.Doc().Lookup("filter"); filter.Type {
	case bson.TypeMissing, bson.TypeArray:
	case bson.TypeObject:
		// what it may hold beyond the language of filters is for the index to say
		_, err = p.filter(filter.Doc(), match.AllowMatch)
	default:
		err = mongoerr.New(10065, "invalid parameter: expected an object (filter)")
	}
	return one(s), err
}

func (s *VectorSearch) needs(d *Dependencies) bool { return d.everything() }

// Best is what stands behind the stage where each document comes with its score: those of the best scores, and no others.
func (s *VectorSearch) Best() *Sort {
	spec := bson.Build().Object("score").String("$meta", "vectorSearchScore").End().Doc()
	pattern, err := sortpattern.Parse(spec)
	if err != nil {
		panic(err) // it is the same each time
	}
	return &Sort{written: written{"$sort", spec.Value()}, Pattern: pattern, Limit: s.Limit}
}
