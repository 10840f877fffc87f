package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/sortpattern"
	"github.com/ebbdb/ebb/internal/vectorsearch"
)

// Search is $search or $searchMeta. It is refused when it runs, as by a server without a search process.
type Search struct{ written }

// Refusal is what such a server says of the stage.
func (s *Search) Refusal() error {
	return noSearch("Using $search and $vectorSearch aggregation stages")
}

// ErrNoTextIndexes is what it says of the search process's indexes.
func ErrNoTextIndexes() error {
	return noSearch("Using Atlas Search Database Commands and the $listSearchIndexes aggregation stage")
}

func noSearch(using string) error {
	return mongoerr.New(mongoerr.SearchNotEnabled, "%s requires additional configuration. Please connect to Atlas or an AtlasCLI local deployment to enable. "+
		"For more information on how to connect, see https://dochub.mongodb.org/core/atlas-cli-deploy-local-reqs.", using)
}

func parseSearch(p *parsing, arg bson.Value) ([]Stage, error) {
	switch arg.Type {
	case bson.TypeObject:
	case bson.TypeArray:
		return nil, mongoerr.New(mongoerr.FailedToParse, "the search stage specification must be an object, but found array")
	default:
		return nil, mongoerr.New(10065, "invalid parameter: expected an object ($search)")
	}
	return one(&Search{written{p.name, arg}}), nil
}

func (s *Search) needs(*Dependencies) bool { return false }

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
	if _, err := parseSearch(p, arg); err != nil {
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
